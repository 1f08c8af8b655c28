package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// A terminal is a window of tmux in which a program runs.
type terminal struct {
	*testing.T
	tmux, socket string
	env          []string
}

func newTerminal(t *testing.T, p person, env []string, program string, args ...string) *terminal {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("no tmux is installed: no client is tried in a terminal (apt-get install tmux)")
	}
	w := &terminal{t, tmux, filepath.Join(p.Home, "tmux"),
		append(append(host.CleanEnv(p.Home), "TERM=xterm-256color"), env...)}
	w.do(append([]string{"-f", os.DevNull, "new-session", "-d", "-x", "120", "-y", "50", "-c", p.Project, "--",
		program}, args...)...)
	t.Cleanup(func() { w.do("kill-server") })
	return w
}

// do runs a command of tmux and returns what it prints.
func (w *terminal) do(args ...string) string {
	w.Helper()
	cmd := exec.Command(w.tmux, append([]string{"-u", "-S", w.socket}, args...)...)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// lacks says which of the words is not on the screen; nothing when all are.
func (w *terminal) lacks(words []string) string {
	w.Helper()
	screen := w.do("capture-pane", "-p")
	for _, word := range words {
		if !strings.Contains(screen, word) {
			return fmt.Sprintf("the terminal does not show %q:\n%s", word, screen)
		}
	}
	return ""
}
