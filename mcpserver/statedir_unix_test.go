//go:build unix

package mcpserver

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestPlantedState plants in a state directory what another user, or no one who means well, has made there.
func TestPlantedState(t *testing.T) {
	const stranger = 54321
	tests := []struct {
		name  string
		plant func(dir string) error
		says  string // "": it is used
		root  bool   // only root can plant it
	}{
		{name: "nothing", plant: func(string) error { return nil }},
		{name: "open to others", plant: func(dir string) error { return os.Chmod(dir, 0o777) }},
		{name: "a link of one's own", plant: func(dir string) error {
			return os.Symlink(t.TempDir(), filepath.Join(dir, "history"))
		}},
		{name: "a link to nothing", plant: func(dir string) error { return os.Symlink("/nonexistent/x", filepath.Join(dir, "secret")) }},
		{name: "something else", root: true, plant: func(dir string) error { return plant(filepath.Join(dir, "notes.txt"), stranger) }},
		{name: "a pipe", plant: func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "audit.jsonl"), 0o600) }, says: "neither a file nor a directory"},
		{name: "another's trust", root: true, plant: func(dir string) error { return plant(filepath.Join(dir, "trust.json"), stranger) }, says: "belongs to another user"},
		{name: "another's link", root: true, plant: func(dir string) error {
			link := filepath.Join(dir, "journal")
			if err := os.Symlink(t.TempDir(), link); err != nil {
				return err
			}
			return os.Lchown(link, stranger, stranger)
		}, says: "belongs to another user"},
		{name: "a link to another's", root: true, plant: func(dir string) error {
			there := t.TempDir()
			if err := os.Chown(there, stranger, stranger); err != nil {
				return err
			}
			return os.Symlink(there, filepath.Join(dir, "history"))
		}, says: "belongs to another user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root {
				testenv.NeedsUsers(t)
			}
			cfg := Config{Roots: []string{t.TempDir()}, StateDir: t.TempDir()}
			if err := tt.plant(cfg.StateDir); err != nil {
				t.Fatal(err)
			}
			h, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if got := h.stateDirErr; tt.says == "" && got != nil || tt.says != "" &&
				(got == nil || !strings.Contains(got.Error(), tt.says)) {
				t.Fatalf("the state directory: %v, want %q", got, tt.says)
			}
			if tt.says == "" {
				return
			}
			if _, _, _, err := h.Token(""); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("a token was kept: %v", err)
			}
			if err := h.Ready(); err == nil {
				t.Error("the host says that it is ready")
			}
			if entries, err := os.ReadDir(cfg.StateDir); err != nil || len(entries) != 1 {
				t.Errorf("beside what was planted there is %v, %v", entries, err)
			}
		})
	}
}

func plant(file string, uid int) error {
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		return err
	}
	return os.Chown(file, uid, uid)
}
