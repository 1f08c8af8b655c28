package sandboxpool

import (
	"context"
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
	policy, err := guard.New(guard.Config{Roots: []string{at("top/ws")}, Home: t.TempDir(), Scratch: at("scratch/me"),
		Contain: func() guard.Containment { return guard.Containment{Writes: true, Denies: true} }})
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

// TestCellLeavesWorkspace: a server that cannot write the workspace does not make a change of the user there count as one
// of a command, neither while it runs nor afterwards.
func TestCellLeavesWorkspace(t *testing.T) {
	base := baseDir(t)
	policy := policyFor(t, base, "server")
	repo := filepath.Join(base, "ws", ".git")
	for _, dir := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(repo, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(repo, "HEAD"), "ref: refs/heads/main\n")
	put(t, filepath.Join(repo, "config"), "[core]\n")
	cs := poolWith(t, func(cs *Pool, ctx context.Context, policy *guard.Policy, kind kind) (*Sandbox, error) {
		return realStart(t, cs, ctx, policy, kind)
	})
	c, err := cs.AcquireCell(t.Context(), "server", policy, &Cell{})
	if err != nil {
		t.Fatal(err)
	}
	changes := cs.Cleanup()
	for _, text := range []string{"[core]\n\tfsmonitor = mine\n", "[core]\n\tpager = mine\n"} {
		put(t, filepath.Join(repo, "config"), text)
		notes := changes()
		if got, err := os.ReadFile(filepath.Join(repo, "config")); err != nil || string(got) != text || len(notes) > 0 {
			t.Errorf("the settings of the user became %q, %v: %q", got, err, notes)
		}
		if c != nil {
			cs.Release(c)
			c = nil
		}
	}
}
