package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// An Admission is the place of a call in the queue of its scope, from the arrival of the call. The holder must call
// Leave.
type Admission struct {
	principal string
	who       auth.Identity
	scope     *scope.Scope
	ticket    *scope.Ticket
	session   string // the session handle that was created for this call
	err       error  // why scope is nil
	began     time.Time
	reloads   uint64 // number of reloads of the settings that had begun
}

// Leave leaves the queue. A second Leave does nothing.
func (a *Admission) Leave() {
	if a.ticket != nil {
		a.ticket.Release()
	}
}

// label returns the name of the call's scope, or "" if it has none.
func (a *Admission) label() string {
	if a.scope == nil {
		return ""
	}
	return a.scope.Label
}

// A Request is one call of a tool.
type Request struct {
	Tool string
	Args json.RawMessage
	builtin.Client
	// AskUser makes the client ask its user while the call waits. If nil, the client cannot be asked during a call.
	AskUser func(ctx context.Context, q *Question) *Answer
	// Answer is a person's answer to the question that an earlier attempt of this call returned.
	Answer *Answer
	// Origin describes the call to observers.
	Origin audit.Origin
	// ClientLimits returns how much of the result the client passes on; other is the limit of unknown clients. Longer
	// results are cut by the host, which can say where the rest is. If nil, the client passes everything on.
	ClientLimits func(other int) builtin.ClientLimits

	tool resolved // the tool of that name; zero until it is looked up
}

// answeredBy returns the channel through which a person answered the call's question, or "" if there is no answer.
func (r *Request) answeredBy() string {
	if r.Answer == nil {
		return ""
	}
	return r.Answer.By
}

// askedBy returns the channel through which a question about the call would be asked.
func (r *Request) askedBy() string {
	if r.Repeats || r.AskUser != nil {
		return ByClient
	}
	return byConsole
}

// A Reply is the answer to a [Request].
type Reply struct {
	builtin.Result
	// Session is the handle of the session that was created because the call asked for one.
	Session string
	// Question is set if the call did not run because a person must be asked first. The call is then repeated with the
	// answer, planned and judged again.
	Question *Question
}

func (r Reply) with(result builtin.Result) Reply {
	r.Result = result
	return r
}

// errNoTool is the error of a call of a tool that is not served.
var errNoTool = errors.New("no such tool")

// Call takes one call through every stage, in order. Tools run only here.
func (h *Host) Call(ctx context.Context, a *Admission, req Request) (reply Reply) {
	defer a.Leave()
	if req.tool == (resolved{}) {
		req.tool = h.tools.resolveCall(req.Tool, req.Args) // resolve
		if req.tool.inside != nil {
			req.Args = req.tool.inside.args
		}
	}
	req.Tool = req.tool.called(req.Tool)
	if errors.Is(req.tool.err, errNoTool) && a.err == nil { // also if an earlier attempt of this call has waited
		awaitServer(ctx, h, req.Tool, a.ticket.Postpone)
		inside := req.tool.inside
		req.tool = h.tools.resolve(req.Tool)
		req.tool.inside = inside
	}
	tool, err := req.tool.def, req.tool.err
	info := audit.Call{Principal: a.principal, Scope: a.label(), Tool: req.Tool, Arrived: a.began,
		Served: h.tools.has(req.Tool), Origin: req.Origin}
	ctx, info = h.recorder.observers.Began(ctx, info)
	rec := audit.Record{Time: a.began, Principal: a.principal, Scope: info.Scope, Tool: req.Tool,
		Client: req.Origin.Client, ClientVersion: req.Origin.ClientVersion}
	defer func() { h.recorder.end(ctx, info, &rec, &h.approvals.waiting, &reply) }() // audit, however the call ends
	defer h.recoverPanic(req.Tool, &reply)
	defer h.reportEndedTasks(ctx, a, req, &reply)
	defer h.limitError(a, req, &reply)
	if a.err != nil {
		return Reply{Result: refused(a.err)}
	}
	reply.Session = a.session
	if err == nil {
		err = authorize(&rec, a.who, tool, guard.Intent{}) // authorize: the tool
	}
	if err != nil {
		return reply.with(refused(h.policies.noTool(a.principal, a.who, req.Tool, err)))
	}
	call, err := bind(tool, req.Args)                          // bind
	if e := acquireSlot(ctx, a.ticket, tool, call); e != nil { // wait for the gate
		return reply.with(refused(e))
	}
	if err != nil {
		return reply.with(refused(err))
	}
	defer h.policies.reloads.afterCall(&call)
	h.recorder.observers.Reached(ctx, info, audit.AtTurn)
	if err := h.recorder.ready(); err != nil { // can the call be recorded?
		return reply.with(refused(err))
	}
	if resumes(req) { // the call has already run up to a question
		return h.callAgain(ctx, a, req, &rec, reply)
	}
	policy, err := rulesFor(ctx, h, a)
	if err != nil {
		rec.Verdict = guard.Deny.String()
		return reply.with(refused(err))
	}
	// before planning, which could fail with another error
	if _, v := policy.ToolEnabled(tool.Name); v.Rule == guard.RuleSettings {
		rec.Verdict, rec.Rule, rec.Source = v.Action.String(), v.Rule, v.Source
		return reply.with(refused(v))
	}
	if err := req.tool.checkArguments(policy, call); err != nil {
		return reply.with(refused(err))
	}
	c := execCall{host: h, ctx: ctx, admission: a, req: req, call: call, env: h.env(a, policy, req)}
	if c.hooks, call, err = h.hooks.before(ctx, c); err != nil { // pre-hooks
		rec.Verdict = guard.Deny.String()
		if v, ok := errors.AsType[guard.Verdict](err); ok {
			rec.Rule, rec.Source = v.Rule, v.Source
			rec.Did(audit.PhaseRefused, byHook, v.Source)
		}
		return reply.with(refused(err))
	}
	c.call, c.env = call, h.children.offer(ctx, c.env, a, req)
	return h.execute(ctx, c, info, &rec, reply)
}

