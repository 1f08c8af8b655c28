package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/integration/samples"
)

// connects is a command that connects to a host that no setting names, and tries again.
const connects = "exec 3<>/dev/tcp/answered.invalid/80 || exec 3<>/dev/tcp/answered.invalid/80; echo after"

// startConnecting is startPipe where commands have a network of their own.
func startConnecting(t *testing.T, change ...func(*Config)) *pipeClient {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip(err)
	}
	if err := sandbox.ExecGateWorks(sandbox.Namespaces); err != nil {
		t.Skip(err)
	}
	return startPipe(t, nil, change...)
}

func TestHostAskModern(t *testing.T) {
	t.Parallel()
	c := startConnecting(t)
	for decision, says := range map[string]string{AllowOnce: "Allowed by a person: connect to answered.invalid:80",
		DenyIt: "a person refused it for this call"} {
		state := execQuestion(t, c, connects, "")
		c.send(modernBash("2", connects, answering(state, decision)))
		if answer := c.receive(); !strings.Contains(string(answer.Result), says) ||
			!strings.Contains(string(answer.Result), "after") {
			t.Errorf("%s: answer %s", decision, answer.Result)
		}
	}
	state := execQuestion(t, c, connects, "")
	c.send(modernBash("3", connects, answering(state, AlwaysAllow)))
	c.receive()
	c.send(modernBash("4", connects, ""))
	if answer := c.receive(); strings.Contains(string(answer.Result), "refused the host") ||
		!strings.Contains(string(answer.Result), "after") {
		t.Errorf("it is asked again: %s", answer.Result)
	}
	execQuestion(t, c, strings.ReplaceAll(connects, "/80", "/81"), "") // another port is another host
}

// A host that a contained hook connects to is asked about like that of a command, in the name of the call.
func TestHostAskHook(t *testing.T) {
	t.Parallel()
	c := startConnecting(t, func(cfg *Config) {
		file := filepath.Join(t.TempDir(), "hooks.json")
		text := `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"exec 3<>/dev/tcp/answered.invalid/80 || exec 3<>/dev/tcp/answered.invalid/80"}]}]}}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.Settings = []string{file}
	})
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
	c.receive()
	for _, test := range []struct{ answer, says string }{
		{`"result":{"action":"accept","content":{"decision":"allow once"}}`, "failed: exit code 1"}, // the name leads nowhere
		{`"result":{"action":"accept","content":{"decision":"deny"}}`, "The sandbox refused the host answered.invalid:80 (bash): a person refused it for this call"},
	} {
		c.send(toolCall(7, "Glob", `{"pattern":"*"}`))
		question := c.receive()
		if question.Method != "elicitation/create" ||
			!strings.Contains(question.Params.Message, "connect to answered.invalid:80") {
			t.Fatalf("no question: %+v", question)
		}
		c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,` + test.answer + `}`)
		if answer := string(c.receive().Result); !strings.Contains(answer, test.says) ||
			strings.Contains(answer, `"isError":true`) {
			t.Errorf("%s: answer %s", test.answer, answer)
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
