//go:build unix

package settle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// A gitGround is two equal repositories: in one git runs plainly, in the other as a command whose changes are held.
type gitGround struct {
	*ground
	plain   string
	scripts *samples.Git
	log     []string
}

// git runs a script in a directory and returns its output.
func (g *gitGround) git(dir, script string) string {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(samples.GitEnv, "PATH="+os.Getenv("PATH"), "HOME=/nonexistent")
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

// TestGitAsPlain runs random scripts of git over several calls, without an answer to any question: what commands see
// and commit is what they would without settlement, and outside stands what stood there before. In the end everything
// is kept.
func TestGitAsPlain(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	for i := range samples.Rounds(gitScripts) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			plain, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			g := &gitGround{ground: newGround(t), plain: plain, scripts: samples.NewGit(uint64(i))}
			begin := g.scripts.Begin()
			for _, dir := range []string{g.dir, g.plain} {
				g.git(dir, begin)
			}
			g.play(t)
		})
	}
}

// play runs the calls of one script.
func (g *gitGround) play(t *testing.T) {
	outside := g.outside()
	for range 8 {
		text := g.scripts.Next()
		g.log = append(g.log, text)
		var inside, out string
		g.call(func() {
			out = g.git(g.dir, GitPrelude+text)
			inside = g.git(g.dir, samples.GitState)
		})
		wantOut := g.git(g.plain, text)
		if want := g.git(g.plain, samples.GitState); inside != want {
			t.Fatalf("after\n%s\n%s\ninside:\n%s\nplain:\n%s\nout: %s\nplain: %s", strings.Join(g.log, "\n--\n"), "",
				inside, want, out, wantOut)
		}
		if now := g.outside(); now != outside {
			t.Fatalf("after\n%s\noutside:\n%s\nbefore:\n%s", strings.Join(g.log, "\n--\n"), now, outside)
		}
		if g.scripts.IntN(4) == 0 {
			g.kill()
		}
	}
	if _, err := g.k.Keep(g.dir); err != nil {
		t.Fatal(err)
	}
	if kept, want := g.git(g.dir, samples.GitState), g.git(g.plain, samples.GitState); kept != want {
		t.Errorf("after\n%s\nkept:\n%s\nplain:\n%s", strings.Join(g.log, "\n--\n"), kept, want)
	}
}

// outside returns what stands at held names outside of commands.
func (g *gitGround) outside() string {
	return g.git(g.dir, samples.HeldState)
}