// execute is the rest of [Host.Call], for a call that has passed the hooks.
func (h *Host) execute(ctx context.Context, c execCall, info audit.Call, rec *audit.Record, reply Reply) Reply {
	policy := c.env.Policy
	plan, err := c.call.Plan(ctx, c.env) // plan
	for _, e := range plan.Intent.Effects {
		rec.Add(e.Record())
	}
	rec.Summary = plan.Intent.Summary()
	if err == nil {
		err = authorize(rec, c.admission.who, c.req.tool.def, plan.Intent) // authorize: the effects
	}
	if err != nil {
		return reply.with(refused(err))
	}
	h.recorder.observers.Planned(ctx, info, *rec)
	// judge
	verdict := c.env.Suggest(plan.Intent, c.hooks.judged(ctx, plan.Intent, c.req.tool.judge(policy, plan.Intent), rec))
	classifier := h.hooks.classify(ctx, &c, verdict)
	verdict = c.classified(classifier, verdict, rec)
	asked := verdict.Action == guard.Ask
	verdict, question := h.approvals.decide(&c, plan, verdict, rec) // ask if necessary
	rec.Verdict, rec.Rule, rec.Source, rec.Answered = verdict.Action.String(), verdict.Rule, verdict.Source,
		c.req.answeredBy()
	if reply.Question = question; question != nil {
		question.classifier = classifier
		return reply.with(refused(verdict))
	}
	if verdict.Action != guard.Allow {
		c.hooks.denied(ctx, verdict)
		return reply.with(refused(verdict))
	}
	h.approvals.noteUncontained(policy, plan.Intent, c.req)
	h.recorder.observers.Reached(ctx, info, audit.AtRun)
	c.env.Execs = c.execs(plan.Intent, asked)
	c.env.AskHeld, c.env.AsksLater = c.asksHeld(policy)
	if asksServer(plan.Intent) {
		c.admission.ticket.YieldAfter(serverTurn)
	}
	result, err := plan.Run(runContext(ctx, c.req.tool.def)) // run
	h.recorder.observers.Reached(ctx, info, audit.AtFit)
	if err != nil {
		served := result.Served
		result = refused(err)
		result.Served = served
	}
	if asked && err == nil {
		noteAgreed(h.log, policy, plan.Intent)
	}
	if result.Asks != nil {
		return h.approvals.suspend(&c, result, rec, reply)
	}
	c.admission.failed(ctx, c.req.tool.def, plan.Intent, result)
	return reply.with(h.finish(ctx, &c, result)) // format; audit follows in recorder.end
}

// noteAgreed records that a person has agreed to what a call wrote to files that the host runs outside of the sandbox.
func noteAgreed(log *slog.Logger, policy *guard.Policy, in guard.Intent) {
	for _, e := range in.Effects {
		if w, ok := e.(guard.Write); ok {
			if err := policy.Commands().Agreed(w.Path); err != nil {
				log.Warn("cannot record that a person agreed to a file that the host runs", "file", w.Path.String(),
					"error", err)
			}
		}
	}
}

// callNoTool sends a call of an unknown tool through the pipeline, and returns the error. Unknown names are audited
// too: they may be probing.
func (h *Host) callNoTool(who auth.Identity, name string, err error) error {
	h.Call(context.Background(), &Admission{principal: who.Principal, who: who, err: err, began: time.Now()},
		Request{Tool: name})
	return err
}

