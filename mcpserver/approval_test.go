package mcpserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

func TestQuestionsAreBoundToTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := approvals.New()
		scope := "the scope"
		req := Request{Tool: "Bash", Args: json.RawMessage(`{"command":"make","timeout":5}`)}
		verdict := guard.Verdict{Action: guard.Ask, Rule: "Bash(make)",
			Parts: []guard.Part{{What: "run make", Action: guard.Ask}}}
		call := digest(scope, req, verdict, nil)

		other := func(change func(*string, *Request, *guard.Verdict)) []byte {
			k, r, v := scope, req, verdict
			change(&k, &r, &v)
			return digest(k, r, v, nil)
		}
		for name, wrong := range map[string][]byte{
			"another scope":    other(func(k *string, _ *Request, _ *guard.Verdict) { *k = "the scope of another" }),
			"another tool":     other(func(_ *string, r *Request, _ *guard.Verdict) { r.Tool = "Edit" }),
			"another argument": other(func(_ *string, r *Request, _ *guard.Verdict) { r.Args = json.RawMessage(`{"command":"rm"}`) }),
			"another rule":     other(func(_ *string, _ *Request, v *guard.Verdict) { v.Rule = "x" }),
			"another effect":   other(func(_ *string, _ *Request, v *guard.Verdict) { v.Parts = []guard.Part{{What: "run rm"}} }),
			"another offer":    digest(scope, req, verdict, []string{"Bash(make)"}),
		} {
			if err := q.Redeem(q.Issue("p", call), wrong); err == nil {
				t.Errorf("an answer was taken for %s", name)
			}
		}
		state := q.Issue("p", call)
		reordered := other(func(_ *string, r *Request, _ *guard.Verdict) {
			r.Args = json.RawMessage(`{"timeout":5, "command":"make"}`)
		})
		if err := q.Redeem(state, reordered); err != nil {
			t.Errorf("the same call with its keys in another order: %v", err)
		}
		if err := q.Redeem(state, call); err == nil {
			t.Error("an answer counted twice")
		}
		late := q.Issue("p", call)
		unanswered := q.Issue("p", call)
		time.Sleep(approvals.Lifetime + time.Second)
		if err := q.Redeem(unanswered, call); err != nil {
			t.Errorf("the refusal at the end of the wait: %v", err)
		}
		time.Sleep(approvals.Kept - approvals.Lifetime)
		if err := q.Redeem(late, call); err == nil {
			t.Error("an answer that came too late was taken")
		}
		for _, forged := range []string{"", "x", strings.Repeat("A", 64), approvals.New().Issue("p", call)} {
			if err := q.Redeem(forged, call); err == nil {
				t.Errorf("the forged state %q was taken", forged)
			}
		}
	})
}

const askCapability = `"elicitation":{}`

// modernBash is a call of Bash by a modern client that can ask, with extra params.
func modernBash(id, command, extra string) string {
	meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":{`+askCapability+
		`},"threadId":"t"`, 1)
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"` +
		command + `"},` + extra + meta + `}}`
}

func TestAskModern(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		runs, known  bool // known: the next such call is not asked
		says         string
	}{
		{"allowed once", `{"action":"accept","content":{"decision":"allow once"}}`, true, false, ""},
		{"always allowed", `{"action":"accept","content":{"decision":"always allow"}}`, true, true, ""},
		{"denied with a reason", `{"action":"accept","content":{"decision":"deny","reason":"use make instead"}}`, false, false, "use make instead"},
		{"declined", `{"action":"decline"}`, false, false, "refused"},
		{"cancelled", `{"action":"cancel"}`, false, false, "did not allow"},
		{"something else", `{"action":"accept","content":{"decision":"certainly"}}`, false, false, "did not allow"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := startPipe(t, nil, askBeforeCommands)
			c.send(modernBash("1", "touch done", ""))
			asked := c.receive()
			var q struct {
				ResultType   string
				RequestState string
			}
			if err := json.Unmarshal(asked.Result, &q); err != nil || q.ResultType != "input_required" ||
				q.RequestState == "" {
				t.Fatalf("no question: %s %+v", asked.Result, asked.Error)
			}
			extra := `"requestState":"` + q.RequestState + `","inputResponses":{"approval":` + test.answer + `},`
			c.send(modernBash("2", "touch done", extra))
			answer := c.receive()
			if got := ran(c); got != test.runs {
				t.Errorf("ran: %v, answer %s", got, answer.Result)
			}
			if log, err := os.ReadFile(c.host.Operator().AuditPath()); err != nil ||
				!strings.Contains(string(log), `"answered":"client"`) {
				t.Errorf("who answered is not in the record: %s, %v", log, err)
			}
			if !strings.Contains(string(answer.Result), test.says) {
				t.Errorf("%q is not in %s", test.says, answer.Result)
			}
			os.Remove(filepath.Join(c.root, "done"))
			c.send(modernBash("3", "touch done", extra)) // the same answer once more
			c.receive()
			if ran(c) != test.known {
				t.Error("an answer counted twice, or a remembered rule did not")
			}
		})
	}
}

