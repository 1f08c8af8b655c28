package sandboxpool

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/guard"
)

// TestConfine: a server that reaches hosts sees of the workspace its program alone, whatever package that is of.
func TestConfine(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"top/ws/pkg/server.js", "lib/pkg/server.js"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, at(name), "x")
	}
	if err := os.Symlink(at("top"), at("link")); err != nil {
		t.Fatal(err)
	}
	policy, err := guard.New(guard.Config{Roots: []string{at("top/ws")}, Home: t.TempDir(), Scratch: at("scratch/me"), Contain: func() guard.Containment { return guard.Containment{Writes: true, Denies: true} }})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		shown     string
		workspace bool
		seen      bool
	}{
		{"top/ws", false, false}, {"top", false, false}, {"top/ws/pkg", false, false}, {"link", false, false}, {"link/ws/pkg", false, false},
		{"top/ws/pkg/server.js", false, true}, {"lib/pkg", false, true}, {"lib/pkg/server.js", false, true}, {"top/ws/pkg", true, true},
	} {
		c := &Sandbox{policy: policy, paths: policy.Commands().SandboxPaths()}
		(&Cell{Workspace: tt.workspace, Shown: []string{at(tt.shown)}}).confine(c)
		if seen := slices.Contains(c.paths.Shown, at(tt.shown)); seen != tt.seen {
			t.Errorf("%+v: seen is %t", tt, seen)
		}
		if masked := slices.Contains(c.paths.Masked, at("top/ws")); masked == tt.workspace {
			t.Errorf("%+v: the workspace is masked: %t", tt, masked)
		}
	}
}
