//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestSandboxPathsStrayLinks: a link whose name a rule denies hides what it leads to, but for what commands need to do anything.
func TestSandboxPathsStrayLinks(t *testing.T) {
	top, ws := workspace(t)
	tree(t, ws, "src/deep/own.key", "src/plain", "data/file")
	tree(t, top, "elsewhere/secret/file")
	for _, tt := range []struct {
		link, to string
		hidden   bool
	}{
		{"root.key", ".", false},
		{"whole.key", ws, false},
		{"above.key", "..", false},
		{"top.key", "/", false},
		{"programs.key", "/usr", false},
		{"shell.key", "/usr/bin", false},
		{"src.key", "src", true},
		{"src/deep/up.key", "../..", false},
		{"chain.key", "root.key", false},
		{"missing.key", "nothing", true}, // which hides nothing
		{"circle.key", "circle.key", true},
		{"file.key", "src/plain", true},
		{"out.key", filepath.Join(top, "elsewhere/secret"), true},
		{"out-file.key", filepath.Join(top, "elsewhere/secret/file"), true},
		{"literal", ".", false},
		{".bashrc", ".", false},
		{"edit.lock", ".", false},
	} {
		name := filepath.Join(ws, tt.link)
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(tt.to, name); err != nil {
			t.Fatal(err)
		}
		held := policy(t, ws, testRules(ws, "deny Read(*.key)\ndeny Read(/literal)\ndeny Edit(*.lock)"),
			contained).Commands().SandboxPaths()
		if got := slices.Contains(held.Denied, name); got != tt.hidden {
			t.Errorf("%s, which leads to %s, is denied: %v, want %v", tt.link, tt.to, got, tt.hidden)
		}
		if own := filepath.Join(ws, "src/deep/own.key"); !slices.Contains(held.Denied, own) {
			t.Errorf("%s: %s is not denied by its own name", tt.link, own)
		}
		if slices.Contains(held.ReadOnly, name) {
			t.Errorf("%s, which leads to %s, is kept, and the root with it", tt.link, tt.to)
		}
		if tt.link != "root.key" {
			_ = os.Remove(name)
		}
	}
}

// A link that is there when the rules are read denies no root by its own name.
func TestLinkToRoot(t *testing.T) {
	top, ws := workspace(t)
	tree(t, top, "ws/secrets2 -> .", "ws/up -> ..", "ws/more/file", "ws/aside -> more", "outer -> ws")
	p := policy(t, ws, testRules(ws, "deny Read(secrets2/**)\ndeny Read(/up/**)\ndeny Read(/aside/**)\ndeny Read(/"+top+
		"/outer/src/**)"), contained)
	for name, hidden := range map[string]bool{"ws/README.md": false, "ws/more/file": true, "ws/src/main.go": true} {
		if got := p.Hidden(filepath.Join(top, name), false); got != hidden {
			t.Errorf("%s is hidden: %v, want %v", name, got, hidden)
		}
	}
	if got := p.Commands().SandboxPaths(); slices.Contains(got.Denied, ws) || slices.Contains(got.Denied, top) {
		t.Errorf("denied: %q", got.Denied)
	}
}

// What commands alone are denied is held alike.
func TestSandboxFilesStrayLinks(t *testing.T) {
	_, ws := workspace(t)
	tree(t, ws, "src/plain")
	for name, to := range map[string]string{"root.key": ".", "src.key": "src", "file.key": "src/plain"} {
		if err := os.Symlink(to, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	set := testRules(ws, "")
	set.Sandbox.Filesystem.DenyRead = []settings.Entry{{Text: "*.key", Root: ws}}
	got := policy(t, ws, set, contained).Commands().SandboxPaths()
	if want := []string{filepath.Join(ws, "src"), filepath.Join(ws, "src/plain")}; !slices.Equal(got.Denied, want) ||
		slices.Contains(got.Masked, ws) {
		t.Errorf("denied %q, masked %q; want %q denied", got.Denied, got.Masked, want)
	}
}
