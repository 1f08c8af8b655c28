package resultstore

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	s := open(t, Config{Dir: dir})
	alice, bob := s.For("alice"), s.For("bob")
	if alice.Dir() == bob.Dir() {
		t.Error("two principals share a directory")
	}
	if again := open(t, Config{Dir: dir}).For("alice").Dir(); again != alice.Dir() {
		t.Errorf("another process sees %s, want %s", again, alice.Dir())
	}
	if strings.Contains(alice.Dir(), "alice") {
		t.Errorf("%s names the principal", alice.Dir())
	}
	path := keep(t, alice, 10, 0)
	if filepath.Dir(path) != alice.Dir() {
		t.Errorf("%s is not in %s", path, alice.Dir())
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, alice.Dir(): 0o700, path: 0o600,
		filepath.Join(dir, openName): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %v", path, info, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	sh := open(t, Config{Dir: t.TempDir()}).For("p")
	for name, want := range map[string]string{
		"bash":                   "bash-",
		"":                       "result-",
		"../../etc/passwd":       "------etc-passwd-",
		"a\x00b\nc":              "a-b-c-",
		strings.Repeat("é", 100): strings.Repeat("-", 32) + "-",
	} {
		f, err := sh.Create(name)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		base := filepath.Base(f.Path())
		if !strings.HasPrefix(base, want) || !resultNames.MatchString(base) || filepath.Dir(f.Path()) != sh.Dir() {
			t.Errorf("%q: %s, want it to begin with %s", name, f.Path(), want)
		}
	}
}

func TestFile(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), MaxOne: 10})
	f, err := s.For("p").Create("bash")
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, want kept) {
		t.Helper()
		before := f.Kept().Stored
		if n, err := f.Write([]byte(text)); int64(n) != want.Stored-before || !errors.Is(err, want.Err) {
			t.Errorf("Write(%q) = %d, %v", text, n, err)
		}
		want.Path = f.Path()
		if diff := cmp.Diff(want, f.Kept(), cmp.Comparer(func(a,
			b error) bool {
			return errors.Is(a, b)
		})); diff != "" {
			t.Errorf("after %q (-want +got)\n%s", text, diff)
		}
	}
	write("", kept{})
	write("one\n", kept{Stored: 4})
	write("t", kept{Stored: 5})
	write("wo", kept{Stored: 7})
	write("\nthree\n", kept{Stored: 10, Err: errTooLarge})
	write("four\n", kept{Stored: 10, Err: errTooLarge})
	if data, err := os.ReadFile(f.Path()); string(data) != "one\ntwo\nth" {
		t.Errorf("in the file: %q, %v", data, err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write after Close: %v, want os.ErrClosed", err)
	}
	path := f.Path()
	for range 2 {
		if err := f.Discard(); err != nil {
			t.Error(err)
		}
	}
	if exists(path) || f.Kept().Path != "" {
		t.Errorf("%s is still there after Discard", path)
	}
}

func TestNothingUnfinishedStays(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	for _, end := range []func(*file) error{(*file).Discard, func(*file) error { return nil }} {
		f, err := s.For("p").Create("bash")
		if err != nil {
			t.Fatal(err)
		}
		if err := end(f); err != nil {
			t.Error(err)
		}
	}
	own := s.For("p").Dir()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Base(own)}, everything(t, dir)); diff != "" {
		t.Errorf("after Close (-want +got)\n%s", diff)
	}
	if _, err := s.For("p").Create("bash"); err == nil {
		t.Error("Create after Close: no error")
	}
}

// TestForeignFilesStay opens a directory that was configured by mistake.
func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	names := []string{"letter.txt", "project/main.go", "project/a-" + strings.Repeat("A", 26) + ".txt",
		strings.Repeat("0a", 16) + "/notes.txt", "open/letter.txt"}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		makeOlder(t, path, 1000*time.Hour)
	}
	keep(t, open(t, Config{Dir: dir}).For("p"), 1, 0)
	for _, name := range names {
		if !exists(filepath.Join(dir, name)) {
			t.Errorf("%s was removed", name)
		}
	}
}

