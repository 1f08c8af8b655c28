package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/gate"
	"github.com/toolhost/toolhost/mcpserver/observe"
	"github.com/toolhost/toolhost/mcpserver/scope"
)

// An Admission is a call's place in its scope, taken the moment the call came in. It must be left.
type Admission struct {
	principal string
	rights    auth.Rights
	scope     *scope.Scope
	ticket    *gate.Ticket
	session   string // the session handle that was made for this call
	err       error  // why there is no scope
	began     time.Time
	reloads   uint64 // how many looks at the settings had begun then
}

// Leave gives the place up. Leaving twice does nothing.
func (a *Admission) Leave() {
	if a.ticket != nil {
		a.ticket.Leave()
	}
}

// A Request is one call of a tool.
type Request struct {
	Tool string
	Args json.RawMessage
	// Progress tells the client how the call goes; nil when it did not ask.
	Progress func(lastLines string)
	// CanAsk says that the client can put a question to a person.
	CanAsk bool
	// Put has the client ask its user while the call waits. Nil: the client cannot be asked then.
	Put func(ctx context.Context, q *Question) *Answer
	// Later says that a question in the middle of a call ends it, and the call is repeated with the answer.
	Later bool
	// Answer is what a person said to the question that an earlier try of this call was answered with.
	Answer *Answer
	// Origin is told to observers.
	Origin observe.Origin
	// Passes is how much of the result the client passes on, given the bound of clients that are not known. What is longer is cut here,
	// where the text can say where the rest is. Nil: all is passed on.
	Passes func(other int) builtin.Passes
}

// A Reply is the answer to a [Request].
type Reply struct {
	builtin.Result
	// Session is the handle of the session that was made because the call asked for one.
	Session string
	// Question is set when the call did not run because a person must be asked first. The call is then
	// repeated with the answer, and planned and judged again.
	Question *Question
}

// ErrNoTool is the cause of a reply to a call of a tool that is not served here.
var ErrNoTool = errors.New("no such tool")

// Call takes one call through every station, in order. It is the only road to a tool.
func (h *Host) Call(ctx context.Context, a *Admission, req Request) (reply Reply) {
	defer a.Leave()
	tool, err := h.lookUp(req.Tool) // look up
	if err == nil {
		req.Tool = tool.Name // which it was called by another name than
	}
	ctx, info := h.observers.Began(ctx, h.info(a, req))
	rec := audit.Record{Time: a.began, Principal: a.principal, Scope: info.Scope, Tool: req.Tool}
	defer h.end(ctx, info, &rec, &reply) // audit, whatever became of it
	defer h.recoverPanic(req.Tool, &reply)
	defer h.tellEnded(ctx, a, req, &reply)
	if a.err != nil {
		return Reply{Result: refused(a.err)}
	}
	reply.Session = a.session
	if err == nil {
		err = authorize(&rec, a.rights, tool, guard.Intent{}) // has the caller the right?
	}
	if err != nil {
		return reply.with(refused(err))
	}
	call, err := bind(tool, req.Args)                          // bind
	if e := acquireSlot(ctx, a.ticket, tool, call); e != nil { // wait for its turn
		return reply.with(refused(e))
	}
	if err != nil {
		return reply.with(refused(err))
	}
	defer func() { h.reloads.afterCall(call) }() // as hooks will have rewritten it
	h.observers.Reached(ctx, info, observe.AtTurn)
	if err := h.ready(); err != nil { // can it be recorded?
		return reply.with(refused(err))
	}
	if resumes(req) { // it ran, and waits for an answer
		return h.callAgain(ctx, a, req, tool, &rec, reply)
	}
	policy := h.policyFor(a)
	hooks, call, err := h.preHooks(ctx, a, policy, tool, call) // pre-hooks
	if err != nil {
		rec.Verdict = guard.Deny.String()
		return reply.with(refused(err))
	}
	env := h.env(a, policy, req)
	plan, err := call.Plan(ctx, env) // plan
	describe(&rec, plan.Intent)
	if err != nil {
		return reply.with(refused(err))
	}
	if err := authorize(&rec, a.rights, tool, plan.Intent); err != nil { // also to what the arguments make of the tool?
		return reply.with(refused(err))
	}
	h.observers.Planned(ctx, info, rec)
	verdict := env.Suggest(plan.Intent, hooks.judged(ctx, plan.Intent, policy.Judge(plan.Intent))) // judge
	asked := verdict.Action == guard.Ask
	verdict, question := h.ask(a, req, verdict) // ask if need be
	rec.Verdict, rec.Rule, rec.Source, rec.Answered = verdict.Action.String(), verdict.Rule, verdict.Source, answeredBy(req)
	if reply.Question = question; question != nil {
		question.about(call, plan)
		return reply.with(refused(verdict))
	}
	if verdict.Action != guard.Allow {
		hooks.denied(ctx, verdict)
		return reply.with(refused(verdict))
	}
	h.noteUncontained(policy, plan.Intent, req)
	h.observers.Reached(ctx, info, observe.AtRun)
	exec := h.execCall(ctx, a, req, call, env)
	env.Prelude, env.Execs = verdict.Prelude, exec.execs(plan.Intent, asked)
	result, err := plan.Run(runContext(ctx, tool)) // run
	h.observers.Reached(ctx, info, observe.AtFit)
	if err != nil {
		result = refused(err)
	}
	if result.Asks != nil {
		return h.suspend(exec, hooks, result, &rec, reply)
	}
	a.failed(ctx, tool, plan.Intent, result)
	return reply.with(h.finish(ctx, exec, hooks, tool, result)) // format and audit, on the way out
}

