package mcpserver

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// An owner answers every question in the same way.
type owner struct {
	absent bool
	answer Answer
	meet   func() // called before the answer
	asked  []OperatorQuestion
}

func (o *owner) Present() bool { return !o.absent }

func (o *owner) Ask(_ context.Context, q OperatorQuestion) Answer {
	o.asked = append(o.asked, q)
	if o.meet != nil {
		o.meet()
	}
	return o.answer
}

const askMake = `{"permissions":{"ask":["Bash(echo make:*)"]}}`

// askedOf makes a legacy client that cannot ask call Bash, and returns the text of the answer.
func askedOf(t *testing.T, o *owner, files map[string]string) (text string, h *Host) {
	t.Helper()
	h, _ = openHost(t, files, func(c *Config) { c.Asker, c.TrustWorkspace = o, true })
	if held := h.policies.of(LocalPrincipal).Commands().Containment(); !held.Denies &&
		strings.Contains(files[".claude/settings.json"], "ask") &&
		!strings.Contains(files[".claude/settings.json"], "sandbox") {
		t.Skip("commands are not contained on this machine: " + held.Why)
	}
	a := h.Admit(Local(), map[string]any{"threadId": "t"}, "", true)
	req := Request{Tool: "Bash", Args: []byte(`{"command":"echo make it"}`), Client: builtin.Client{CanAsk: h.approvals.operatorPresent()}}
	reply := h.Call(context.Background(), a, req)
	if reply.Question != nil {
		req.Answer = h.approvals.askOperator(context.Background(), a, req, reply.Question)
		reply = h.Call(context.Background(), h.readmit(a), req)
	}
	return reply.Text, h
}

func TestOwnerIsAsked(t *testing.T) {
	t.Parallel()
	files := map[string]string{".claude/settings.json": askMake}
	tests := []struct {
		name  string
		owner owner
		want  string
	}{
		{"allows", owner{answer: Answer{Decision: AllowOnce}}, "make it\n"},
		{"denies", owner{answer: Answer{Decision: DenyIt, Reason: "use just"}}, "the person refused: use just"},
		{"does not answer", owner{}, "a person was asked and did not allow it"},
		{"is not there", owner{absent: true, answer: Answer{Decision: AllowOnce}}, "this client cannot ask one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, h := askedOf(t, &tt.owner, files)
			if log, err := os.ReadFile(h.Operator().AuditPath()); err != nil ||
				strings.Contains(string(log), `"answered":"console"`) == tt.owner.absent {
				t.Errorf("who answered is wrong in the record: %s, %v", log, err)
			}
			if !strings.Contains(text, tt.want) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if asked := len(tt.owner.asked); asked != 1 != tt.owner.absent {
				t.Errorf("asked %d times", asked)
			}
			for _, q := range tt.owner.asked {
				if string(q.Input) != `{"command":"echo make it"}` || q.Dir == "" || q.Tool != "Bash" ||
					q.Verdict.Rule != "Bash(echo make:*)" {
					t.Errorf("the question is %+v %+v", q, q.Question)
				}
			}
		})
	}
}

// TestOwnerIsAskedInNewSession keeps the session that was made for a call that had to be asked about.
func TestOwnerIsAskedInNewSession(t *testing.T) {
	yes := &owner{answer: Answer{Decision: AllowOnce}}
	h, _ := openHost(t, map[string]string{".claude/settings.json": askMake}, func(c *Config) { c.Asker = yes })
	a := h.Admit(Local(), map[string]any{scope.MetaHandle: scope.NewHandle}, "", true)
	req := Request{Tool: "Bash", Args: []byte(`{"command":"echo make it"}`), Client: builtin.Client{CanAsk: true}}
	reply := h.Call(context.Background(), a, req)
	if reply.Question == nil {
		t.Fatalf("nothing was asked: %s", reply.Text)
	}
	req.Answer = &Answer{State: reply.Question.State, Decision: AllowOnce}
	reply = h.Call(context.Background(), h.readmit(a), req)
	if reply.IsError || reply.Session == "" {
		t.Errorf("the session is %q and the answer: %s", reply.Session, reply.Text)
	}
}

