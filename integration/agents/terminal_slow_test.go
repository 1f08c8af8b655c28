//go:build slow

package agents

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
	"github.com/toolhost/toolhost/integration/host"
)

// A keystroke is pressed when the screen shows some words. Once it is taken, one of them at least is gone.
type keystroke struct {
	shown []string
	key   string
}

// repeatAfter is when a key is pressed again that changed nothing: Claude Code drops keys while it changes what has the focus.
const repeatAfter = 3 * time.Second

// press waits for what is to be shown, presses the key, and waits until it was taken.
func (w *terminal) press(k keystroke) {
	w.Helper()
	host.Eventually(w.T, func() string { return w.lacks(k.shown) })
	var again time.Time
	host.Eventually(w.T, func() string {
		if k.key == "" || w.lacks(k.shown) != "" {
			return ""
		}
		if time.Now().After(again) {
			w.do("send-keys", k.key)
			again = time.Now().Add(repeatAfter)
		}
		return fmt.Sprintf("%s changes nothing", k.key)
	})
	if w.Failed() {
		w.FailNow()
	}
}

// approve answers the dialog of the client itself, which names the file.
func approve(file, key string) keystroke {
	return keystroke{[]string{"Do you want to proceed?", file}, key}
}

// TestClaudeInTerminal has a person at a terminal decide on what Claude Code does for a model that this test plays: in the client's
// own dialog, and in the form that shows our question. What is allowed is on the disk afterwards, and nothing else.
func TestClaudeInTerminal(t *testing.T) {
	program, env := host.ClientProgram(t, "claude")
	p := newPerson(t)
	host.Must(t, os.Mkdir(filepath.Join(p.Project, ".toolhost"), 0o755))
	host.Must(t, os.WriteFile(filepath.Join(p.Project, ".toolhost", "toolhost.json"),
		[]byte(`{"permissions":{"ask":["Edit(ask-*)"]}}`), 0o600))
	realClient{install: "claude-code", config: claudeConfig}.add(t, p, env, "")

	turns := []struct {
		file  string
		keys  []keystroke
		shown string // to the model; nothing of a call that ends its turn
	}{
		{"approved", []keystroke{approve("approved", "Enter")}, "Created"},
		{"ask-allowed", []keystroke{
			approve("ask-allowed", "Enter"),
			{[]string{"Write asks to be allowed", "ask-allowed", "Decision: ▸ not set"}, "Right"},
			{[]string{"❯ ◯ allow once", "◯ deny"}, "Space"},
			{[]string{"Decision: ▸ allow once"}, "Enter"},
			{[]string{"Type something"}, "Enter"},
			{[]string{"❯ Accept"}, "Enter"},
		}, "Created"},
		{"ask-escaped", []keystroke{approve("ask-escaped", "Enter"), {[]string{"Write asks to be allowed", "ask-escaped"}, "Escape"}}, "did not allow it"},
		{"refused", []keystroke{approve("refused", "Escape"), {[]string{"Interrupted"}, ""}}, ""},
	}
	played := &host.Scripted{}
	for _, turn := range turns {
		played.Calls = append(played.Calls, host.ModelCall{Tool: "Write", Args: fmt.Sprintf(`{"file_path":%q,"content":"b\n"}`, turn.file), Want: turn.shown})
	}
	server := httptest.NewServer(fakemodel.Model(played.Next))
	defer server.Close()
	w := newTerminal(t, p, append(env, host.ClaudeEnv(server.URL)...), program, "--permission-mode", "default", "go")
	for _, turn := range turns {
		for _, k := range turn.keys {
			w.press(k)
		}
	}

	played.Calls = played.Calls[:len(turns)-1] // the last has no result
	played.Check(t)
	for _, turn := range turns {
		raw, err := os.ReadFile(filepath.Join(p.Project, turn.file))
		if allowed := turn.shown == "Created"; allowed != (err == nil) || allowed && string(raw) != "b\n" {
			t.Errorf("%s holds %q, %v", turn.file, raw, err)
		}
	}
}

// claudeConfig is that of a person who has gone through what Claude Code asks at its first start.
func claudeConfig(p person, _ string) (file string, content any) {
	return filepath.Join(p.Home, ".claude.json"), map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": map[string]any{"approved": []string{"none"}},
		"projects": map[string]any{p.Project: map[string]any{"hasTrustDialogAccepted": true}},
	}
}
