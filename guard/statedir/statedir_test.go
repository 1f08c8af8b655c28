package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// fill makes files whose names tell their kind, each an hour older than the one before, of ten bytes.
func fill(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range names {
		path := filepath.Join(dir, name)
		then := time.Now().Add(-time.Duration(i) * time.Hour)
		err := errors.Join(os.WriteFile(path, make([]byte, 10), 0o600), os.Chtimes(path, then, then))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func kindOf(e fs.DirEntry) Kind {
	kinds := map[string]Kind{"foreign": Foreign, "latest": Latest, "unfinished": Unfinished}
	name, _, _ := strings.Cut(e.Name(), "-")
	if kind, known := kinds[name]; known {
		return kind
	}
	return Kept
}

func TestSweep(t *testing.T) {
	all := []string{"a", "b", "unfinished-c", "foreign-d", "e", "latest-f"}
	for _, tt := range []struct {
		keep Limits
		left string
	}{
		{Limits{}, "a b e foreign-d latest-f"},
		{Limits{Age: 90 * time.Minute}, "a b foreign-d latest-f"},
		{Limits{Age: time.Minute}, "a foreign-d latest-f"},
		{Limits{Files: 2}, "a foreign-d latest-f"},
		{Limits{Files: 1}, "foreign-d latest-f"},
		{Limits{Bytes: 30}, "a b foreign-d latest-f"},
		{Limits{Bytes: 29}, "a foreign-d latest-f"},
		{Limits{Bytes: 1}, "foreign-d latest-f"},
	} {
		dir := fill(t, all...)
		if err := SweepDir(dir, tt.keep, kindOf); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if got := strings.Join(left, " "); got != tt.left {
			t.Errorf("%+v: left are %q, want %q", tt.keep, got, tt.left)
		}
	}
	if err := SweepDir(filepath.Join(t.TempDir(), "none"), Limits{Files: 1}, All); err != nil {
		t.Errorf("a directory that does not exist: %v", err)
	}
}

// TestSweepDirectories: a directory that is too old is removed with its content, and a link is removed, not its target.
func TestSweepDirectories(t *testing.T) {
	dir, target := t.TempDir(), fill(t, "kept")
	if err := os.MkdirAll(filepath.Join(dir, "old", "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "old"), then, then); err != nil {
		t.Fatal(err)
	}
	linked := os.Symlink(target, filepath.Join(dir, "unfinished-link")) == nil // not on every Windows
	if err := SweepDir(dir, Limits{Age: time.Minute}, kindOf); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(target, "kept")); linked && err != nil {
		t.Error(err)
	}
}

// TestSweepKilled: a sweep that follows a killed one has the same result, and a half-removed directory is not kept.
func TestSweepKilled(t *testing.T) {
	for _, gone := range [][]string{{}, {"e"}, {"b"}, {"unfinished-c"}, {"b", "e"}, {"b", "e", "unfinished-c"}} {
		dir := fill(t, "a", "b", "unfinished-c", "foreign-d", "e", "latest-f")
		for _, name := range gone {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, doomed+"g", "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := SweepDir(dir, Limits{Files: 2}, kindOf); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if got := strings.Join(left, " "); got != "a foreign-d latest-f" {
			t.Errorf("without %q: left are %q", gone, got)
		}
	}
}

func TestTidied(t *testing.T) {
	dir := t.TempDir()
	if !TidyDue(dir, time.Hour) {
		t.Error("a directory that was never tidied is not due")
	}
	if err := NoteTidied(dir); err != nil || TidyDue(dir, time.Hour) || !TidyDue(dir, 0) {
		t.Errorf("tidied at %v: %v", TidiedAt(dir), err)
	}
	future := time.Now().Add(time.Hour).Format(time.RFC3339Nano)
	for _, text := range []string{"", "no time", future, strings.Repeat("x", 2*maxTidied)} {
		if err := os.WriteFile(filepath.Join(dir, tidiedName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if !TidyDue(dir, time.Hour) {
			t.Errorf("%.20q: not due", text)
		}
	}
}

func TestCheck(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("access lists are not examined")
	}
	base := fill(t, "file")
	for name, mode := range map[string]os.FileMode{"own": 0o700, "group": 0o750, "all": 0o777} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(base, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("own", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "group", "all", "link", "file"} {
		err, own := Check(filepath.Join(base, name)), name == "own"
		if own && err != nil || !own && !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Check(filepath.Join(base, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
