package mcpserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
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
