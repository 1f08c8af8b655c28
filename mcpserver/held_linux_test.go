package mcpserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
)

// TestAskHeld asks clients of both eras whether protected files stay that a command has changed.
func TestAskHeld(t *testing.T) {
	t.Parallel()
	if err := sandbox.ExecGateWorks(sandbox.Namespaces); err != nil {
		t.Skip(err)
	}
	const command = "echo new > .envrc; sed -i s/old/new/ .mcp.json"
	for _, test := range []struct {
		decision, want string
		says           string
	}{
		{AllowOnce, "new\n", "A person kept the changes"},
		{DenyIt, "old\n", "They stay held: "},
	} {
		for _, modern := range []bool{false, true} {
			c := startPipe(t, map[string]string{".mcp.json": "old\n"})
			var shown string
			var answer rpcAnswer
			if modern {
				c.send(modernBash("1", command, ""))
				asked := c.receive()
				shown = string(asked.Result)
				var q struct{ RequestState string }
				if err := json.Unmarshal(asked.Result, &q); err != nil {
					t.Fatalf("%v: %s", err, asked.Result)
				}
				c.send(modernBash("2", command, answering(q.RequestState, test.decision)))
				answer = c.receive()
			} else {
				c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
				c.receive()
				c.send(toolCall(7, "Bash", `{"command":"`+command+`"}`))
				line, err := c.out.ReadBytes('\n')
				if err != nil {
					t.Fatal(err)
				}
				shown = string(line)
				var question rpcAnswer
				if err := json.Unmarshal(line, &question); err != nil {
					t.Fatal(err)
				}
				c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) +
					`,"result":{"action":"accept","content":{"decision":"` + test.decision + `"}}}`)
				answer = c.receive()
			}
			if !strings.Contains(shown, ".envrc (new)") || !strings.Contains(shown, "old") ||
				!strings.Contains(shown, ".mcp.json (changed)") {
				t.Errorf("modern %v: the question shows %s", modern, shown)
			}
			if !strings.Contains(string(answer.Result), test.says) {
				t.Errorf("modern %v, %s: %s", modern, test.decision, answer.Result)
			}
			if remedy := strings.Contains(string(answer.Result), "toolhost keep"); remedy == (test.decision == AllowOnce) {
				t.Errorf("modern %v, %s: whether the result names toolhost keep is %v", modern, test.decision, remedy)
			}
			if text, err := os.ReadFile(filepath.Join(c.root, ".mcp.json")); err != nil || string(text) != test.want {
				t.Errorf("modern %v, %s: outside stands %q, %v", modern, test.decision, text, err)
			}
			if _, err := os.Lstat(filepath.Join(c.root, ".envrc")); (err == nil) != (test.decision == AllowOnce) {
				t.Errorf("modern %v, %s: .envrc: %v", modern, test.decision, err)
			}
		}
	}
}