// notOffered are answers to a question that offers only once or deny. None of them is one.
var notOffered = []string{
	`{"action":"accept","content":{"decision":"always allow"}}`,
	`{"action":"accept","content":{"decision":"Allow once"}}`,
	`{"action":"accept","content":{"decision":"allow once "}}`,
	`{"action":"accept","content":{"decision":"allow"}}`,
	`{"action":"accept","content":{"decision":["allow once"]}}`,
	`{"action":"accept","content":{"decision":true}}`,
	`{"action":"accept","content":{"decision":{"value":"allow once"}}}`,
	`{"action":"accept","content":{"decision":null}}`,
	`{"action":"accept","content":{"Decision":"allow once"}}`,
	`{"action":"accept","content":{"decision":"allow once","always":true}}`,
	`{"action":"accept","content":{"decision":"allow once","reason":{"text":"x"}}}`,
	`{"action":"accept","content":{"decision":"allow once","decisions":["always allow"]}}`,
	`{"action":"accept","content":["allow once"]}`,
	`{"action":"accept","content":"allow once"}`,
	`{"action":"accept","decision":"allow once"}`,
	`{"action":"accept"}`,
	`{"action":"ACCEPT","content":{"decision":"allow once"}}`,
	`{"action":"always allow","content":{"decision":"allow once"}}`,
	`{"action":"decline","content":{"decision":"allow once"}}`,
	`{"content":{"decision":"allow once"}}`,
	`{}`, `null`, `[]`, `"allow once"`,
}

// asksTouch makes a rule ask for touch: the question does not offer to remember the answer.
func asksTouch(c *Config) {
	file := filepath.Join(c.StateDir, "..", "ask.json")
	if err := os.WriteFile(file, []byte(`{"permissions":{"ask":["Bash(touch:*)"]}}`), 0o600); err != nil {
		panic(err)
	}
	c.Settings = []string{file}
}

func TestNotOfferedIsNoAnswerModern(t *testing.T) {
	t.Parallel()
	c := startPipe(t, nil, asksTouch)
	ask := func() (state string) {
		c.send(modernBash("1", "touch done", ""))
		asked := c.receive()
		var q struct{ RequestState string }
		if err := json.Unmarshal(asked.Result, &q); err != nil || q.RequestState == "" ||
			strings.Contains(string(asked.Result), AlwaysAllow) {
			t.Fatalf("no question, or one that offers to remember: %s %+v", asked.Result, asked.Error)
		}
		return q.RequestState
	}
	answered := func(state, responses string) {
		c.send(modernBash("2", "touch done", `"requestState":"`+state+`","inputResponses":`+responses+`,`))
		if a := c.receive(); ran(c) || strings.Contains(string(a.Result), "input_required") {
			t.Errorf("%s: ran %v: %s", responses, ran(c), a.Result)
			os.Remove(filepath.Join(c.root, "done"))
		}
	}
	const once = `{"action":"accept","content":{"decision":"allow once"}}`
	for _, answer := range notOffered {
		state := ask()
		answered(state, `{"approval":`+answer+`}`)
		if !strings.HasPrefix(answer, "{") {
			continue // the message itself was not understood
		}
		answered(state, `{"approval":`+once+`}`) // the question was used up
	}
	for _, responses := range []string{
		`{"other":` + once + `}`, `{"approval":` + once + `,"other":` + once + `}`, `{"Approval":` + once + `}`, `{"approval ":` + once + `}`, `{}`,
	} {
		answered(ask(), responses)
	}
	state := ask()
	c.send(modernBash("3", "touch done", `"requestState":"`+state+`","inputResponses":{"approval":`+once+`},`))
	if a := c.receive(); !ran(c) {
		t.Errorf("what was offered does not run: %s", a.Result)
	}
}

