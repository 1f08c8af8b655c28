//go:build slow

package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// A host that no setting names is asked about when a program connects, once a call, and the answer decides.
func TestHostAskLegacy(t *testing.T) {
	t.Parallel()
	c := startConnecting(t)
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
	c.receive()
	for _, test := range []struct{ answer, says, not string }{
		{`"result":{"action":"accept","content":{"decision":"allow once"}}`, "Allowed by a person: connect to answered.invalid:80 (bash → connect to answered.invalid:80)", "refused the host"},
		{`"result":{"action":"accept","content":{"decision":"deny","reason":"use the mirror"}}`, "The sandbox refused the host answered.invalid:80 (bash): a person refused it for this call: the person refused: use the mirror.", "Allowed"},
		{`"error":{"code":-32603,"message":"nobody is here"}`, "The sandbox refused the host answered.invalid:80 (bash)", "Allowed"},
	} {
		c.send(toolCall(7, "Bash", `{"command":"`+connects+`"}`))
		question := c.receive()
		if question.Method != "elicitation/create" ||
			!strings.Contains(question.Params.Message, "connect to answered.invalid:80") ||
			!strings.Contains(question.Params.Message, "toolhost allow-host answered.invalid") {
			t.Fatalf("no question: %+v", question)
		}
		c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,` + test.answer + `}`)
		answer := string(c.receive().Result)
		if !strings.Contains(answer, test.says) || strings.Contains(answer, test.not) ||
			!strings.Contains(answer, "after") {
			t.Errorf("%s: answer %s", test.answer, answer)
		}
	}
	log, err := os.ReadFile(c.host.Operator().AuditPath())
	if err != nil || !strings.Contains(string(log), `"command":"connect to answered.invalid:80","verdict":"allow"`) ||
		!strings.Contains(string(log), `"command":"connect to answered.invalid:80","verdict":"deny"`) {
		t.Errorf("the answers are not in the record: %s, %v", log, err)
	}
}

// "Always allow" is for the program that has connected, in this workspace: another one of the same call is asked about.
func TestHostAskAlways(t *testing.T) {
	t.Parallel()
	c := startConnecting(t)
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
	c.receive()
	out, err := exec.Command("python3", "-c", `import os; print(os.readlink("/proc/self/exe"), end="")`).Output()
	if err != nil {
		t.Skip(err)
	}
	python := filepath.Base(string(out))
	const connect = `python3 -c 'import socket; socket.create_connection((\"answered.invalid\", 80))' 2>&1 | tail -1; `
	asks := func(command string, decisions ...string) string {
		t.Helper()
		c.send(toolCall(7, "Bash", `{"command":"`+command+`"}`))
		for _, decision := range decisions {
			question := c.receive()
			if question.Method != "elicitation/create" {
				t.Fatalf("no question: %+v", question)
			}
			c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) +
				`,"result":{"action":"accept","content":{"decision":"` + decision + `"}}}`)
		}
		answer := c.receive()
		if answer.Method != "" {
			t.Fatalf("one question more: %+v", answer)
		}
		return string(answer.Result)
	}
	got := asks(connect+connect+connects, AlwaysAllow, DenyIt)
	if !strings.Contains(got, "for "+python+" in this workspace, from now on") ||
		!strings.Contains(got, "refused the host answered.invalid:80 (bash)") {
		t.Errorf("answer %s", got)
	}
	set := c.host.Operator().Settings().Sandbox.Network
	if len(set.Programs) != 1 || set.Programs[0].Text != python+": answered.invalid:80" || len(set.AllowedDomains) > 0 {
		t.Errorf("settings %+v", set)
	}
	asks(connect)
	got = asks(connects, AllowHost)
	set = c.host.Operator().Settings().Sandbox.Network
	if len(set.AllowedDomains) != 1 || set.AllowedDomains[0].Text != "answered.invalid:80" {
		t.Errorf("settings %+v, answer %s", set, got)
	}
	asks(connects)
}

// Where no person can be asked, the connection is refused at once, and the result says how to allow it.
func TestHostAskWithoutAnybody(t *testing.T) {
	t.Parallel()
	c := startConnecting(t)
	c.send(initialize)
	c.receive()
	for _, mode := range []string{"", "dontAsk"} {
		if mode != "" {
			c = startConnecting(t, func(cfg *Config) {
				file := filepath.Join(t.TempDir(), "mode.json")
				if err := os.WriteFile(file, []byte(`{"permissions":{"defaultMode":"`+mode+`","allow":["Bash"]}}`),
					0o600); err != nil {
					t.Fatal(err)
				}
				cfg.Settings = []string{file}
			})
			c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
			c.receive()
		}
		c.send(toolCall(7, "Bash", `{"command":"python3 -c 'import socket; socket.create_connection((\"answered.invalid\", 80))'; echo after"}`))
		if answer := string(c.receive().Result); !strings.Contains(answer,
			"A person can add it: toolhost allow-host answered.invalid") || !strings.Contains(answer, "after") {
			t.Errorf("mode %q: answer %s", mode, answer)
		}
	}
}

// A host that the entry of a server does not name is put to the operator, with the server. Without one the result says
// how to allow it.
func TestHostAskServer(t *testing.T) {
	t.Parallel()
	const script = `import json, socket, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answer = {"error": {"code": -32601, "message": "no"}}
    if m["method"] == "initialize":
        answer = {"result": {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}
    elif m["method"] == "tools/list":
        answer = {"result": {"tools": [{"name": "reach", "inputSchema": {"type": "object"}}]}}
    elif m["method"] == "tools/call":
        text = "open"
        try: socket.create_connection(("answered.invalid", 443))
        except OSError as e: text = str(e)
        answer = {"result": {"content": [{"type": "text", "text": text}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **answer}), flush=True)
`
	for i, test := range []struct {
		name  string
		owner *owner
		roots string
		notes bool
	}{
		{"allowed", &owner{answer: Answer{Decision: AllowOnce}}, "", false},
		{"refused", &owner{answer: Answer{Decision: DenyIt}}, "none", true},
		{"not offered", &owner{answer: Answer{Decision: AlwaysAllow}}, "none", true},
		{"nobody", &owner{absent: true}, "", true},
	} {
		if samples.Step(1) > 1 && i%3 != 0 {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "servers.json")
			c := startConnecting(t, func(cfg *Config) {
				entry, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]any{"command": "python3", "args": []string{"-c", script}, "roots": test.roots}}})
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, entry, 0o600); err != nil {
					t.Fatal(err)
				}
				cfg.MCPConfig, cfg.Allow, cfg.Asker = []string{file}, []string{"mcp__s"}, test.owner
			})
			c.send(initialize)
			c.receive()
			if err := c.host.gateway.Try(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			said := ""
			for range 2 {
				c.send(toolCall(7, "mcp__s__reach", "{}"))
				m := c.receive()
				for len(m.ID) == 0 { // the tools have changed
					m = c.receive()
				}
				answer := string(m.Result)
				said += fmt.Sprintf("%s %v\n", answer, m.Error)
				if strings.Contains(answer, "refused the host answered.invalid:443 (python3) to the server s") != test.notes ||
					strings.Contains(answer, "toolhost mcp --mcp-config "+file+
						" allow-host s answered.invalid]") != test.notes {
					t.Errorf("answer %s, %+v", answer, m)
				}
			}
			if test.owner.absent != (len(test.owner.asked) == 0) {
				t.Fatalf("asked %d times: %s", len(test.owner.asked), said)
			}
			for _, q := range test.owner.asked {
				if q.Tool != "server: s" || !strings.Contains(q.Message, "connect to answered.invalid:443") ||
					strings.Contains(q.Message, "sees the files") != (test.roots == "") || len(q.Always) > 0 {
					t.Errorf("question %s: %s", q.Tool, q.Message)
				}
			}
			if len(test.owner.asked) > 1 {
				t.Errorf("asked %d times of one process", len(test.owner.asked))
			}
		})
	}
}
