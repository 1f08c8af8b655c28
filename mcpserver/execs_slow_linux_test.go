//go:build slow

package mcpserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/sandbox"
)

func TestExecAskLegacy(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	c := startGated(t)
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
	c.receive()
	for _, test := range []struct {
		answer string
		runs   bool
		says   string
	}{
		{`"result":{"action":"accept","content":{"decision":"allow once"}}`, true, "Allowed by a person: touch done (python3 → touch done): rule Bash(touch:*), "},
		{`"result":{"action":"accept","content":{"decision":"deny","reason":"use make"}}`, false, "the person refused: use make"},
		{`"result":{"action":"accept","content":{"decision":"certainly"}}`, false, "was not offered"},
		{`"error":{"code":-32603,"message":"nobody is here"}`, false, "Refused: touch done"},
	} {
		c.send(toolCall(7, "Bash", `{"command":"`+python+`"}`))
		question := c.receive()
		if question.Method != "elicitation/create" {
			t.Fatalf("no question: %+v %s", question, question.Result)
		}
		c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,` + test.answer + `}`)
		answer := c.receive()
		if ran(c) != test.runs || !strings.Contains(string(answer.Result), test.says) ||
			!strings.Contains(string(answer.Result), "after") {
			t.Errorf("%s: ran: %v, answer %s", test.answer, ran(c), answer.Result)
		}
		os.Remove(filepath.Join(c.root, "done"))
	}
	log, err := os.ReadFile(c.host.Operator().AuditPath())
	if err != nil || strings.Count(string(log), `"event":"exec"`) != 4 ||
		!strings.Contains(string(log), `"chain":"python3"`) {
		t.Errorf("the events are not in the record: %s, %v", log, err)
	}
}

func TestExecAskModernTwice(t *testing.T) {
	t.Parallel()
	c := startGated(t)
	const command = "python3 two.py"
	first := execQuestion(t, c, command, "")
	second := execQuestion(t, c, command, answering(first, AllowOnce))
	if !exists(c, "done") || exists(c, "more") {
		t.Error("the first answer does not count, or counts for more than its question")
	}
	c.send(modernBash("4", command, answering(second, AllowOnce)))
	if answer := c.receive(); !exists(c, "more") {
		t.Errorf("%s", answer.Result)
	}
}

func TestExecAskBackground(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	for _, test := range []struct {
		name  string
		owner *owner
		runs  bool
	}{{"at the console", &owner{answer: Answer{Decision: AllowOnce}}, true}, {"without a console",
		&owner{absent: true}, false}} {
		c := startGated(t, func(c *Config) { c.Asker = test.owner })
		a := c.host.Admit(Local(), map[string]any{"threadId": "t"}, "", true)
		put := func(context.Context, *Question) *Answer {
			t.Errorf("%s: the client was asked", test.name)
			return &Answer{}
		}
		reply := c.host.Call(t.Context(), a, Request{Tool: "Bash", Args: []byte(`{"command":"` + python + `","run_in_background":true}`), Client: builtin.Client{CanAsk: true}, AskUser: put})
		out, ok := reply.Structured.(builtin.BashOutput)
		if !ok {
			t.Fatalf("%+v", reply)
		}
		for next := int64(0); ; { // until it has ended
			args := fmt.Sprintf(`{"task_id":%q,"offset":%d}`, out.TaskID, next)
			reply = c.host.Call(t.Context(), c.host.readmit(a), Request{Tool: "TaskOutput", Args: []byte(args)})
			read, ok := reply.Structured.(builtin.TaskOutputOutput)
			if next = read.NextOffset; !ok || read.Status == "ended" {
				break
			}
		}
		if ran(c) != test.runs || len(test.owner.asked) == 1 != test.runs ||
			!strings.Contains(reply.Text, "touch done (python3 → touch done): rule Bash(touch:*)") {
			t.Errorf("%s: ran: %v, asked %d times: %s", test.name, ran(c), len(test.owner.asked), reply.Text)
		}
	}
}

// TestExecScriptIsBound holds that an answer about a program that starts counts for the script that the question showed.
func TestExecScriptIsBound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs commands")
	}
	if err := sandbox.ExecGateWorks(sandbox.Namespaces); err != nil {
		t.Skip(err)
	}
	files := map[string]string{
		".claude/settings.json": `{"permissions":{"ask":["Bash(bash d.sh:*)"]}}`,
		"r.py":                  "import subprocess\nsubprocess.run(['bash', 'd.sh'])\n",
		"d.sh":                  "echo done > done\n",
	}
	o := &owner{answer: Answer{Decision: AllowOnce}}
	h, root := openHost(t, files, func(c *Config) { c.TrustWorkspace, c.Asker = true, o })
	for _, later := range []string{files["d.sh"], "echo evil > done\n"} {
		for _, way := range []string{"client", "task", "console"} {
			os.Remove(filepath.Join(root, "done"))
			writeFile(t, filepath.Join(root, "d.sh"), files["d.sh"])
			o.asked = nil
			o.meet = func() { writeFile(t, filepath.Join(root, "d.sh"), later) }
			req := Request{Tool: "Bash", Args: []byte(`{"command":"` + python + `"}`), Client: builtin.Client{CanAsk: true,
				Repeats: way == "task"}}
			if way == "client" {
				req.AskUser = func(_ context.Context, q *Question) *Answer {
					o.meet()
					return &Answer{Decision: AllowOnce, By: ByClient}
				}
			}
			a := h.Admit(Local(), map[string]any{"threadId": "t"}, "", true)
			reply := h.Call(t.Context(), a, req)
			if q := reply.Question; way == "task" && q != nil {
				o.meet()
				req.Answer = &Answer{State: q.State, Decision: AllowOnce, By: ByClient}
				reply = h.Call(t.Context(), h.readmit(a), req)
			}
			_, err := os.Stat(filepath.Join(root, "done"))
			same := later == files["d.sh"]
			if (err == nil) != same || same == strings.Contains(reply.Text, "has changed since") ||
				!strings.Contains(reply.Text, "after") {
				t.Errorf("%s, with %q: ran: %v: %s", way, later, err == nil, reply.Text)
			}
			if way == "console" && (len(o.asked) != 1 || len(o.asked[0].Scripts) != 1) {
				t.Errorf("the console is asked %+v", o.asked)
			}
		}
	}
}
