package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The writer of TestRotationLosesNoLine is this test program, run again with these in its environment.
const (
	writerPath  = "TOOLHOST_AUDIT_WRITER"
	writerName  = "TOOLHOST_AUDIT_WRITER_NAME"
	writers     = 8   // in each process
	linesEach   = 400 // of each writer
	lineOfAbout = 600 // bytes
)

func TestMain(m *testing.M) {
	rotatePatience = time.Minute
	if path := os.Getenv(writerPath); path != "" {
		if err := writeMany(path, os.Getenv(writerName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeMany writes as several hosts would: each writer has a Log of its own.
func writeMany(path, name string) error {
	failed := make(chan error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			l, err := Open(Config{Path: path, MaxSize: MinSize, Keep: 1000})
			if err != nil {
				failed <- err
				return
			}
			defer l.Close()
			for n := range linesEach {
				if err := l.Ready(); err != nil {
					failed <- err
					return
				}
				r := Record{Tool: fmt.Sprintf("%s-%d-%d", name, w, n), Command: strings.Repeat("x", lineOfAbout)}
				if err := l.Write(r); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// toolsIn returns what was called in each record of a log and its rotated files, the oldest first.
func toolsIn(t *testing.T, path string) (tools []string, files int) {
	t.Helper()
	names := []string{path}
	for n := 1; exists(path + "." + strconv.Itoa(n)); n++ {
		names = append(names, path+"."+strconv.Itoa(n))
	}
	slices.Reverse(names)
	for _, name := range names {
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var r Record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Errorf("%s holds a torn line %q: %v", name, lines.Text(), err)
			}
			tools = append(tools, r.Tool)
		}
		if info, _ := f.Stat(); info.Size() > MinSize {
			t.Errorf("%s holds %d bytes, at most %d are allowed", name, info.Size(), MinSize)
		}
		f.Close()
	}
	return tools, len(names)
}

func TestRotationLosesNoLine(t *testing.T) {
	if !movesOpenFiles {
		t.Skip("a log that several hosts have open is not rotated on this system")
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var all sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		all.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), writerPath+"="+path, writerName+"="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	got, files := toolsIn(t, path)
	seen := map[string]int{}
	for _, tool := range got {
		seen[tool]++
	}
	for _, name := range []string{"a", "b"} {
		for w := range writers {
			for n := range linesEach {
				if tool := fmt.Sprintf("%s-%d-%d", name, w, n); seen[tool] != 1 {
					t.Errorf("%s is recorded %d times", tool, seen[tool])
				}
			}
		}
	}
	if atLeast := 2 * writers * linesEach * lineOfAbout / MinSize; files < atLeast {
		t.Errorf("%d files, want at least %d", files, atLeast)
	}
}

func TestKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	fill(t, Config{Path: path, MaxSize: MinSize, Keep: 3}, 0, 1000)
	got, files := toolsIn(t, path)
	if files != 4 {
		t.Errorf("%d files, want the log and three", files)
	}
	first, _ := strconv.Atoi(got[0])
	for i, tool := range got {
		if tool != strconv.Itoa(first+i) {
			t.Fatalf("record %d is %s, want %d: the order is lost", i, tool, first+i)
		}
	}
	if got[len(got)-1] != "999" {
		t.Errorf("the last record is %s", got[len(got)-1])
	}
	fill(t, Config{Path: path, MaxSize: MinSize, Keep: 1}, 1000, 1200)
	if _, files := toolsIn(t, path); files != 2 {
		t.Errorf("%d files after keep was lowered, want 2", files)
	}
}

// fill writes numbered records.
func fill(t *testing.T, cfg Config, from, to int) {
	t.Helper()
	cfg.Warn = func(err error) { t.Error(err) }
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := from; n < to; n++ {
		if err := l.Write(Record{Tool: strconv.Itoa(n), Command: strings.Repeat("x", lineOfAbout)}); err != nil {
			t.Fatal(err)
		}
	}
}

// A host may be killed after any step of a rotation. The next one loses nothing that should be kept.
func TestCrashInRotation(t *testing.T) {
	const keep = 3
	steps := len(moves("log", keep, func(name string) bool { return name != "log.4" }))
	for done := range steps + 1 {
		t.Run(strconv.Itoa(done), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			cfg := Config{Path: path, MaxSize: MinSize, Keep: keep}
			fill(t, cfg, 0, 1000)
			before, _ := toolsIn(t, path)
			oldest := 0 // records in the file that must go
			if raw, err := os.ReadFile(path + ".3"); err == nil {
				oldest = strings.Count(string(raw), "\n")
			}
			for _, m := range moves(path, keep, exists)[:done] {
				if err := m.do(); err != nil {
					t.Fatal(err)
				}
			}
			fill(t, cfg, 1000, 1001)
			got, files := toolsAnywhere(t, path, keep)
			want := append(slices.Clone(before), "1000")
			if done > 0 {
				want = want[oldest:]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after %d steps (-want +got):\n%s", done, diff)
			}
			if files > keep+1 {
				t.Errorf("%d files", files)
			}
			fill(t, cfg, 1001, 1400) // it goes on
			if got, _ := toolsIn(t, path); got[len(got)-1] != "1399" {
				t.Errorf("the last record is %s", got[len(got)-1])
			}
		})
	}
}

// toolsAnywhere is toolsIn for a log with a gap in its numbers.
func toolsAnywhere(t *testing.T, path string, keep int) (tools []string, files int) {
	t.Helper()
	for n := keep; n >= 0; n-- {
		name := path
		if n > 0 {
			name += "." + strconv.Itoa(n)
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		files++
		for line := range strings.Lines(string(raw)) {
			var r Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			tools = append(tools, r.Tool)
		}
	}
	return tools, files
}

func TestMoves(t *testing.T) {
	tests := []struct {
		name  string
		taken string
		keep  int
		want  []move
	}{
		{"first", "log", 2, []move{{"log", "log.1"}}},
		{"second", "log log.1", 2, []move{{"log.1", "log.2"}, {"log", "log.1"}}},
		{"all taken", "log log.1 log.2", 2, []move{{"log.2", ""}, {"log.1", "log.2"}, {"log", "log.1"}}},
		{"a gap is used up", "log log.2", 2, []move{{"log", "log.1"}}},
		{"a gap further up", "log log.1 log.3", 3, []move{{"log.1", "log.2"}, {"log", "log.1"}}},
		{"more than are kept", "log log.1 log.2 log.3", 1, []move{{"log.2", ""}, {"log.3", ""}, {"log.1", ""}, {"log", "log.1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			names := strings.Fields(tt.taken)
			got := moves("log", tt.keep, func(name string) bool { return slices.Contains(names, name) })
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(move{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A program outside may rotate by copying the file and truncating it.
func TestTruncatedOutside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Config{Path: path, MaxSize: MinSize, Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		if err := l.Ready(); err != nil {
			t.Fatal(err)
		}
		if err := l.Write(Record{Tool: "Read"}); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Ready(); err != nil {
		t.Fatal(err)
	}
	if l.reserved != reserveSize {
		t.Errorf("%d bytes count as reserved after the file was truncated, want %d", l.reserved, reserveSize)
	}
	if err := l.Write(Record{Tool: "Edit"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := toolsIn(t, path); len(got) != 1 || got[0] != "Edit" {
		t.Errorf("the truncated log holds %q", got)
	}
}

func TestRotationThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	// A directory in the way can be neither replaced nor, not being empty, removed.
	if err := os.MkdirAll(filepath.Join(path+".1", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	var told []string
	l, err := Open(Config{Path: path, MaxSize: MinSize, Keep: 1,
		Warn: func(err error) { told = append(told, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 300 {
		if err := l.Write(Record{Command: strings.Repeat("x", lineOfAbout)}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil || strings.Count(string(raw), "\n") != 300 {
		t.Errorf("the log holds %d of 300 lines, %v", strings.Count(string(raw), "\n"), err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "keeps growing") {
		t.Errorf("told %q, want once that the log keeps growing", told)
	}
}

func TestRotationOfALinkMovesTheFile(t *testing.T) {
	dir := t.TempDir()
	link, file := filepath.Join(dir, "link"), filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	fill(t, Config{Path: link, MaxSize: MinSize, Keep: 2}, 0, 150)
	if _, err := os.Stat(file + ".1"); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was moved away: %v", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	l, err := Open(Config{Path: filepath.Join(b.TempDir(), "audit.jsonl"), MaxSize: DefaultMaxSize, Keep: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	r := Record{Principal: "local", Scope: "process:0123456789ab", Tool: "Read",
		Reads: []string{"/home/someone/project/main.go"}, Verdict: "allow"}
	for b.Loop() {
		if err := l.Ready(); err != nil {
			b.Fatal(err)
		}
		if err := l.Write(r); err != nil {
			b.Fatal(err)
		}
	}
}