// TestOwnerAnswersWhereContained lets no answer count that a command could have given itself.
func TestOwnerAnswersWhereContained(t *testing.T) {
	t.Parallel()
	yes := owner{answer: Answer{Decision: AllowOnce}}
	text, h := askedOf(t, &yes, map[string]string{".claude/settings.json": `{"permissions":{"ask":["Bash(echo make:*)"]},"sandbox":{"enabled":false}}`})
	if len(yes.asked) != 0 || !strings.Contains(text, "this client cannot ask one") {
		t.Errorf("without a sandbox %d questions were asked: %s", len(yes.asked), text)
	}
	if err := h.Operator().MayAnswer(); err == nil || !strings.Contains(err.Error(), "sandbox.enabled is false") {
		t.Errorf("the reason is %v", err)
	}
	if reply := do(h, "Bash", `{"command":"true"}`); reply.IsError {
		t.Fatal(reply.Text)
	}
	if err := h.Operator().MayAnswer(); err == nil || !strings.Contains(err.Error(), "Restart the host") {
		t.Errorf("after a command that nothing held the reason is %v", err)
	}

	h, _ = openHost(t, map[string]string{".claude/settings.json": `{"sandbox":{"enabled":false}}`}, func(c *Config) {
		c.Tools, c.TrustWorkspace = []string{"Read", "Edit"}, true
	})
	if err := h.Operator().MayAnswer(); err != nil {
		t.Errorf("no command can be run, and the owner may not answer: %v", err)
	}
}

// TestOwnerAnswerLosesItsGround takes the sandbox away between the question and the answer.
func TestOwnerAnswerLosesItsGround(t *testing.T) {
	late := owner{answer: Answer{Decision: AllowOnce}}
	var h *Host
	late.meet = func() { h.approvals.uncontained.Store(true) }
	h, _ = openHost(t, nil, func(c *Config) { c.Asker = &late })
	a := h.Admit(Local(), nil, "", true)
	defer a.Leave()
	got := h.approvals.askOperator(context.Background(), a, Request{}, &Question{State: "s"})
	if got.Decision != "" || got.State != "s" || !strings.Contains(got.Reason, "does not count") {
		t.Errorf("got %+v", got)
	}
}

func TestUncontainedIsNoted(t *testing.T) {
	h, _ := openHost(t, nil)
	policy := h.policies.of(LocalPrincipal)
	if !policy.Commands().Containment().Denies {
		t.Skip("commands are not contained on this machine: " + policy.Commands().Containment().Why)
	}
	run := guard.Intent{Effects: []guard.Effect{guard.Exec{Text: "true"}}}
	out := guard.Intent{Effects: []guard.Effect{guard.Exec{Text: "true", Unsandboxed: true}}}
	for _, tt := range []struct {
		name string
		in   guard.Intent
		req  Request
		want bool
	}{
		{"contained", run, Request{}, false}, {"no command", guard.Intent{}, Request{}, false},
		{"outside, as a person allowed", out, Request{Answer: &Answer{}}, false}, {"outside", out, Request{}, true},
	} {
		h.approvals.uncontained.Store(false)
		if h.approvals.noteUncontained(policy, tt.in, tt.req); h.approvals.uncontained.Load() != tt.want {
			t.Errorf("%s: noted %v, want %v", tt.name, !tt.want, tt.want)
		}
	}
}

// paged is an owner with a page for each question.
type paged struct{ owner }

func (p *paged) URL(id string) string { return "http://127.0.0.1:1/approvals/" + id }