// callAgain continues a call that is suspended as a task until the answer in req arrives.
func (h *Host) callAgain(ctx context.Context, a *Admission, req Request, rec *audit.Record, reply Reply) Reply {
	s, result, verdict, err := h.approvals.resume(ctx, a, req, rec)
	if err != nil {
		rec.Verdict = guard.Deny.String()
		return reply.with(refused(err))
	}
	rec.Verdict, rec.Rule, rec.Source, rec.Answered = verdict.Action.String(), verdict.Rule, verdict.Source, req.Answer.By
	if result.Asks != nil {
		return h.approvals.suspend(s.call, result, rec, reply)
	}
	return reply.with(h.finish(ctx, s.call, result))
}

// authorize refuses a call whose caller lacks the right to the tool or to an effect of this call.
func authorize(rec *audit.Record, who auth.Identity, tool *builtin.Def, in guard.Intent) error {
	need := rightTo(tool.Permission)
	if need != auth.Exec { // for a command, the rules judge its files and the sandbox enforces the verdict
		for _, e := range in.Effects {
			need |= rightTo(e.Permission())
		}
	}
	server, has := notServed(who, tool, in), who.Rights
	if has.Has(need) && server == "" {
		return nil
	}
	rec.Verdict, rec.Rule = guard.Deny.String(), "rights of the caller"
	if has.Has(need) {
		return fmt.Errorf("refused: the credential of this caller does not allow the server %s; the owner of this host can "+
			"create a token that does (toolhost token add NAME --servers …)", server)
	}
	return fmt.Errorf("refused: %s needs the right %s, and the credential of this caller has %s. Other arguments do not "+
		"change that; "+
		"the owner of this host can create a token with more rights (toolhost token add NAME --rights …), or the authorization server can grant the scope", tool.Name, need&^has, has)
}

// mayUse reports whether a caller may use another server.
func mayUse(who auth.Identity, server string) bool {
	return who.Servers == nil || server == "" || slices.Contains(who.Servers, server)
}

// notServed returns a server that a call would use and its caller may not use, or "".
func notServed(who auth.Identity, tool *builtin.Def, in guard.Intent) string {
	if !mayUse(who, tool.Server) {
		return tool.Server
	}
	for _, e := range in.Effects {
		if c, ok := e.(guard.CallTool); ok && !mayUse(who, c.Server) {
			return c.Server
		}
	}
	return ""
}

// serverTurn is how long a server that does not answer delays the later calls of a conversation.
const serverTurn = 2 * time.Second

// asksServer reports whether a call sends a request to another server.
func asksServer(in guard.Intent) bool {
	return slices.ContainsFunc(in.Effects, func(e guard.Effect) bool {
		c, ok := e.(guard.CallTool)
		return ok && c.Server != ""
	})
}

// acquireSlot waits for the gate to let the call run. A call that could not be bound runs alone.
func acquireSlot(ctx context.Context, ticket *scope.Ticket, tool *builtin.Def, call *builtin.Call) error {
	if tool.SkipQueue {
		ticket.Release()
		return nil
	}
	return ticket.Acquire(ctx, call != nil && call.ConcurrencySafe)
}

// env returns the environment of a call.
func (h *Host) env(a *Admission, policy *guard.Policy, req Request) *builtin.Env {
	set := h.policies.settings.Current()
	env := &builtin.Env{
		Runtime: h.runtime, Principal: a.principal, Scope: a.scope.Label, Tool: req.Tool, Policy: policy,
		ReadState: a.scope.Seen, Dir: a.scope.Dir, Results: h.results.For(a.principal),
		Shell: builtin.ShellLimits{
			Timeout: set.Bash.DefaultTimeout, MaxTimeout: set.Bash.MaxTimeout, Window: set.Bash.ForegroundWindow,
			Tasks:       set.Bash.MaxTasks,
			KeepChanges: set.History.Commands != settings.Off,
		},
		MaskSecrets: set.Results.MaskSecrets, Durable: set.Write.Fsync, Client: req.Client,
		Plan: h.modes.plan(a.scope), SetPlanning: func(on bool) error { return h.modes.change(a.scope, on) },
		Worktree: h.children.worktree(a), WorktreeDirty: set.Agent.WorktreeDirty, Conversation: a.scope.Conversation(),
		Visible: func(d *builtin.Def) bool { return h.tools.visible(d, policy, a.who) },
	}
	env.Skills = h.skills(a.who, policy)
	env.ListResources = func(ctx context.Context, server string) (string, error) {
		return listResources(ctx, h, a.principal, server, env.Visible)
	}
	env.ReadResource = func(server, uri string) (builtin.Plan, error) {
		return h.children.consults(a.principal).Read(env, server, uri)
	}
	if req.ClientLimits != nil {
		env.ClientLimits = req.ClientLimits(set.Clients.MaxResult)
	}
	h.runtime.DropEnded(env)
	return env
}

