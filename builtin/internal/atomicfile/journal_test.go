package atomicfile

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// orphan makes an entry for a write in place as a process leaves it that died.
func orphan(t *testing.T, journal, path, old, new string) string {
	t.Helper()
	h := header{Dir: path, Base: "f", Mode: 0o640}
	if info, err := os.Stat(filepath.Join(path, "f")); err == nil {
		h.Dev, h.Ino = identity(info)
	}
	e, err := recordInPlace(journal, h, []byte(old), [][]byte{[]byte(new)})
	if err != nil {
		t.Fatal(err)
	}
	e.abandon()
	return e.path
}

func TestRecoverInPlace(t *testing.T) {
	const old, new = "old content, long", "NEW"
	tests := []struct {
		name, now, want string
		restored, saved bool
	}{
		{"not begun", old, old, false, false},
		{"done", new, new, false, false},
		{"torn", "NEW content, long", old, true, false},
		{"torn at a block", "NEd content, long", old, true, false},
		{"changed since", "mended by hand", "mended by hand", false, true},
		{"longer than both", old + "!", old + "!", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, path, journal := room(t)
			file := filepath.Join(path, "f")
			put(t, file, tt.now, 0o600)
			orphan(t, journal, path, old, new)
			if !Torn(journal, file) || Torn(journal, file+"x") {
				t.Error("it is not told which file may be torn")
			}
			report, err := Recover(context.Background(), journal)
			if err != nil {
				t.Fatal(err)
			}
			if Torn(journal, file) {
				t.Error("it is said to be torn after it was dealt with")
			}
			if got := content(t, file); got != tt.want {
				t.Errorf("content %q, want %q", got, tt.want)
			}
			if (len(report.Restored) == 1) != tt.restored || (report.Saved[file] != "") != tt.saved {
				t.Errorf("report %+v", report)
			}
			if tt.saved {
				if got := content(t, report.Saved[file]); got != old {
					t.Errorf("saved %q", got)
				}
				return
			}
			tidy(t, path, journal, "f")
		})
	}
}

func TestRecoverWhenTheFileIsGone(t *testing.T) {
	_, path, journal := room(t)
	file := filepath.Join(path, "f")
	put(t, file, "new", 0o600)
	orphan(t, journal, path, "old", "new")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	report, err := Recover(context.Background(), journal)
	if err != nil || content(t, report.Saved[file]) != "old" {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestNoJournal spoils the journal: a rename needs none, writing in place does.
func TestNoJournal(t *testing.T) {
	dir, path, journal := room(t)
	if err := os.WriteFile(journal, nil, 0o600); err != nil { // where a directory should be
		t.Fatal(err)
	}
	for _, want := range []string{"new", "newer"} {
		if _, err := Replace(dir, "f", Options{JournalDir: journal}, []byte(want)); err != nil ||
			content(t, filepath.Join(path, "f")) != want {
			t.Errorf("a rename: %v", err)
		}
	}
	if err := os.Link(filepath.Join(path, "f"), filepath.Join(path, "g")); err != nil {
		t.Skip("no hard links here:", err)
	}
	if _, err := Replace(dir, "f", Options{JournalDir: journal}, []byte("newest")); err == nil ||
		content(t, filepath.Join(path, "f")) != "newer" {
		t.Errorf("in place: %v, want it refused", err)
	}
	if names := list(t, path); len(names) != 2 {
		t.Errorf("left: %q", names)
	}
}

// TestJournalRemoved removes the journal between two writes, as a user does who clears the state directory under a running host.
func TestJournalRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	dir, _, journal := room(t)
	var temps Temps
	defer temps.Close()
	for range 2 {
		if _, err := Replace(dir, "f", Options{JournalDir: journal, Temps: &temps}, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if len(list(t, journal)) != 1 {
			t.Error("the name kept for the next write is not in the journal")
		}
		if err := os.RemoveAll(journal); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecoverLeavesTheLivingAlone(t *testing.T) {
	dir, path, journal := room(t)
	handle, err := dir.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	r := &replacement{dir: dir, handle: handle, base: "f", content: [][]byte{[]byte("x")},
		Options: Options{JournalDir: journal}}
	temp := r.newTemp()
	if err := temp.write(r.content, tempMode); err != nil {
		t.Fatal(err)
	}
	if report, err := Recover(context.Background(), journal); err != nil || len(report.Removed) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if len(list(t, path)) != 1 {
		t.Error("the temporary file of a living writer is gone")
	}
	// It dies.
	temp.file.Close()
	temp.intent.abandon()
	if report, err := Recover(context.Background(), journal); err != nil || len(report.Removed) != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	tidy(t, path, journal)
}

func TestRecoverDamagedEntries(t *testing.T) {
	_, path, journal := room(t)
	file := filepath.Join(path, "f")
	put(t, file, "NEd", 0o600)
	first := orphan(t, journal, path, "old", "NEW")
	whole := []byte(content(t, first))
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	entry := filepath.Join(journal, "x"+entrySuffix)
	for n := range whole {
		put(t, entry, string(whole[:n]), 0o600)
		if _, err := Recover(context.Background(), journal); err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if got := content(t, file); got != "NEd" || len(list(t, journal)) > 0 {
			t.Fatalf("cut at %d: content %q, journal %q", n, got, list(t, journal))
		}
	}
	for _, at := range []int{0, len(magic), len(magic) + 3, len(magic) + 10, len(whole) - 1} {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x10
		put(t, entry, string(bad), 0o600)
		_, err := Recover(context.Background(), journal)
		if got := content(t, file); got != "NEd" {
			t.Fatalf("changed at %d: content %q, %v", at, got, err)
		}
	}
	if report, err := Recover(context.Background(), filepath.Join(path, "none")); err != nil || report.Removed != nil {
		t.Errorf("no journal: %+v, %v", report, err)
	}
}

func TestRecoverRemovesOnlyTemporaryFiles(t *testing.T) {
	_, path, journal := room(t)
	put(t, filepath.Join(path, "f"), "old", 0o600)
	e, err := recordTemp(journal, path, "f")
	if err != nil {
		t.Fatal(err)
	}
	e.abandon()
	if _, err := Recover(context.Background(), journal); err == nil {
		t.Error("no error")
	}
	if got := content(t, filepath.Join(path, "f")); got != "old" {
		t.Errorf("content %q", got)
	}
}

func TestRecoverTrustsOnlyItsOwner(t *testing.T) {
	if !locksAmongProcesses {
		t.Skip("needs the owner and mode of Unix")
	}
	_, path, journal := room(t)
	put(t, filepath.Join(path, "f"), "NEd", 0o600)
	entry := orphan(t, journal, path, "old", "NEW")
	if err := os.Chmod(entry, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(context.Background(), journal); err == nil || !strings.Contains(err.Error(), "not trusted") {
		t.Errorf("error %v", err)
	}
	if got := content(t, filepath.Join(path, "f")); got != "NEd" {
		t.Errorf("content %q", got)
	}
}

// FuzzTorn checks that whatever a write that stops after n bytes leaves is
// taken for torn.
func FuzzTorn(f *testing.F) {
	f.Add([]byte("old content"), []byte("new"), 2)
	f.Fuzz(func(t *testing.T, old, new []byte, n int) {
		n = min(max(n, 0), len(new))
		now := append(bytes.Clone(new[:n]), old[min(n, len(old)):]...)
		if !mixesContents(now, old, new) {
			t.Errorf("%q from %q over %q", now, new, old)
		}
	})
}
