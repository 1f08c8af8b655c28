//go:build slow

package clients

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestoreUndoesReplace: whatever the files were, they are that again, to the byte.
func TestRestoreUndoesReplace(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	for _, c := range replaceable() {
		for _, s := range samplesOf(c) {
			r := scratch(t, c)
			r.Server, r.Force = local, true
			files := map[string]string{c.UserFile(r.Env): s.body}
			for _, p := range c.Replaces {
				if file, f := p.in(c, r.Env); p.File != "" && c.format() == f {
					files[file] = s.body
				}
			}
			for file, body := range files {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, file, body, 0o600)
			}
			for range 2 { // the second time there is nothing to do
				if _, err := c.Install(t.Context(), r); err != nil {
					t.Fatalf("%s, %s: %v", c.Name, s.name, err)
				}
				if _, err := c.Replace(t.Context(), r); err != nil && !errors.Is(err, errByHand) {
					t.Fatalf("%s, %s: %v", c.Name, s.name, err)
				}
			}
			if _, err := c.Restore(t.Context(), r); err != nil {
				t.Fatalf("%s, %s: %v", c.Name, s.name, err)
			}
			if _, err := c.Uninstall(t.Context(), r); err != nil {
				t.Fatalf("%s, %s: %v", c.Name, s.name, err)
			}
			for file, body := range files {
				if raw, err := os.ReadFile(file); err != nil || string(raw) != body {
					t.Errorf("%s, %s: %s (%v):\n%s", c.Name, s.name, file, err, cmp.Diff(body, string(raw)))
				}
			}
		}
	}
}
