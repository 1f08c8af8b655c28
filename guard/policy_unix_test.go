//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestParallel uses one policy from many goroutines, as the server does.
func TestParallel(t *testing.T) {
	top, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Read(.env)\ndeny Read(secrets/*)\ndeny Bash(rm *)"), contained)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			q := p.For(Caller{Own: []string{filepath.Join(top, "state/results/mine")}})
			dir := resolve(t, q, ".")
			for range 50 {
				if v := q.Judge(Intent{Tool: "Read",
					Effects: []Effect{Read{Path: resolve(t, q, "hard")}}}); v.Action != Deny {
					t.Error("a hard link of a denied file is allowed")
				}
				if v := q.Judge(Intent{Tool: "Bash",
					Effects: []Effect{Exec{Text: "ls && rm x", Dir: dir}}}); v.Action != Deny {
					t.Error("a denied command is allowed")
				}
				q.Hiding()
				if !q.Hidden(filepath.Join(ws, ".env"), false) || q.Hidden(filepath.Join(ws, "README.md"), false) {
					t.Error("Hidden is wrong")
				}
			}
		})
	}
	calls.Wait()
}

// TestNewNameOfADeniedFile makes a hard link after the links were looked for.
func TestNewNameOfADeniedFile(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Read(.env)"))
	read := func(name string) Action {
		return p.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: resolve(t, p, name)}}}).Action
	}
	if read("two") != Allow || read("hard") != Deny {
		t.Fatal("the links that were there are judged wrong")
	}
	tree(t, ws, "sub/late = sub/.env")
	if read("sub/late") != Deny {
		t.Error("a link made after the first look is not noticed")
	}
	if err := os.Remove(filepath.Join(ws, "two")); err != nil {
		t.Fatal(err)
	}
	if read("README.md") != Allow {
		t.Error("a file that lost its other name is not allowed")
	}
}

// TestWorktreeOfState: a root in the host's state is a workspace where it is the worktree of an agent, and nothing else of the state is.
func TestWorktreeOfState(t *testing.T) {
	outer, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(outer, "state")
	root := filepath.Join(state, "worktrees", "try-1", "tree")
	for _, dir := range []string{filepath.Join(root, "sub"), filepath.Join(state, "worktrees", "try-1", "git"),
		filepath.Join(state, "worktrees", "try-2", "tree"), filepath.Join(state, "history")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		root, path string
		want       Action
	}{
		{root, "sub/a", Allow}, {root, "../git/config", Deny}, {root, "../../try-2/tree/a", Deny}, {root, "../../../history/x", Deny}, {root, "../meta", Deny},
		{filepath.Join(state, "history"), "x", Deny},
		{filepath.Join(state, "worktrees", "try-1"), "git/config", Deny},
	} {
		p, err := New(Config{Roots: []string{tt.root}, StateDir: state,
			Settings: &settings.Settings{DefaultMode: settings.ModeAcceptEdits}})
		if err != nil {
			t.Fatal(err)
		}
		path, err := p.Resolve(filepath.Join(tt.root, tt.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []Effect{Write{Path: path}, Read{Path: path}} {
			if got := p.Judge(Intent{Tool: "Edit", Effects: []Effect{e}}); got.Action != tt.want {
				t.Errorf("%T %s in %s: %v, want %v", e, tt.path, tt.root, got.Action, tt.want)
			}
		}
		paths := p.Commands().SandboxPaths()
		if !slices.Contains(paths.Masked, state) || !slices.Contains(paths.Writable, tt.root) {
			t.Errorf("%s: %+v", tt.root, paths)
		}
	}
}