func TestNotOfferedIsNoAnswerLegacy(t *testing.T) {
	c := startPipe(t, nil, asksTouch)
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
	c.receive()
	for _, answer := range notOffered {
		c.send(toolCall(7, "Bash", `{"command":"touch done"}`))
		question := c.receive()
		if question.Method != "elicitation/create" {
			t.Fatalf("no question: %+v", question)
		}
		c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":` + answer + `}`)
		if a := c.receive(); ran(c) {
			t.Fatalf("%s: ran: %s", answer, a.Result)
		}
	}
}

func TestAskLegacy(t *testing.T) {
	c := startPipe(t, nil, askBeforeCommands)
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+askCapability+`}`, 1))
	c.receive()
	for _, test := range []struct {
		answer string
		runs   bool
	}{
		{`"result":{"action":"accept","content":{"decision":"allow once"}}`, true},
		{`"result":{"action":"decline"}`, false},
		{`"error":{"code":-32603,"message":"nobody is here"}`, false},
	} {
		c.send(toolCall(7, "Bash", `{"command":"touch done"}`))
		question := c.receive()
		if question.Method != "elicitation/create" {
			t.Fatalf("no question: %+v", question)
		}
		c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,` + test.answer + `}`)
		answer := c.receive()
		if got := ran(c); got != test.runs {
			t.Errorf("%s: ran: %v, answer %s", test.answer, got, answer.Result)
		}
		os.Remove(filepath.Join(c.root, "done"))
	}
}

// A client that did not say that it can ask is not asked.
func TestNobodyToAsk(t *testing.T) {
	c := startPipe(t, nil, askBeforeCommands)
	c.send(initialize)
	c.receive()
	c.send(toolCall(7, "Bash", `{"command":"touch done"}`))
	if a := c.receive(); !strings.Contains(string(a.Result), "this client cannot ask one") || ran(c) {
		t.Errorf("%s", a.Result)
	}
}

func askBeforeCommands(c *Config) {
	file := filepath.Join(c.StateDir, "..", "ask.json")
	if err := os.WriteFile(file, []byte(`{"permissions":{"defaultMode":"default"},"sandbox":{"autoAllowBashIfSandboxed":false}}`), 0o600); err != nil {
		panic(err)
	}
	c.Settings = []string{file}
}

func ran(c *pipeClient) bool {
	_, err := os.Stat(filepath.Join(c.root, "done"))
	return err == nil
}

// A call that asks for a new session, and that a person must allow, asks for one again when it is repeated.
func TestAskInANewSession(t *testing.T) {
	t.Parallel()
	c := startPipe(t, nil, askBeforeCommands)
	call := func(extra string) string {
		return strings.Replace(modernBash("1", "touch done", extra), `"_meta":{`,
			`"_meta":{"toolhost/session":"new",`, 1)
	}
	c.send(call(""))
	var asked struct{ RequestState string }
	if a := c.receive(); json.Unmarshal(a.Result, &asked) != nil || asked.RequestState == "" {
		t.Fatalf("no question: %s %+v", a.Result, a.Error)
	}
	c.send(call(`"requestState":"` + asked.RequestState +
		`","inputResponses":{"approval":{"action":"accept","content":{"decision":"allow once"}}},`))
	if a := c.receive(); !ran(c) || !strings.Contains(string(a.Result), `"session":`) {
		t.Errorf("the allowed call did not run: %s %+v", a.Result, a.Error)
	}
}

