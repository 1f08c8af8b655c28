package privatefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	for i, text := range []string{"one", "", "three"} {
		replace := Replace
		if i == 2 {
			replace = ReplaceQuickly
		}
		if err := replace(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("got %q, %v", got, err)
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if perm := info.Mode().Perm(); perm != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v", perm)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

// TestFailure asks that a failed write leaves nothing behind and says which file.
func TestFailure(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "place")
	if err := os.MkdirAll(filepath.Join(place, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(place, []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Replace(filepath.Join(dir, "none", "f"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

// TestCreate has several writers: one wins, and all that can be read is its text.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	var writers sync.WaitGroup
	won := make(chan string, 8)
	for i := range cap(won) {
		writers.Go(func() {
			switch err := Create(file, []byte(strconv.Itoa(i))); {
			case err == nil:
				won <- strconv.Itoa(i)
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if len(won) != 1 {
		t.Fatalf("%d writers won", len(won))
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != <-won {
		t.Errorf("got %q, %v", got, err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".new-old", ".new-now", "old", ".newer"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".new-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * draftAge)
	for _, name := range []string{".new-old", "old", ".newer", ".new-dir"} {
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if err := Replace(filepath.Join(dir, "f"), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{".new-dir", ".new-now", ".newer", "f", "old"}
	got := names(t, dir)
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := sweep(filepath.Join(dir, "none"), time.Now()); err != nil {
		t.Error(err)
	}
}

// TestAppendToDirectory: no one is told to remove a directory.
func TestAppendToDirectory(t *testing.T) {
	f, err := Append(t.TempDir())
	if err == nil {
		f.Close()
	}
	if err == nil || !strings.HasSuffix(err.Error(), "is a directory: name a file") {
		t.Errorf("got %v", err)
	}
}