func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleVariable+"=unfinished")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	paths := strings.Fields(line)
	finished, unfinished := paths[0], paths[1]

	alive := open(t, Config{Dir: dir})
	if !exists(unfinished) {
		t.Error("a living process lost its unfinished result")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if err := alive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, Config{Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	if exists(unfinished) || !exists(finished) {
		t.Errorf("after the kill: unfinished %v, finished %v, want only the finished one", exists(unfinished),
			exists(finished))
	}
	want := []string{filepath.Base(filepath.Dir(finished)),
		filepath.Join(filepath.Base(filepath.Dir(finished)), filepath.Base(finished))}
	if diff := cmp.Diff(want, everything(t, dir)); diff != "" {
		t.Errorf("left (-want +got)\n%s", diff)
	}
}

// TestWhatCannotBeRecovered puts a full directory in the place of a dead owner's file, which no removal gets rid of.
func TestWhatCannotBeRecovered(t *testing.T) {
	dir := t.TempDir()
	own, name := strings.Repeat("0a", 16), "bash-"+strings.Repeat("A", 26)+".txt"
	mark := filepath.Join(dir, openName, "DEAD", own+"."+name)
	for _, path := range []string{filepath.Join(dir, own, name, "x"), mark,
		filepath.Join(dir, openName, "DEAD"+lockMark)} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if path := keep(t, open(t, Config{Dir: dir}).For("p"), 1, 0); !exists(path) {
		t.Errorf("%s is not there", path)
	}
	if !exists(mark) {
		t.Error("the mark was removed before what it marks")
	}
	if err := os.RemoveAll(filepath.Join(dir, own)); err != nil {
		t.Fatal(err)
	}
	open(t, Config{Dir: dir})
	if exists(filepath.Join(dir, openName, "DEAD"+lockMark)) || exists(mark) {
		t.Error("the dead owner is still there once it could be recovered")
	}
}

func TestProcessesShare(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], dir)
			cmd.Env = append(os.Environ(), roleVariable+"=keeper")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	isResult := func(path string) bool { return !resultNames.MatchString(filepath.Base(path)) }
	if got := slices.DeleteFunc(everything(t, dir), isResult); len(got) != 200 {
		t.Errorf("%d results, want 200", len(got))
	}
	if left := everything(t, filepath.Join(dir, openName)); len(left) > 0 {
		t.Errorf("owners left: %q", left)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				f, err := s.For("p").Create("bash")
				if err != nil {
					t.Error(err)
					return
				}
				var writers sync.WaitGroup
				for range 2 {
					writers.Go(func() { f.Write([]byte("line\n")) })
				}
				writers.Wait()
				if k := f.Kept(); k.Stored != 10 {
					t.Errorf("%+v, want 10 bytes", k)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestDirectoryRemovedUnderneath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	s := open(t, Config{Dir: dir})
	keep(t, s.For("p"), 1, 0)
	own := s.For("p").Dir()
	for _, remove := range []string{dir, filepath.Join(dir, openName)} {
		if err := os.RemoveAll(remove); err != nil {
			t.Fatal(err)
		}
		if path := keep(t, s.For("p"), 1, 0); !exists(path) || filepath.Dir(path) != own {
			t.Errorf("after %s was removed: %s is not there, or not in %s", remove, path, own)
		}
	}
}

// TestDirectoryMovedUnderneath moves the directory away, and puts others in its place: a path that is told is one where the result is.
func TestDirectoryMovedUnderneath(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "state", "results")
	s := open(t, Config{Dir: dir})
	first := keep(t, s.For("p"), 1, 0)
	begun, err := s.For("p").Create("task")
	if err != nil {
		t.Fatal(err)
	}
	for n, moved := range []string{dir, filepath.Dir(dir)} {
		if err := os.Rename(moved, filepath.Join(parent, strconv.Itoa(n))); err != nil {
			t.Skip(err) // Windows moves no directory that is open
		}
		if path := keep(t, s.For("p"), 1, 0); !exists(path) || filepath.Dir(path) != filepath.Dir(first) {
			t.Errorf("after %s was moved: %s is not there, or not in %s", moved, path, filepath.Dir(first))
		}
		if path := s.For("p").Dir(); !exists(path) {
			t.Errorf("after %s was moved: there is no directory %s", moved, path)
		}
	}
	if _, err := begun.Write([]byte("x")); err != nil {
		t.Errorf("a file that was begun before: %v", err)
	}
	_ = begun.Discard() // it is where no one looks for it
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.For("p").Fit(numbered(1, 10_000), 100); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("with a file in its place: %v", err)
	}
}

// TestErrorsNameTheirFile puts into the directory what is in the way, and looks for its path in what is said.
func TestErrorsNameTheirFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(dir, openName)); err != nil {
		t.Skip(err) // not everybody may on Windows
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, Config{Dir: dir}).For("p").Fit(numbered(1, 10_000), 100); err == nil ||
		!strings.Contains(err.Error(), filepath.Join(real, openName)) {
		t.Errorf("a link in the place of %s: %v", openName, err)
	}
}

func TestWithoutDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ dir, want string }{
		"none set": {"", errNoDir.Error()},
		"a file":   {file, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			sh := open(t, Config{Dir: tt.dir}).For("p")
			got, err := sh.Fit(numbered(1, 100), 100)
			if err == nil || !got.Cut || got.Path != "" ||
				!regexp.MustCompile(`The whole was not kept: .*`+tt.want).MatchString(got.Text) {
				t.Errorf("%+v, %v, want it cut and said why it is not kept", got, err)
			}
			if sh.Dir() != "" {
				t.Errorf("Dir() = %q, want none", sh.Dir())
			}
		})
	}
	if _, err := Open(Config{Dir: "results"}); err == nil {
		t.Error("a relative directory: no error")
	}
}

// BenchmarkCreate makes a file in a directory that is nearly full.
func BenchmarkCreate(b *testing.B) {
	sh := open(b, Config{Dir: b.TempDir()}).For("p")
	fill(b, sh, maxResults-1)
	for b.Loop() {
		f, err := sh.Create("bash")
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Discard(); err != nil {
			b.Fatal(err)
		}
	}
}