// failed tells the calls that wait of a command that failed.
func (a *Admission) failed(ctx context.Context, tool *builtin.Def, in guard.Intent, result builtin.Result) {
	if c := in.Command(); result.IsError && c != nil && ctx.Err() == nil {
		a.ticket.Fail(headline(tool.Name, c.Text))
	}
}

// finish fits the result of a call that has run, and shows it to the post-hooks.
func (h *Host) finish(ctx context.Context, c *execCall, hooks *hookedCall, tool *builtin.Def, result builtin.Result) builtin.Result {
	return hooks.after(ctx, h.fit(h.results.For(c.admission.principal), tool, result, c.passes))
}

// callAgain goes on with a call that waits as a task for the answer that this one brings.
func (h *Host) callAgain(ctx context.Context, a *Admission, req Request, tool *builtin.Def, rec *audit.Record, reply Reply) Reply {
	s, result, verdict, err := h.resume(ctx, a, req)
	if err != nil {
		rec.Verdict = guard.Deny.String()
		return reply.with(refused(err))
	}
	rec.Verdict, rec.Rule, rec.Source, rec.Answered, rec.Command = verdict.Action.String(), verdict.Rule, verdict.Source, req.Answer.By, s.asked.Question.Text
	if result.Asks != nil {
		return h.suspend(s.call, s.hooks, result, rec, reply)
	}
	return reply.with(h.finish(ctx, s.call, s.hooks, tool, result))
}

// end records a call that has ended, and tells of it.
func (h *Host) end(ctx context.Context, info observe.Call, rec *audit.Record, reply *Reply) {
	*rec, reply.Result = h.record(*rec, reply.Result)
	h.observers.Ended(ctx, info, *rec, reply.Result)
}

// recoverPanic is deferred: a tool that panics fails alone.
func (h *Host) recoverPanic(tool string, reply *Reply) {
	if p := recover(); p != nil {
		h.log.Error("a tool panicked", "tool", tool, "panic", p, "stack", string(debug.Stack()))
		reply.Result = refused(fmt.Errorf("%s failed inside the host, which is a defect of toolhost: %v", tool, p))
	}
}

func (r Reply) with(result builtin.Result) Reply {
	r.Result = result
	return r
}

// refused is the answer to a call that did not run, or failed: text that a model can act on.
func refused(err error) builtin.Result {
	return builtin.Result{Text: err.Error(), IsError: true}
}

// acquireSlot waits for a call's turn at the gate. A call that could not be bound waits alone.
func acquireSlot(ctx context.Context, ticket *gate.Ticket, tool *builtin.Def, call *builtin.Call) error {
	if tool.Ungated {
		ticket.Leave()
		return nil
	}
	return ticket.Enter(ctx, call != nil && call.Beside)
}

// runContext lets a tool that finishes what it began run on when its client cancels.
func runContext(ctx context.Context, tool *builtin.Def) context.Context {
	if tool.Finishes {
		return context.WithoutCancel(ctx)
	}
	return ctx
}
