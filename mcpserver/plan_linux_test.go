package mcpserver

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// bash runs a command in a conversation, and returns the text of the result.
func (p *planner) bash(thread, command string, more ...string) string {
	p.Helper()
	raw, err := json.Marshal(command)
	if err != nil {
		p.Fatal(err)
	}
	text, _ := p.call(thread, "Bash", `{"command":`+string(raw)+strings.Join(more, "")+`}`)
	return text
}

// listenElsewhere starts a service of another process on the loopback interface, and returns its port.
func listenElsewhere(t *testing.T) (port string) {
	t.Helper()
	cmd := exec.Command("python3", "-c", `import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    with s.accept()[0] as c: c.send(b"reached")`)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	if _, err := fmt.Fscan(out, &port); err != nil {
		t.Fatal(err)
	}
	return port
}

// TestPlanAsksHosts: in each plan a person is asked about hosts anew, also about those that settings or earlier answers
// allow.
func TestPlanAsksHosts(t *testing.T) {
	t.Parallel()
	testenv.NeedsNamespaces(t)
	port := listenElsewhere(t)
	connect := "exec 3<>/dev/tcp/127.0.0.1/" + port + " && cat <&3"
	p, _ := openPlanner(t, map[string]string{".claude/settings.json": `{"sandbox":{"network":{"allowedDomains":["localhost:` + port + `"]}}}`})
	asked := 0
	reaches := func(when string, answer string, want bool, questions int) {
		t.Helper()
		p.o.answer = Answer{Decision: answer}
		text := p.bash("one", connect)
		if got := strings.Contains(text, "reached"); got != want || len(p.o.asked)-asked != questions ||
			strings.Contains(text, "allow-host") {
			t.Errorf("%s: reached %v after %d questions, want %v after %d\n%s", when, got, len(p.o.asked)-asked, want,
				questions, text)
		}
		asked = len(p.o.asked)
	}
	reaches("allowed by settings", DenyIt, true, 0)
	for range 2 {
		p.call("one", "EnterPlanMode", `{}`)
		reaches("refused", DenyIt, false, 1)
		reaches("allowed for the plan", AlwaysAllow, true, 1)
		reaches("known", DenyIt, true, 0)
		p.o.answer = Answer{Decision: AllowOnce}
		if text, isError := p.call("one", "ExitPlanMode", `{"plan":"p"}`); isError {
			t.Fatal(text)
		}
		asked = len(p.o.asked)
	}
	reaches("after the plans", DenyIt, true, 0)
}
