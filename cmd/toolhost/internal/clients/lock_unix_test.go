//go:build unix

package clients

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPlantedLock: what stands in the place of the lock is neither followed nor waited for, and nothing is edited.
func TestPlantedLock(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, lock string) error{
		"a pipe":           func(_ *testing.T, lock string) error { return syscall.Mkfifo(lock, 0o600) },
		"a directory":      func(_ *testing.T, lock string) error { return os.Mkdir(lock, 0o700) },
		"a link to a file": func(_ *testing.T, lock string) error { return os.Symlink("mcp.json", lock) },
		"a link to where there is none": func(t *testing.T, lock string) error {
			t.Cleanup(func() {
				if _, err := os.Lstat(filepath.Join(filepath.Dir(lock), "made")); err == nil {
					t.Error("a file was made behind the link")
				}
			})
			return os.Symlink("made", lock)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := known("cursor")
			r := scratch(t, c)
			file := c.UserFile(r.Env)
			write(t, file, "{}\n", 0o600)
			if err := plant(t, filepath.Join(filepath.Dir(file), ".mcp.json.toolhost-lock")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Install(t.Context(), r); err == nil || !strings.Contains(err.Error(), "toolhost-lock") {
				t.Errorf("got %v", err)
			}
			if now, err := os.ReadFile(file); err != nil || string(now) != "{}\n" {
				t.Errorf("the file holds %q, %v", now, err)
			}
		})
	}
}
