package baseline

import (
	"os"
	"path/filepath"
	"testing"
)

// After a kill, what stood there before stays and what a command planted is taken out, whatever the bytes of the names.
func TestRecoverForeignNames(t *testing.T) {
	for _, top := range []string{"d", "d\xff", "\xfe/\"d"} {
		for _, below := range []string{"r", "r\xff", "\"r"} {
			state, dir := t.TempDir(), filepath.Join(t.TempDir(), top)
			repo := filepath.Join(dir, below, ".git")
			theirs, hook := filepath.Join(repo, "config"), filepath.Join(repo, "hooks", "pre-commit")
			write(t, filepath.Join(repo, "HEAD"), "ref: refs/heads/main\n")
			write(t, theirs, planted)
			write(t, hook, "mine")
			if err := os.Chmod(hook, 0o755); err != nil {
				t.Fatal(err)
			}
			k := hostIn(t, state)
			k.Begin([]string{dir}, nil)
			k.watch.attend(false)
			write(t, theirs, planted+"[alias]\n\tx = !evil\n")
			write(t, filepath.Join(dir, "new\xff/.git/config"), planted)
			kill(k)
			next := hostIn(t, state)
			next.Recover([]string{dir})
			holds(t, theirs, planted+"[alias]\n")
			holds(t, hook, "mine")
			holds(t, filepath.Join(dir, "new\xff/.git/config"), plain+"[core]\n")
		}
	}
}
