package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// settleScripts is how many random scripts run with each kind of sandbox.
const settleScripts = 9

// TestSettleGit runs random scripts of git over several calls and restarts, with each kind of sandbox, and without an answer. What the
// calls see and commit is what plain git makes, and outside stands what stood there before. In the end all is kept.
func TestSettleGit(t *testing.T) {
	t.Parallel()
	for _, c := range samples.Of([]struct{ name, sandbox string }{
		{"namespaces", `{}`},
		{"landlock", `{}`},
		{"off", `{"enabled":false,"onUnavailable":"allow"}`},
	}, 1) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name != "off" && !host.Contained(t) {
				t.Skip("nothing contains commands on this machine")
			}
			for i := range samples.Rounds(settleScripts) {
				if i%samples.Step(1) != 0 {
					continue
				}
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					g := newLeftoverGround(t, 0)
					host.MustWrite(t, g.settings, `{"sandbox":`+c.sandbox+
						`,"permissions":{"defaultMode":"acceptEdits","allow":["Bash"]}}`)
					if c.name == "landlock" {
						g.as = host.WithoutNamespaces(t)
					}
					playGit(t, g, samples.NewGit(uint64(i)))
				})
			}
		})
	}
}

// playGit runs one script, in the workspace through hosts and beside it plainly.
func playGit(t *testing.T, g *leftoverGround, scripts *samples.Git) {
	plainly := func(dir, script string) string {
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir, cmd.Env = dir, append(samples.GitEnv[:len(samples.GitEnv):len(samples.GitEnv)], "PATH="+
			os.Getenv("PATH"), "HOME="+g.home)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	begin := scripts.Begin()
	host.Must(t, os.RemoveAll(filepath.Join(g.ws, ".git")))
	host.Must(t, os.Remove(filepath.Join(g.ws, "f")))
	plainly(g.ws, begin)
	plainly(g.add, begin)
	const state, end = "=== state\n", "=== end"
	env := "export " + strings.ReplaceAll(strings.Join(samples.GitEnv, " "), "=1700000000 +0000", "='1700000000 +0000'") + "\n"
	outside := plainly(g.ws, samples.HeldState)
	var log []string
	s := g.start(t)
	for range 8 {
		text := scripts.Next()
		log = append(log, text)
		script := env + text + "\necho; echo '" + strings.TrimSpace(state) + "'\n" + samples.GitState +
			"\necho '" + end + "'"
		r := s.MustCall("Bash", host.Args{"command": `eval "$(printf %s '` + strings.ReplaceAll(script, "'", `'\''`) +
			`')" 2>&1`})
		out, inside, _ := strings.Cut(r, state)
		inside, _, ended := strings.Cut(inside, end)
		plain := plainly(g.add, text)
		if want := plainly(g.add, samples.GitState); !ended || inside != want {
			t.Fatalf("after\n%s\ninside:\n%s\nplain:\n%s\nout: %s\nplain: %s", strings.Join(log, "\n--\n"), inside,
				want, out, plain)
		}
		if now := plainly(g.ws, samples.HeldState); now != outside {
			t.Fatalf("after\n%s\noutside:\n%s\nbefore:\n%s\n%s", strings.Join(log, "\n--\n"), now, outside, s.Stderr)
		}
		if scripts.IntN(4) == 0 {
			s.Kill()
			s = g.start(t)
		}
	}
	s.End()
	cmd := exec.Command(host.Binary, "keep", "--yes")
	cmd.Dir, cmd.Env = g.ws, host.CleanEnv(g.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("keep: %v\n%s", err, out)
	}
	if kept, want := plainly(g.ws, samples.GitState), plainly(g.add, samples.GitState); kept != want {
		t.Errorf("after\n%s\nkept:\n%s\nplain:\n%s", strings.Join(log, "\n--\n"), kept, want)
	}
}
