package builtin

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSavedIndexesRemoved: a host removes the indexes that earlier versions saved, and nothing else.
func TestSavedIndexesRemoved(t *testing.T) {
	const saved = "0123456789abcdef0123456789abcdef"
	outside := filepath.Join(t.TempDir(), "outside")
	for _, tt := range []struct {
		name        string
		files, left []string // in search/
		link        bool     // search is a link to a directory outside
	}{
		{"indexes", []string{saved + ".idx", saved + ".new", "lock"}, nil, false},
		{"files of another program", []string{saved + ".idx", "notes.txt", "sub/x.idx"}, []string{"notes.txt", "sub"}, false},
		{"a link", []string{saved + ".idx"}, []string{saved + ".idx"}, true},
	} {
		state := t.TempDir()
		dir := filepath.Join(state, "search")
		if tt.link {
			if err := os.Mkdir(outside, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, dir); err != nil {
				t.Skip(err)
			}
		}
		for _, name := range tt.files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("texts"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		box, err := OpenRuntime(RuntimeConfig{StateDir: state, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if gone := os.IsNotExist(err); !slices.Equal(left, tt.left) || gone != (tt.left == nil) {
			t.Errorf("%s: %q are left, want %q", tt.name, left, tt.left)
		}
	}
}