// TestAlwaysAllowed offers to remember an answer where one person's client calls, and says why where it does not.
func TestAlwaysAllowed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	const ask = `{"permissions":{"defaultMode":"default","ask":["Bash(rm:*)"]},"sandbox":{"autoAllowBashIfSandboxed":false}}`
	for _, tt := range []struct {
		name, command, rule string
		meta                map[string]any
		session             string
		stdio               bool
		decision            string
		offered, known      bool
		says                string
	}{
		{name: "a process", command: "touch done", stdio: true, decision: AlwaysAllow, offered: true, known: true},
		{name: "a process of Claude Code", command: "touch done", stdio: true, meta: map[string]any{"claudecode/sessionId": "s"}, decision: AlwaysAllow, offered: true, known: true},
		{name: "a legacy session", command: "touch done", session: "s", decision: AlwaysAllow, offered: true, known: true},
		{name: "the rule that was shown", command: "touch done", rule: "Bash(touch done)", stdio: true, decision: AlwaysAllow, offered: true, known: true},
		{name: "a wider rule", command: "touch done", rule: "Bash(touch *)", stdio: true, decision: AlwaysAllow, offered: true, says: "allows something else"},
		{name: "no one's conversation", command: "touch done", decision: AlwaysAllow, says: "several people may share"},
		{name: "a rule asks", command: "rm -f x; touch done", stdio: true, decision: AlwaysAllow, says: "the rule Bash(rm:*) asks each time"},
		{name: "once", command: "touch done", stdio: true, decision: AllowOnce, offered: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := openHost(t, map[string]string{".claude/settings.json": ask},
				func(c *Config) { c.TrustWorkspace = true })
			args, _ := json.Marshal(map[string]string{"command": tt.command})
			req := Request{Tool: "Bash", Args: args, Client: builtin.Client{CanAsk: true}}
			call := func() Reply { return h.Call(t.Context(), h.Admit(Local(), tt.meta, tt.session, tt.stdio), req) }
			q := call().Question
			if q == nil || (len(q.Always) > 0) != tt.offered {
				t.Fatalf("the question is %+v", q)
			}
			req.Answer = &Answer{State: q.State, Decision: tt.decision, Rule: tt.rule, By: ByClient}
			if reply := call(); !strings.Contains(q.Message+reply.Text, tt.says) {
				t.Errorf("%q is not in %s", tt.says, q.Message+reply.Text)
			}
			req.Answer = nil
			if again := call().Question; (again == nil) != tt.known {
				t.Errorf("asked again: %v", again != nil)
			}
		})
	}
}

// TestQuestionRecordsAreBounded has one principal ask more than may be open: the oldest records are written, and none holds a long command.
func TestQuestionRecordsAreBounded(t *testing.T) {
	const beyond = 5
	var written []string
	w := waitingRecords{write: func(r audit.Record) error { written = append(written, r.Tool); return nil }}
	w.put(&Question{State: "other"}, audit.Record{Principal: "other"})
	for n := range approvals.MaxOpen + beyond {
		tool := strconv.Itoa(n)
		w.put(&Question{State: tool}, audit.Record{Principal: "p", Tool: tool, Time: time.Unix(int64(n), 0),
			Command: strings.Repeat("x", 40_000)})
	}
	if !slices.Equal(written, []string{"0", "1", "2", "3", "4"}) || len(w.records) != approvals.MaxOpen+1 {
		t.Errorf("%d wait, and %q are written", len(w.records), written)
	}
	for _, r := range w.records {
		if len(r.rec.Command) > 4096+utf8.UTFMax {
			t.Fatalf("%d bytes of the command are kept", len(r.rec.Command))
		}
	}
	w.close()
}

// TestRefusedBecause: the agent is told whether a person refused, or nobody answered.
func TestRefusedBecause(t *testing.T) {
	for want, a := range map[string]Answer{
		"nobody answered within 5 minutes":            {late: true},
		"the person refused":                          {Decision: DenyIt},
		"the person refused: use make":                {Decision: DenyIt, Reason: "use\nmake."},
		"a person was asked and did not allow it":     {},
		"a person was asked and did not allow it: no": {Reason: "no"},
	} {
		if got := refusedBecause(&a); got != want {
			t.Errorf("%+v: %q, want %q", a, got, want)
		}
	}
}
