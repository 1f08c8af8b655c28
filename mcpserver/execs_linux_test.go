package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
)

// python is a command whose text does not tell what its script starts.
const python = "python3 r.py; echo after"

// startsTouch are a script that starts a program that a rule asks for, twice, and what it leaves.
var startsTouch = map[string]string{"r.py": "import subprocess\nsubprocess.run(['touch', 'done'])\n",
	"two.py": "import subprocess\nsubprocess.run(['touch', 'done'])\nsubprocess.run(['touch', 'more'])\n"}

// startGated is startPipe where programs are judged when they start, and a rule asks for touch.
func startGated(t *testing.T, change ...func(*Config)) *pipeClient {
	t.Helper()
	if err := sandbox.ExecGateWorks(sandbox.Namespaces); err != nil {
		t.Skip(err)
	}
	return startPipe(t, startsTouch, append(change, asksTouch)...)
}

func exists(c *pipeClient, name string) bool {
	_, err := os.Stat(filepath.Join(c.root, name))
	return err == nil
}

// execQuestion calls Bash and returns the state of the question that the result is.
func execQuestion(t *testing.T, c *pipeClient, command, extra string) (state string) {
	t.Helper()
	c.send(modernBash("1", command, extra))
	asked := c.receive()
	var q struct{ ResultType, RequestState string }
	if err := json.Unmarshal(asked.Result, &q); err != nil || q.ResultType != "input_required" ||
		!strings.HasPrefix(q.RequestState, resumePrefix) {
		t.Fatalf("no question: %s %+v", asked.Result, asked.Error)
	}
	return q.RequestState
}

// answering are the params of a call that brings an answer.
func answering(state, decision string) string {
	return fmt.Sprintf(`"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"decision":%q}}},`,
		state, decision)
}

func TestExecAskModern(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	c := startGated(t)
	for _, test := range []struct {
		decision string
		runs     bool
		says     string
	}{{AllowOnce, true, "Allowed by a person: touch done"}, {DenyIt, false, "Refused: touch done"}, {"x", false,
		"was not offered"}} {
		state := execQuestion(t, c, python, "")
		c.send(modernBash("2", python, answering(state, test.decision)))
		answer := c.receive()
		if ran(c) != test.runs || !strings.Contains(string(answer.Result), test.says) ||
			!strings.Contains(string(answer.Result), "after") {
			t.Errorf("%s: ran: %v, answer %s", test.decision, ran(c), answer.Result)
		}
		os.Remove(filepath.Join(c.root, "done"))
		c.send(modernBash("3", python, answering(state, AllowOnce)))
		if answer := c.receive(); ran(c) || !strings.Contains(string(answer.Result), "no longer waits") {
			t.Errorf("the answer counted twice: %s", answer.Result)
		}
	}
	log, err := os.ReadFile(c.host.Operator().AuditPath())
	if n := strings.Count(string(log), `"command":"`+python+`"`); err != nil || n < 3 ||
		strings.Count(string(log), `"note":"/usr/bin/touch done"`) < 6 {
		t.Errorf("the record has the command %d times, %v: %s", n, err, log)
	}
}

// TestExecAnswerIsBound holds that an answer counts for its own call alone, and that wrong ones do not use it up.
func TestExecAnswerIsBound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	c := startGated(t)
	state := execQuestion(t, c, python, "")
	c.send(modernBash("2", "python3 r.py", answering(state, AllowOnce)))
	if answer := c.receive(); ran(c) || !strings.Contains(string(answer.Result), "another call") {
		t.Errorf("an answer of another call: %s", answer.Result)
	}
	forged := state[:len(state)-2] + "AA"
	c.send(modernBash("3", python, answering(forged, AllowOnce)))
	if answer := c.receive(); ran(c) || answer.Error == nil {
		t.Errorf("a forged state: %s", answer.Result)
	}
	c.send(modernBash("4", python, answering(state, AllowOnce)))
	if answer := c.receive(); !ran(c) {
		t.Errorf("the right answer does not count: %s", answer.Result)
	}
	other := startGated(t)
	other.send(modernBash("5", python, answering(state, AllowOnce)))
	if answer := other.receive(); ran(other) || answer.Error == nil ||
		!strings.Contains(answer.Error.Message, "restarted since") {
		t.Errorf("another host: %s %v", answer.Result, answer.Error)
	}
}

// TestExecAlways holds that no answer about a program counts for the next one: an ask rule asks each time.
func TestExecAlways(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	c := startGated(t)
	state := execQuestion(t, c, python, "")
	c.send(modernBash("2", python, answering(state, AlwaysAllow)))
	if answer := c.receive(); ran(c) || !strings.Contains(string(answer.Result), "was not offered") {
		t.Fatalf("%s", answer.Result)
	}
	c.send(modernBash("3", python, answering(execQuestion(t, c, python, ""), AllowOnce)))
	if answer := c.receive(); !ran(c) {
		t.Fatalf("%s", answer.Result)
	}
	execQuestion(t, c, python, "")
}
