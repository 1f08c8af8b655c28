package readstate

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExactScopesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "f")
	v := write(t, path, fiveLines, noon)
	first := open(t, Config{Dir: dir})
	sawWhole(first.Scope("exact", true), path, v)
	sawPages(first.Scope("pages", true), path, v)
	sawWhole(first.Scope("shared", false), path, v)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := open(t, Config{Dir: dir})
	if st := check(t, second.Scope("exact", true), path); st.State != Current || !st.Whole {
		t.Errorf("exact scope: %+v, want current and whole", st)
	}
	if st := check(t, second.Scope("pages", true), path); st.State != Current || len(st.Parts) != 2 ||
		!st.Covers(1, 2) {
		t.Errorf("pages: %+v, want current with 2 pages", st)
	}
	if st := check(t, second.Scope("shared", false), path); st.State != Unread {
		t.Errorf("shared scope: %v, want unread", st.State)
	}
	write(t, path, "other", noon)
	if st := check(t, second.Scope("exact", true), path); st.State != stale || st.Old != nil {
		t.Errorf("changed: %+v, want drifted, from bytes that are not kept", st)
	}
}

func TestWhatIsOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below", "state")
	s := open(t, Config{Dir: dir})
	s.Scope("principal secret-key", true).MarkRead("/f", version{}, []byte("SECRET CONTENT"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found := files(t, dir, "*.scope")
	if len(found) != 1 {
		t.Fatalf("files: %q, want one", found)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"SECRET CONTENT", "secret-key"} {
		if strings.Contains(string(data), secret) || strings.Contains(found[0], secret) {
			t.Errorf("%q is on disk", secret)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, found[0]: 0o600} {
		if got := stat(t, path).Mode().Perm(); got != want {
			t.Errorf("%s: mode %v, want %v", path, got, want)
		}
	}
}

func TestDirIsMadePrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, Config{Dir: dir})
	if got := stat(t, dir).Mode().Perm(); runtime.GOOS != "windows" && got != 0o700 {
		t.Errorf("mode %v, want 0700", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "", noon)
	for name, dir := range map[string]string{"relative": "state", "a file": file,
		"below a file": filepath.Join(file, "state")} {
		if _, err := Open(Config{Dir: dir}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDamagedFilesAreSetAside(t *testing.T) {
	good := func(t *testing.T, dir string) string {
		s := open(t, Config{Dir: dir})
		s.Scope("k", true).MarkRead("/f", version{}, []byte("x"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, fileName("k"))
	}
	body := func(s string) func([]byte) []byte {
		return func([]byte) []byte {
			return fmt.Appendf(nil, "%s%x\n%s", header, HashOf([]byte(s)), s)
		}
	}
	tests := []struct {
		name   string
		damage func([]byte) []byte
	}{
		{"empty", func([]byte) []byte { return nil }},
		{"cut short", func(b []byte) []byte { return b[:len(b)-3] }},
		{"one bit", func(b []byte) []byte { b[len(b)-10] ^= 1; return b }},
		{"zeros after a power cut", func(b []byte) []byte { return make([]byte, len(b)) }},
		{"another version", func(b []byte) []byte { return append([]byte("toolhost readstate 9 "), b[len(header):]...) }},
		{"not JSON", body("{")},
		{"whole without a hash", body(`[{"path":"/f","whole":true}]`)},
		{"negative page", body(`[{"path":"/f","parts":[{"start":-5,"end":1,"hash":"` + strings.Repeat("A", 43) + `="}]}]`)},
		{"page backwards", body(`[{"path":"/f","parts":[{"start":5,"end":1,"hash":"` + strings.Repeat("A", 43) + `="}]}]`)},
		{"nothing seen", body(`[{"path":"/f"}]`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := good(t, dir)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := tt.damage(data)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			s := open(t, Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			sc := s.Scope("k", true)
			if st := sc.Check("/f", nil, []byte("x")); st.State != Unread {
				t.Errorf("%v, want unread", st.State)
			}
			aside, err := os.ReadFile(path + ".damaged")
			if err != nil || string(aside) != string(damaged) {
				t.Errorf("set aside: %q, %v, want the damaged bytes", aside, err)
			}
			if !strings.Contains(log.String(), ".damaged") {
				t.Errorf("log %q does not name the file", log.String())
			}
			sc.MarkRead("/f", version{}, []byte("x"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if st := open(t, Config{Dir: dir}).Scope("k", true).Check("/f", nil, []byte("x")); st.State != Current {
				t.Errorf("after a new read: %v, want current", st.State)
			}
		})
	}
}

func TestStoresMerge(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	sa, sb := a.Scope("k", true), b.Scope("k", true)
	sa.MarkRead("/both", version{}, []byte("old"))
	sa.MarkRead("/a", version{}, []byte("a"))
	sa.MarkRead("/forgotten", version{}, []byte("f"))
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	sb.MarkRead("/both", version{}, []byte("new"))
	sb.MarkRead("/b", version{}, []byte("b"))
	sb.Forget("/forgotten")
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	sa.MarkRead("/late", version{}, nil)
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	for name, sc := range map[string]*Scope{"writer": sa, "restarted": open(t, Config{Dir: dir}).Scope("k", true)} {
		for path, content := range map[string]string{"/both": "new", "/a": "a", "/b": "b", "/late": ""} {
			if st := sc.Check(path, nil, []byte(content)); st.State != Current {
				t.Errorf("%s: %s: %v, want current", name, path, st.State)
			}
		}
		if st := sc.Check("/forgotten", nil, []byte("f")); st.State != Unread {
			t.Errorf("%s: forgotten file: %v, want unread", name, st.State)
		}
	}
}

func TestProcessesMerge(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], dir, name)
			cmd.Env = append(os.Environ(), roleVariable+"=reader")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %s: %v\n%s", name, err, out)
			}
		})
	}
	wg.Wait()
	sc := open(t, Config{Dir: dir}).Scope("shared", true)
	for _, name := range names {
		for i := range 50 {
			if st := sc.Check(fmt.Sprintf("/%s/%d", name, i), nil, []byte(name)); st.State != Current {
				t.Errorf("/%s/%d: %v, want current", name, i, st.State)
			}
		}
	}
}

// TestKill kills a process that writes all the time and looks at what it left.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	for range 10 {
		cmd := exec.Command(os.Args[0], dir)
		cmd.Env = append(os.Environ(), roleVariable+"=writer")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Error(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
		s := open(t, Config{Dir: dir})
		if st := s.Scope("killed", true).Check("/first", nil, []byte("first")); st.State != Current {
			t.Fatalf("after a kill: %v, want current", st.State)
		}
		if left := append(files(t, dir, "*.tmp"), files(t, dir, "*.damaged")...); len(left) > 0 {
			t.Fatalf("left behind: %q", left)
		}
	}
}

func TestWriteBehind(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Dir: dir})
		s.Scope("k", true).MarkRead("/f", version{}, nil)
		if found := files(t, dir, "*.scope"); len(found) != 0 {
			t.Errorf("at once: %q, want nothing written yet", found)
		}
		time.Sleep(writeBehind)
		synctest.Wait()
		if found := files(t, dir, "*.scope"); len(found) != 1 {
			t.Errorf("after %v: %q, want one file", writeBehind, found)
		}
	})
}