// TestQuestionOpensItsPage has clients that declare the URL mode open the page of a question: the answer that is given there counts.
func TestQuestionOpensItsPage(t *testing.T) {
	t.Parallel()
	const byURL = `"elicitation":{"url":{}}`
	for _, decision := range []string{AllowOnce, DenyIt} {
		o := &paged{owner{answer: Answer{Decision: decision}}}
		c := startPipe(t, nil, askBeforeCommands, func(c *Config) { c.Asker = o })
		if err := c.host.Operator().MayAnswer(); err != nil {
			t.Skip(err)
		}
		call := func(extra string) rpcAnswer {
			c.send(strings.Replace(modernBash("1", "touch done", extra), askCapability, byURL, 1))
			return c.receive()
		}
		var q struct {
			RequestState  string
			InputRequests map[string]struct {
				Params struct{ Mode, URL, ElicitationID string }
			}
		}
		if a := call(""); json.Unmarshal(a.Result, &q) != nil || q.InputRequests[questionID].Params.Mode != "url" ||
			q.InputRequests[questionID].Params.URL != o.URL(q.InputRequests[questionID].Params.ElicitationID) {
			t.Fatalf("no page: %s", a.Result)
		}
		a := call(`"requestState":"` + q.RequestState +
			`","inputResponses":{"approval":{"action":"accept","content":{"decision":"allow once"}}},`)
		if ran(c) != (decision == AllowOnce) {
			t.Errorf("%s: ran: %v: %s", decision, ran(c), a.Result)
		}
	}
	for _, decision := range []string{AllowOnce, DenyIt} {
		c := startPipe(t, nil, askBeforeCommands, func(c *Config) { c.Asker = &paged{owner{answer: Answer{Decision: decision}}} })
		c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+byURL+`}`, 1))
		c.receive()
		c.send(toolCall(7, "Bash", `{"command":"touch done"}`))
		m := c.receive()
		for m.Method != "" {
			c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept"}}`)
			m = c.receive()
		}
		if ran(c) != (decision == AllowOnce) {
			t.Errorf("legacy, %s: ran: %v: %s", decision, ran(c), m.Result)
		}
	}
}

// TestOpenPageHoldsNoPlace has a call wait for the answer at its page: others of its scope run meanwhile, and its end uses up no answer.
func TestOpenPageHoldsNoPlace(t *testing.T) {
	answered := make(chan struct{})
	o := &paged{owner{answer: Answer{Decision: AllowOnce}, meet: func() { <-answered }}}
	c := startPipe(t, nil, askBeforeCommands, func(c *Config) { c.Asker = o })
	if err := c.host.Operator().MayAnswer(); err != nil {
		t.Skip(err)
	}
	send := func(id, extra string) {
		c.send(strings.Replace(modernBash(id, "touch done", extra), askCapability, `"elicitation":{"url":{}}`, 1))
	}
	send("1", "")
	var q struct{ RequestState string }
	if a := c.receive(); json.Unmarshal(a.Result, &q) != nil || q.RequestState == "" {
		t.Fatalf("no question: %s", a.Result)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	accept := mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept}}
	opened := mcp.MultiRoundTripParams{RequestState: q.RequestState,
		InputResponses: mcp.InputResponses{questionID: mcp.NewElicitationInputResponse(accept)}}
	if answer, err := (adapter{Server: &Server{host: c.host}}).answerTo(ended,
		&message{admission: c.host.AdmitNamed("one")}, opened); err == nil {
		t.Errorf("a call that has ended got the answer %+v", answer)
	}
	send("2", `"requestState":"`+q.RequestState+`","inputResponses":{"approval":{"action":"accept"}},`)
	c.send(strings.Replace(modernBash("3", "x", ""), `"Bash","arguments":{"command":"x"}`,
		`"Glob","arguments":{"pattern":"*"}`, 1))
	if a := c.receive(); string(a.ID) != "3" || a.Error != nil {
		t.Errorf("a later call of the scope waits: %s %s", a.ID, a.Result)
	}
	close(answered)
	if a := c.receive(); string(a.ID) != "2" || !ran(c) {
		t.Errorf("ran: %v: %s", ran(c), a.Result)
	}
}

// TestQuestionPageOrForm has clients that can show both open the page only where the operator has the console open.
func TestQuestionPageOrForm(t *testing.T) {
	for _, tt := range []struct {
		can    string
		absent bool
		mode   string
	}{{`"url":{}`, true, "url"}, {`"url":{},"form":{}`, false, "url"}, {`"url":{},"form":{}`, true,
		"form"}, {`"form":{}`, false, "form"}} {
		c := startPipe(t, nil, askBeforeCommands, func(c *Config) { c.Asker = &paged{owner{absent: tt.absent}} })
		if err := c.host.Operator().MayAnswer(); err != nil {
			t.Skip(err)
		}
		c.send(strings.Replace(modernBash("1", "touch done", ""), askCapability, `"elicitation":{`+tt.can+`}`, 1))
		if a := c.receive(); !strings.Contains(string(a.Result), `"mode":"`+tt.mode+`"`) {
			t.Errorf("%s, absent %v: %s", tt.can, tt.absent, a.Result)
		}
	}
}
