package agents

import (
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestDemoAtTerminal answers the question of the demo, and takes back what the played agent did.
func TestDemoAtTerminal(t *testing.T) {
	if !host.Contained(t) {
		t.Skip("the push succeeds in a sandbox only")
	}
	for _, c := range samples.Of([]struct{ answer, want string }{
		{"y", "The push that you allowed replaced"}, {"n", "The pushed branch is as it was."},
	}, 1) {
		t.Run(c.answer, func(t *testing.T) {
			t.Parallel()
			w := newTerminal(t, newPerson(t), nil, "sh", "-c", host.Binary+" demo; read end")
			for _, step := range []struct{ shown, typed string }{{"Allow it? [y/N]", c.answer}, {"Press Enter", ""}} {
				host.Eventually(t, func() string { return w.lacks([]string{step.shown}) })
				w.do("send-keys", step.typed, "Enter")
			}
			host.Eventually(t, func() string { return w.lacks([]string{"The files are as before.", c.want, "Next: toolhost install"}) })
		})
	}
}

// TestWelcome is what toolhost prints at a terminal without a command.
func TestWelcome(t *testing.T) {
	w := newTerminal(t, newPerson(t), nil, "sh", "-c", host.Binary+"; read end")
	words := []string{"sandbox here", "clients here", "toolhost demo", "toolhost install claude-code",
		"toolhost try -- claude", "toolhost --help"}
	host.Eventually(t, func() string { return w.lacks(words) })
}