// TestCollectedScopeComesBack lets an exact scope leave memory before and after it is written.
func TestCollectedScopeComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Dir: t.TempDir(), MaxScopes: 1})
		a, b := s.Scope("a", true), s.Scope("b", true)
		a.MarkRead("/f", version{}, nil)
		b.MarkRead("/f", version{}, nil)
		if got := a.Check("/f", nil, nil).State; got != Current {
			t.Errorf("before it is written: %v, want current", got)
		}
		time.Sleep(writeBehind)
		synctest.Wait()
		b.Check("/f", nil, nil)
		if len(s.scopes) != 1 {
			t.Errorf("%d scopes in memory, want 1", len(s.scopes))
		}
		if got := a.Check("/f", nil, nil).State; got != Current {
			t.Errorf("after it left memory: %v, want current", got)
		}
	})
}

func TestDiskRefusesAndRecovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, Config{Dir: dir})
	sc := s.Scope("k", true)
	name := filepath.Join(dir, fileName("k"))
	if err := os.Mkdir(name, 0o700); err != nil { // a directory in the place of the file, with something in it
		t.Fatal(err)
	}
	write(t, filepath.Join(name, "x"), "", noon)
	if err := os.Mkdir(name+".damaged", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(name+".damaged", "x"), "", noon)
	sc.MarkRead("/f", version{}, nil)
	if err := s.flush(); err == nil {
		t.Error("flush into a directory: no error")
	}
	if st := sc.Check("/f", nil, nil); st.State != Current {
		t.Errorf("in memory: %v, want current", st.State)
	}
	if left := files(t, dir, "*.tmp"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	for _, path := range []string{name, name + ".damaged"} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	sc.MarkRead("/f", version{}, nil)
	if err := s.flush(); err != nil {
		t.Errorf("flush after it was mended: %v", err)
	}
}

