//go:build unix

package baseline

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestListed has what stands at and below protected names be replaced: each time the number changes.
func TestListed(t *testing.T) {
	dir := t.TempDir()
	at := func(rel string) string { return filepath.Join(dir, rel) }
	for _, rel := range []string{".vscode/sub/deep", ".mcp.json", ".envrc", "other"} {
		if err := os.MkdirAll(at(rel), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, at(".vscode/settings.json"), "{}")
	k := hostIn(t, t.TempDir())
	k.marks(dir)
	before, listed := k.marks(dir)
	if listed == 0 {
		t.Skip("the directory is not watched")
	}
	if _, again := k.marks(dir); again != listed {
		t.Fatalf("nothing has changed: %d, then %d", listed, again)
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"a new file", func() error { return os.WriteFile(at(".vscode/sub/deep/x"), nil, 0o600) }},
		{"a directory by another one", func() error {
			return errors.Join(os.Rename(at(".vscode"), at("away")), os.MkdirAll(at(".vscode"), 0o755))
		}},
		{"a directory by a file", func() error {
			return errors.Join(os.Remove(at(".mcp.json")), os.WriteFile(at(".mcp.json"), nil, 0o600))
		}},
		{"a file by a directory", func() error { return errors.Join(os.Remove(at(".mcp.json")), os.Mkdir(at(".mcp.json"), 0o755)) }},
		{"the workspace by another one", func() error {
			return errors.Join(os.Rename(dir, dir+"-away"), os.MkdirAll(at(".vscode/sub/deep"), 0o755),
				os.WriteFile(at(".mcp.json"), nil, 0o600), os.Mkdir(at(".envrc"), 0o755))
		}},
		{"a directory by a link", func() error { return errors.Join(os.Remove(at(".envrc")), os.Symlink("other", at(".envrc"))) }},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		marks, now := k.marks(dir)
		if !slices.Equal(marks, before) {
			t.Errorf("%s: the marks are %q, not %q", step.name, marks, before)
		}
		if now == listed {
			t.Errorf("%s: it is as if nothing had changed", step.name)
		}
		listed = now
	}
}
