//go:build slow

package mcpserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