// TestHeldLock has another process, which may be stopped, hold the lock: nothing waits for it for good, and nothing is lost.
func TestHeldLock(t *testing.T) {
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, lockName))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Dir: dir})
		sc := s.Scope("k", true)
		sc.MarkRead("/f", version{}, nil)
		if err := s.flush(); err == nil || !strings.Contains(err.Error(), "another process has held "+dir) {
			t.Errorf("flush: %v, want it to name the lock", err)
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
		sc.MarkRead("/g", version{}, nil)
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
	})
	sc := open(t, Config{Dir: dir}).Scope("k", true)
	for _, path := range []string{"/f", "/g"} {
		if st := sc.Check(path, nil, nil); st.State != Current {
			t.Errorf("%s: %v, want current", path, st.State)
		}
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	hexName := strings.Repeat("0a", 32)
	old := time.Now().Add(-maxScopeAge - time.Hour)
	for name, mtime := range map[string]time.Time{
		hexName + ".scope":         old,
		hexName + ".scope.corrupt": old,
		fileName("fresh"):          time.Now(),
		fileName("fresh") + ".tmp": old, // not a name of ours
		"letter.scope":             old, // somebody else's
		hexName + ".scope." + strings.Repeat("A", 26) + ".tmp": time.Now(),
	} {
		write(t, filepath.Join(dir, name), "x", mtime)
	}
	open(t, Config{Dir: dir})
	var got []string
	for _, path := range files(t, dir, "*scope*") {
		got = append(got, filepath.Base(path))
	}
	want := []string{fileName("fresh"), fileName("fresh") + ".tmp", "letter.scope"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left (-want +got)\n%s", diff)
	}
}

func genRecords() *rapid.Generator[map[string]record] {
	hash := rapid.Custom(func(t *rapid.T) (h [32]byte) {
		copy(h[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
		return h
	})
	part := rapid.Custom(func(t *rapid.T) Part {
		start := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		return Part{rapid.Int().Draw(t, "line"), rapid.Int().Draw(t, "lines"), start,
			start + rapid.Int64Range(0, 1<<20).Draw(t, "length"), hash.Draw(t, "part")}
	})
	rec := rapid.Custom(func(t *rapid.T) record {
		r := record{seen: time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, "seen")).UTC(),
			gone: rapid.Bool().Draw(t, "gone")}
		if r.gone {
			return r
		}
		r.version = version{
			Size: rapid.Int64().Draw(t, "size"),
			ModTime: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"),
				rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")),
			Dev: rapid.Uint64().Draw(t, "dev"), Inode: rapid.Uint64().Draw(t, "inode"),
			Charset: rapid.SampledFrom([]string{"", "koi8-r"}).Draw(t, "charset"),
		}
		if r.whole = rapid.Bool().Draw(t, "whole"); r.whole {
			r.version.Hash, r.version.Hashed = hash.Draw(t, "whole hash"), true
			return r
		}
		r.excerpt = rapid.Bool().Draw(t, "excerpt")
		r.parts = rapid.SliceOfN(part, 1, 5).Draw(t, "parts")
		return r
	})
	return rapid.MapOf(rapid.String(), rec)
}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRecords().Draw(t, "files")
		data, err := encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for path, w := range want {
			if w.gone { // of a forgotten file only the moment counts
				w.version = got[path].version
				want[path] = w
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestPathsThatAreNotUTF8StayInMemory(t *testing.T) {
	data, err := encode(map[string]record{"/\xff": {whole: true, version: version{Hashed: true}},
		"/ok": {whole: true, version: version{Hashed: true}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(data)
	if _, ok := got["/ok"]; err != nil || len(got) != 1 || !ok {
		t.Errorf("%v, %v, want /ok alone", got, err)
	}
}

// FuzzDecode feeds what a stranger could have written, checksum and all.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`[{"path":"/f","whole":true,"hash":"AAAA"}]`))
	f.Add([]byte(`[{"path":"/f","gone":true},{"path":"/f","parts":[{"start":1,"end":9}]}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		decode(body)
		files, err := decode(append(fmt.Appendf(nil, "%s%x\n", header, HashOf(body)), body...))
		if err != nil {
			return
		}
		s := open(t, Config{})
		for path, r := range files {
			if s.Scope("k", false).compare(r, body); r.whole && !r.version.Hashed {
				t.Errorf("%q: whole without a hash", path)
			}
		}
	})
}