// runContext returns the context for Run. It is not cancelled for a tool that must complete its work.
func runContext(ctx context.Context, tool *builtin.Def) context.Context {
	if tool.Uncancelable {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// failed makes the waiting sibling calls fail after a command has failed.
func (a *Admission) failed(ctx context.Context, tool *builtin.Def, in guard.Intent, result builtin.Result) {
	if c := in.Command(); result.IsError && c != nil && ctx.Err() == nil {
		a.ticket.Fail(headline(tool.Name, c.Text))
	}
}

// finish truncates the result of a call to the limits of its tool and its client, and runs the post-hooks. The full
// text of a truncated result is saved on disk, or the result says why it is not.
func (h *Host) finish(ctx context.Context, c *execCall, r builtin.Result) builtin.Result {
	limit := c.req.tool.def.Limit
	if most := c.env.ClientLimits.Of(r.IsError); most > 0 {
		limit = min(limit, most)
	}
	if limit > 0 && r.SavedPath == "" {
		fitted, err := h.results.For(c.admission.principal).Fit(r.Text, limit)
		if err != nil {
			h.log.Warn("cannot save a long result", "tool", c.req.Tool, "error", err)
		}
		r.Text, r.SavedPath = fitted.Text, fitted.Path
	}
	return c.hooks.after(ctx, r)
}

// limitError truncates an error to the limit of its client. Errors of calls that did not run have no other limit.
func (h *Host) limitError(a *Admission, req Request, reply *Reply) {
	if !reply.IsError || req.ClientLimits == nil || a.scope == nil || reply.SavedPath != "" {
		return
	}
	most := req.ClientLimits(h.policies.settings.Current().Clients.MaxResult).Of(true)
	fitted, err := h.results.For(a.principal).Fit(reply.Text, most)
	if err != nil {
		h.log.Warn("cannot save a long error", "tool", req.Tool, "error", err)
	}
	reply.Text, reply.SavedPath = fitted.Text, fitted.Path
}

// maxEndedReported is the number of ended tasks that one result reports. The next result reports further tasks.
const maxEndedReported = 5

// reportEndedTasks adds one line to the text of a result for each background task of the scope that has ended since the
// last report. Tasks that do not fit the client's limit are reported with the next result. So are all tasks if the call
// has no result to show because it panicked, asks a question, or was cancelled.
func (h *Host) reportEndedTasks(ctx context.Context, a *Admission, req Request, reply *Reply) {
	if a.scope == nil || reply.Text == "" || reply.Question != nil || ctx.Err() != nil || req.tool.extra != nil {
		return
	}
	most, reported, gap := 0, 0, "\n\n"
	if req.ClientLimits != nil {
		most = req.ClientLimits(h.policies.settings.Current().Clients.MaxResult).Of(reply.IsError)
	}
	h.runtime.TasksEnded(a.principal, a.scope.Label, func(t *builtin.Task, how string) bool {
		what := t.Text
		if !t.Call {
			what = headline(builtin.Bash.Name, t.Text)
		}
		text := fmt.Sprintf("%s%s[Task %s, %s, has ended: %s.]\n", strings.TrimSuffix(reply.Text, "\n"), gap,
			t.ID, what, how)
		if reported == maxEndedReported || most > 0 && utf8.RuneCountInString(text) > most {
			return false
		}
		reply.Text, gap = text, "\n"
		reported++
		return true
	})
}

// recoverPanic is deferred so that a panic fails only the call of its tool.
func (h *Host) recoverPanic(tool string, reply *Reply) {
	if p := recover(); p != nil {
		h.log.Error("a tool panicked", "tool", tool, "panic", p, "stack", string(debug.Stack()))
		reply.Result = refused(fmt.Errorf("%s failed inside the host, which is a defect of toolhost: %v", tool, p))
	}
}

// refused returns the result of a call that did not run, or failed: text that a model can act on.
func refused(err error) builtin.Result {
	_, unread := errors.AsType[*builtin.UnreadError](err)
	return builtin.Result{Text: err.Error(), IsError: true, Unread: unread}
}

// headline returns one short line that identifies a call, such as "Bash(make test)".
func headline(tool, command string) string {
	const longest = 60
	line, _, _ := strings.Cut(command, "\n")
	if r := []rune(line); len(r) > longest {
		line = string(r[:longest]) + "…"
	}
	return fmt.Sprintf("%s(%s)", tool, line)
}
