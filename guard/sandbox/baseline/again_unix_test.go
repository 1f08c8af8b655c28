//go:build unix

package baseline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was moved away stays where it is in later checks; a new file of the first name is moved away as well.
func TestMovedOnce(t *testing.T) {
	for _, c := range []struct{ name, path string }{
		{"hook of a bare repository", "srv.git/hooks/post-receive"},
		{"hook of a repository", "sub/.git/hooks/pre-commit"},
		{"hook of a submodule", ".git/modules/sub/hooks/post-checkout"},
		{"hook with a long name", "srv.git/hooks/" + strings.Repeat("h", 200)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.path)
			repo := filepath.Dir(filepath.Dir(path))
			write(t, filepath.Join(repo, "HEAD"), "ref: refs/heads/main\n")
			write(t, filepath.Join(repo, "objects", "info", "packs"), "")
			write(t, filepath.Join(repo, "refs", "heads", "main"), "")
			write(t, filepath.Join(repo, "config"), "[core]\n\tbare = true\n")
			g, err := guardOf(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, moved := range []string{path + ".quarantined-1", path + ".quarantined-2"} {
				write(t, path, "#!/bin/sh\n")
				if err := os.Chmod(path, 0o755); err != nil {
					t.Fatal(err)
				}
				if notes, err := g.Clean(); len(notes) != 1 || err != nil {
					t.Errorf("notes %q, %v, want one", notes, err)
				}
				for range 3 {
					if notes, err := g.Clean(); len(notes) != 0 || err != nil {
						t.Errorf("a later check: %q, %v", notes, err)
					}
				}
				if _, err := os.Lstat(path); err == nil {
					t.Error("the hook is still in effect")
				}
				if _, err := os.Lstat(moved); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
