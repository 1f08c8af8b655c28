package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// If rules apply to commands, the programs that a command starts are judged when they start. A question about a program
// is asked during the call, while the program waits.

// maxAlways bounds how many always-allowed programs are remembered.
const maxAlways = 10_000

// An alwaysAllowed is the set of programs, with arguments and scope, that a person always allows until the host ends.
type alwaysAllowed struct {
	mu       sync.Mutex
	programs map[string]bool
}

func (m *alwaysAllowed) has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.programs[key]
}

func (m *alwaysAllowed) add(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.programs == nil || len(m.programs) >= maxAlways {
		m.programs = map[string]bool{}
	}
	m.programs[key] = true
}

// An execCall is a call that passed the hooks, with its environment.
type execCall struct {
	host      *Host
	ctx       context.Context // of the call; it carries the client's session
	admission *Admission
	req       Request
	call      *builtin.Call
	hooks     *hookedCall
	env       *builtin.Env
}

// execs returns the judgement of the programs that the call's command starts, or nil if no rule applies to commands.
// approved says that a person has approved the text of the command.
func (c *execCall) execs(in guard.Intent, approved bool) *builtin.Execs {
	policy := func() *guard.Policy {
		p := c.host.policies
		return c.host.modes.policy(p.in(c.env.Worktree, p.settings.Reload(), c.admission.principal), c.admission.scope)
	}
	now := policy()
	command := in.Command()
	if command == nil || !now.Commands().JudgesExecs() {
		return nil
	}
	e := &builtin.Execs{Policy: policy, Ask: c.ask, Known: c.isAlwaysAllowed, Later: c.req.Repeats, Tell: c.audit}
	if approved {
		e.Granted = now.Commands().ExecGrants(command.Text)
	}
	return e
}

// audit records an event of the call.
func (c *execCall) audit(e builtin.ExecEvent) {
	rec := audit.Record{Time: time.Now(), Principal: c.admission.principal, Scope: c.admission.scope.Label, Tool: c.req.Tool, Event: audit.EventExec,
		Command: e.Text, Chain: strings.Join(e.Chain, " → "), Verdict: e.Action.String(), Rule: e.Rule, Source: e.Source, Answered: e.By, Error: e.Reason}
	_ = c.host.recorder.write(rec) // it logs its errors
}

// key identifies a program by its arguments and the scope of the call.
func (c *execCall) key(asked builtin.ExecQuestion) string {
	return strings.Join(append([]string{c.admission.principal, c.admission.scope.Label, asked.Program}, asked.Words...), "\x00")
}

// isAlwaysAllowed reports whether a person has always allowed the program.
func (c *execCall) isAlwaysAllowed(asked builtin.ExecQuestion) bool {
	return c.host.approvals.always.has(c.key(asked))
}

// ask asks the client while its call waits, or else the operator.
func (c *execCall) ask(ctx context.Context, asked builtin.ExecQuestion) builtin.ExecAnswer {
	key := c.key(asked)
	merged, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	q := c.question(asked)
	var answer *Answer
	switch {
	case !asked.Background && c.req.AskUser != nil:
		answer = c.req.AskUser(merged, q)
	case c.host.approvals.operatorPresent():
		answer = c.host.approvals.askOperator(merged, c.admission, c.req, q)
	case asked.Background:
		return builtin.ExecAnswer{Reason: "a person must approve it, and of a background command that can be done at the console of the host alone, which is not open"}
	default:
		return builtin.ExecAnswer{Reason: "a person must approve it, and no one can be asked here in the middle of a call"}
	}
	return c.outcome(q, answer, key)
}

// question returns the question about a program for clients and the console.
func (c *execCall) question(asked builtin.ExecQuestion) *Question {
	reason := "The command of this call has come to start it, and waits for the answer"
	if len(asked.Chain) > 0 {
		reason += " (" + strings.Join(append(slices.Clone(asked.Chain), asked.Text), " → ") + ")"
	}
	v := guard.Verdict{Action: guard.Ask, Rule: asked.Rule, Source: asked.Source, Final: true, Reason: reason + ".",
		Parts: []guard.Part{{What: "start " + asked.Text, Action: guard.Ask, Rule: asked.Rule, Source: asked.Source, Reason: reason, Final: true}}}
	o := offer{scopeOnly: true, none: notPersonal}
	if c.admission.scope.Personal {
		o = offer{scopeOnly: true, rules: []string{asked.Text + " (in this conversation, until the host ends)"}}
	}
	o.by = c.host.children.label(c.admission.principal)
	d := guard.Description{Dir: asked.Dir, Items: []guard.Item{{What: "start " + asked.Text, Action: guard.Ask, Rule: asked.Rule, Source: asked.Source, Reason: reason}}}
	return c.host.approvals.newQuestion(c.req.Tool, c.call, d, v, o)
}

// outcome translates an answer.
func (c *execCall) outcome(q *Question, a *Answer, key string) builtin.ExecAnswer {
	if a.Decision != "" && !slices.Contains(q.Decisions(), a.Decision) {
		return builtin.ExecAnswer{By: a.By, Reason: fmt.Sprintf("the answer %q was not offered, only %q were", clipped(a.Decision), q.Decisions())}
	}
	switch a.Decision {
	case AlwaysAllow:
		c.host.approvals.always.add(key)
		fallthrough
	case AllowOnce:
		return builtin.ExecAnswer{Allowed: true, By: a.By}
	}
	return builtin.ExecAnswer{By: a.By, Reason: refusedBecause(a)}
}
