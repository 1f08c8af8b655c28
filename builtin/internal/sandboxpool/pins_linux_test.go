package sandboxpool

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestReplacedStaysHeld: what takes the place of a protected or masked file cannot be written or read by a command that
// runs since before.
func TestReplacedStaysHeld(t *testing.T) {
	testenv.NeedsNotifications(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, home := filepath.Join(base, "ws"), filepath.Join(base, "home")
	for _, dir := range []string{filepath.Join(ws, ".vscode"), filepath.Join(ws, "sub", "deep"), home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	envrc, tasks, lock, secret := filepath.Join(ws, ".envrc"), filepath.Join(ws, ".vscode",
		"tasks.json"), filepath.Join(ws, "sub", "deep", "a.lock"), filepath.Join(home, ".netrc")
	for _, path := range []string{envrc, tasks, lock, secret} {
		put(t, path, kept)
	}
	_, c := sandboxOf(t, base, home, "Edit({*.lock,.envrc,.vscode})")
	in, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := c.box.Spawn(sandbox.Spec{
		Argv: []string{"/bin/bash", "-c", `while read -r how f; do { [ $how = write ] && echo pwned >"$f" || [ $how = read ] && cat "$f"; } >/dev/null 2>&1 && echo open || echo held; done`},
		Dir:  ws, Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{in, w, w},
	})
	in.Close()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	for _, tt := range []struct{ how, path, replaced string }{
		{"write", envrc, envrc}, {"write", lock, lock}, {"read", secret, secret},
		{"write", tasks, filepath.Dir(tasks)}, {"write", lock, filepath.Join(ws, "sub")},
	} {
		if err := os.CopyFS(filepath.Join(base, "copy"), os.DirFS(filepath.Dir(tt.replaced))); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tt.replaced, filepath.Join(base, "old")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(base, "copy", filepath.Base(tt.replaced)), tt.replaced); err != nil {
			t.Fatal(err)
		}
		fixed := tt.path
		if tt.path == tasks {
			fixed = filepath.Dir(tasks) // is protected as a whole
		}
		await(t, tt.replaced, func() bool {
			file, err := lookAt(fixed)
			c.mu.Lock()
			defer c.mu.Unlock()
			return err == nil && c.fixed[fixed] != nil && c.fixed[fixed].same(file)
		})
		fmt.Fprintln(tell, tt.how, tt.path)
		if !answers.Scan() || answers.Text() != "held" {
			t.Errorf("to %s %s after another has taken the place of %s: %q", tt.how, tt.path, tt.replaced,
				answers.Text())
		}
		for _, left := range []string{"copy", "old"} {
			if err := os.RemoveAll(filepath.Join(base, left)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tell.Close()
	if _, err := p.Kill(); err != nil {
		t.Error(err)
	}
}

// TestMovedBack: what leads to a protected file is watched on after it was moved away and back, without denied files too.
func TestMovedBack(t *testing.T) {
	testenv.NeedsNotifications(t)
	base := baseDir(t)
	git := filepath.Join(base, "ws", ".git")
	for _, dir := range []string{"hooks", "objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(git, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(git, "HEAD"), "ref: refs/heads/main\n")
	_, c := sandboxOf(t, base, "", "Bash(no-such-program)")
	watch := func() *watched {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.watch.byPath[git]
	}
	before := watch()
	if err := errors.Join(os.Rename(git, git+"2"), os.Rename(git+"2", git)); err != nil {
		t.Fatal(err)
	}
	await(t, "the watch", func() bool {
		now := watch()
		return now != nil && now != before && now.watch.Watch() != 0
	})
}
