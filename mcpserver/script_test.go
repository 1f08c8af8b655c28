package mcpserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
)

// TestScriptIsBound shows the script of an asked command, and holds that the answer counts for this text only.
func TestScriptIsBound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs commands")
	}
	const ask = `{"permissions":{"ask":["Bash(bash:*)"]},"bash":{"execGate":"off"}}`
	for _, tt := range []struct {
		name, later string // what the script holds when the answer comes
		runs        bool
	}{
		{"unchanged", "echo done > done\n", true},
		{"changed meanwhile", "echo done > done; echo more\n", false},
		{"removed meanwhile", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, root := openHost(t, map[string]string{".claude/settings.json": ask, "deploy.sh": "echo done > done\n"},
				func(c *Config) { c.TrustWorkspace = true })
			req := Request{Tool: "Bash", Args: []byte(`{"command":"bash deploy.sh"}`), Client: builtin.Client{CanAsk: true}}
			q := h.Call(t.Context(), h.Admit(Local(), nil, "", true), req).Question
			if q == nil || !strings.Contains(q.Message, "  | echo done > done\n") ||
				!strings.Contains(q.Message, "bash deploy.sh runs ") || len(q.Scripts) != 1 {
				t.Fatalf("the question is %+v", q)
			}
			script := filepath.Join(root, "deploy.sh")
			if err := os.WriteFile(script, []byte(tt.later), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.later == "" {
				_ = os.Remove(script)
			}
			req.Answer = &Answer{State: q.State, Decision: AllowOnce, By: ByClient}
			reply := h.Call(t.Context(), h.Admit(Local(), nil, "", true), req)
			if _, err := os.Stat(filepath.Join(root, "done")); (err == nil) != tt.runs || reply.IsError == tt.runs {
				t.Errorf("it ran: %v, and the result is %s", err == nil, reply.Text)
			}
		})
	}
}

// TestLongScript says in the message what a question does not show of a script.
func TestLongScript(t *testing.T) {
	const ask = `{"permissions":{"ask":["Bash(bash:*)"]},"bash":{"execGate":"off"}}`
	h, _ := openHost(t, map[string]string{".claude/settings.json": ask, "deploy.sh": strings.Repeat("echo done\n", 10_000)}, func(c *Config) { c.TrustWorkspace = true })
	q := h.Call(t.Context(), h.Admit(Local(), nil, "", true),
		Request{Tool: "Bash", Args: []byte(`{"command":"bash deploy.sh"}`), Client: builtin.Client{CanAsk: true}}).Question
	if want := fmt.Sprintf("  … %d more bytes are not shown.\n", q.Scripts[0].Cut); q.Scripts[0].Cut == 0 ||
		!strings.Contains(q.Message, want) {
		t.Errorf("want %q in\n%s", want, q.Message)
	}
}
