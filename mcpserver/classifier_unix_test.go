//go:build unix

package mcpserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClassifier lets a classifier answer in the mode auto, and nowhere else.
func TestClassifier(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	const (
		allows = `cat >/dev/null; echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'`
		asks   = `echo '{"decision":"ask"}'`
		denies = `exit 2`
		fails  = `exit 1`
		other  = `echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'`
	)
	for _, tt := range []struct {
		name, mode, rules, command, tool, args string
		workspace                              bool // the settings are those of the workspace
		runs                                   bool
	}{
		{"it allows", "auto", "", allows, "Bash", `{"command":"touch done"}`, false, true},
		{"contained", "auto", "", allows, "Bash", `{"command":"touch done"}`, false, false},
		{"it asks", "auto", "", asks, "Bash", `{"command":"touch done"}`, false, false},
		{"it refuses", "auto", "", denies, "Bash", `{"command":"touch done"}`, false, false},
		{"it fails", "auto", "", fails, "Bash", `{"command":"touch done"}`, false, false},
		{"it denies", "auto", "", other, "Bash", `{"command":"touch done"}`, false, false},
		{"another mode", "default", "", allows, "Bash", `{"command":"touch done"}`, false, false},
		{"an ask rule", "auto", `"ask":["Bash(touch:*)"],`, allows, "Bash", `{"command":"touch done"}`, false, false},
		{"a deny rule", "auto", `"deny":["Bash(touch:*)"],`, allows, "Bash", `{"command":"touch done"}`, false, false},
		{"a protected file", "auto", "", allows, "Write", `{"file_path":".envrc","content":"x"}`, false, false},
		{"of the workspace", "auto", "", allows, "Bash", `{"command":"touch done"}`, true, false},
		{"an edit needs none", "auto", "", fails, "Write", `{"file_path":"done","content":"x"}`, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules, _ := json.Marshal(tt.command)
			contained := `"contained":false,`
			if tt.name == "contained" {
				contained = ""
			}
			text := `{"permissions":{` + tt.rules + `"defaultMode":"` + tt.mode + `","classifier":{"type":"command",` +
				contained + `"command":` + string(rules) + `}},"sandbox":{"autoAllowBashIfSandboxed":false}}`
			files := map[string]string{}
			if tt.workspace {
				files[".claude/settings.json"] = text
			}
			h, root := openHost(t, files, func(c *Config) {
				c.TrustWorkspace = true
				if !tt.workspace {
					writeFile(t, filepath.Join(ownHome(t), ".claude", "settings.json"), text)
				}
			})
			reply := h.Call(t.Context(), h.AdmitNamed("one"), Request{Tool: tt.tool, Args: json.RawMessage(tt.args)})
			if _, err := os.Stat(filepath.Join(root, "done")); (err == nil) != tt.runs {
				t.Errorf("ran: %v, want %v: %s", err == nil, tt.runs, reply.Text)
			}
			log, _ := os.ReadFile(h.Operator().AuditPath())
			if by := strings.Contains(string(log), `"approved","by":"classifier"`); by != (tt.runs &&
				tt.tool == "Bash") {
				t.Errorf("recorded: %s", log)
			}
		})
	}
}

// TestClassifierWhileAsked has a legacy client asked while the classifier runs: the first decision counts.
func TestClassifierWhileAsked(t *testing.T) {
	for _, tt := range []struct {
		name, command, answer string
		runs                  bool
		by                    string
	}{
		{"the classifier is first", `echo '{"decision":"allow"}'`, "", true, "classifier"},
		{"the person is first", `while ! test -e answered; do sleep .01; done; echo '{"decision":"allow"}'`, DenyIt, false, "client"},
		{"the classifier leaves it to the person", `echo '{"decision":"ask"}'`, AllowOnce, true, "client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := startPipe(t, nil, func(c *Config) {
				command, _ := json.Marshal(tt.command)
				writeFile(t, filepath.Join(ownHome(t), ".claude", "settings.json"),
					`{"permissions":{"defaultMode":"auto","classifier":{"type":"command","contained":false,"command":`+string(command)+`}},"sandbox":{"autoAllowBashIfSandboxed":false}}`)
			})
			c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
			c.receive()
			c.send(toolCall(7, "Bash", `{"command":"touch done"}`))
			m := c.receive()
			for ; m.Method == "elicitation/create" || m.Method != ""; m = c.receive() {
				if tt.answer != "" && m.Method == "elicitation/create" {
					c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) +
						`,"result":{"action":"accept","content":{"decision":"` + tt.answer + `"}}}`)
				}
			}
			writeFile(t, filepath.Join(c.root, "answered"), "")
			if ran(c) != tt.runs {
				t.Errorf("ran: %v: %s", ran(c), m.Result)
			}
			log, _ := os.ReadFile(c.host.Operator().AuditPath())
			if n := strings.Count(string(log), "\n"); n != 1 ||
				!strings.Contains(string(log), `"asked","by":"client"`) ||
				!strings.Contains(string(log), `d","by":"`+tt.by+`"`) {
				t.Errorf("%d records: %s", n, log)
			}
		})
	}
}
