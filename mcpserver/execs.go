package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hostpreset"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// If rules apply to commands, the programs that a command starts are judged when they start, and in a sandbox always
// the hosts that they connect to. A question about a program or a host is asked during the call, while the program
// waits.

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
	env       *builtin.Env // nil: of a program that runs in a cell
	server    *serverCall  // nil: of a command
}

// A serverCall is another server whose process connects to a host.
type serverCall struct {
	name      string
	workspace bool                     // it sees the files of the workspace
	allowHost func(host string) string // returns the command that allows a host
}

// execs returns the judgement of the programs that the call's command starts, and of its hosts, or nil if there is no
// command. approved says that a person has approved the text of the command.
func (c *execCall) execs(in guard.Intent, approved bool) *builtin.Execs {
	policy := func() *guard.Policy {
		p := c.host.policies
		return c.host.modes.policy(p.in(c.env.Worktree, p.settings.Reload(), c.admission.principal), c.admission.scope)
	}
	command := in.Command()
	if command == nil {
		return nil
	}
	now := policy().Commands()
	e := &builtin.Execs{Policy: policy, Ask: c.ask, Hosts: now.Network().Asks, Known: c.isAlwaysAllowed,
		Later: c.req.Repeats, Tell: c.audit}
	if approved && now.JudgesExecs() {
		e.Granted = now.ExecGrants(*command)
	}
	return e
}

// asksHeld returns a function that asks whether the protected files that the command of the call has changed stay,
// and whether that question ends the call. The function is nil if no person can be asked.
func (c *execCall) asksHeld(policy *guard.Policy) (ask func(context.Context, builtin.ExecQuestion) builtin.ExecAnswer,
	later bool) {
	if !policy.Commands().AsksPersons() || !c.req.CanAsk {
		return nil, false
	}
	return c.ask, c.req.Repeats
}

// audit records an event of the call.
func (c *execCall) audit(e builtin.ExecEvent) {
	rec := audit.Record{Time: time.Now(), Principal: c.admission.principal, Scope: c.admission.scope.Label,
		Tool: c.req.Tool, Event: audit.EventExec,
		Command: e.Text, Chain: builtin.Chain(e.Chain), Verdict: e.Action.String(), Rule: e.Rule, Source: e.Source,
		Answered: e.By, Error: e.Reason}
	_ = c.host.recorder.write(rec) // it logs its errors
}

// planned reports whether what the command changes is dropped when a plan ends.
func (c *execCall) planned() bool { return c.env != nil && c.env.Policy.Commands().Discard() }

// key identifies a program by its arguments and the scope of the call. Hosts are asked about anew in each plan.
func (c *execCall) key(asked builtin.ExecQuestion) string {
	scope := c.admission.scope.Label
	if asked.Host && c.planned() {
		scope += "\x00" + c.env.Plan
	}
	return strings.Join(append([]string{c.admission.principal, scope, asked.Program}, asked.Words...), "\x00")
}

// isAlwaysAllowed reports whether a person has always allowed the program.
func (c *execCall) isAlwaysAllowed(asked builtin.ExecQuestion) bool {
	return c.host.approvals.always.has(c.key(asked))
}

// ask asks the client while its call waits, or else the operator.
func (c *execCall) ask(ctx context.Context, asked builtin.ExecQuestion) builtin.ExecAnswer {
	merged, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	q := c.question(asked)
	var answer *Answer
	switch {
	case !asked.Background && c.req.AskUser != nil:
		answer = c.req.AskUser(merged, q)
	case c.host.approvals.asksOperator(c.admission.principal):
		answer = c.host.approvals.askOperator(merged, c.admission, c.req, q)
	case asked.Background:
		return builtin.ExecAnswer{Reason: "a person must approve it. For a background command this is possible only at the " +
			"console, which is not open"}
	default:
		return builtin.ExecAnswer{Reason: "a person must approve it, and this client cannot ask one during a call"}
	}
	return c.outcome(q, asked, answer)
}

// heldQuestion returns the question about protected files for clients and the console.
func (c *execCall) heldQuestion(asked builtin.ExecQuestion) *Question {
	const reason = "The command has changed files that other programs run or obey unasked. They are held: outside of " +
		"commands the former files stand. " +
		"Allow keeps the changes; otherwise they stay held"
	v := guard.Verdict{Action: guard.Ask, Rule: guard.RuleProtected, Final: true, Reason: reason + "."}
	d := guard.Description{Dir: asked.Dir}
	for _, f := range asked.Held {
		part := guard.Part{What: "keep " + guard.Quote(f.Path) + " (" + f.State + ")", Action: guard.Ask,
			Rule: guard.RuleProtected, Reason: reason, Final: true}
		v.Parts = append(v.Parts, part)
		d.Items = append(d.Items, guard.Item{What: part.What, Action: guard.Ask, Rule: part.Rule, Removed: f.Former,
			Added: f.Now})
	}
	o := offer{fixed: true, none: notPersonal, by: c.host.children.label(c.admission.principal)}
	return c.host.approvals.newQuestion(c.admission.principal, c.req.Tool, c.call, d, v, o)
}

// question returns the question about a program or a host for clients and the console.
func (c *execCall) question(asked builtin.ExecQuestion) *Question {
	if len(asked.Held) > 0 {
		return c.heldQuestion(asked)
	}
	what, reason := "start "+asked.Text, "The command of this call has come to start it, and waits for the answer"
	if asked.Host {
		what, reason = "connect to "+asked.Text, "A program of this call has come to connect to it, and waits for the answer"
		asked.Rule = settings.ListHosts
	}
	if len(asked.Chain) > 0 {
		reason += " (" + builtin.Chain(asked.Chain) + ")"
	}
	if asked.Why != "" {
		reason += "; " + asked.Why
	}
	during := "in this conversation, until the host ends"
	if asked.Host && c.planned() {
		during = "until the plan ends"
	} else if asked.Host && c.server == nil {
		reason += ". " + hostRemedy(asked.Text)
	}
	if s := c.server; s != nil {
		reason = fmt.Sprintf("The server %s has come to connect to it, and waits for the answer (%s)", s.name,
			builtin.Chain(asked.Chain))
		if s.workspace {
			reason += ". It also sees the files of the workspace, and can send them there"
		}
		reason += ". To allow it from now on: " + s.allowHost(asked.Text)
	}
	v := guard.Verdict{Action: guard.Ask, Rule: asked.Rule, Source: asked.Source, Final: true, Reason: reason + ".",
		Parts: []guard.Part{{What: what, Action: guard.Ask, Rule: asked.Rule, Source: asked.Source, Reason: reason,
			Final: true}}}
	o := c.offer(asked, during)
	d := guard.Description{Text: asked.Text, Dir: asked.Dir,
		Items: []guard.Item{{What: what, Action: guard.Ask, Rule: asked.Rule, Source: asked.Source, Reason: reason}}}
	d.Scripts = c.scripts(asked)
	q := c.host.approvals.newQuestion(c.admission.principal, c.req.Tool, c.call, d, v, o)
	if o.allPrograms != "" {
		q.entry = asked.Entry
	}
	return q
}

// offer returns what "always allow" would remember of a question about a program or a host.
func (c *execCall) offer(asked builtin.ExecQuestion, during string) (o offer) {
	o.fixed, o.by = true, c.host.children.label(c.admission.principal)
	switch {
	case !asked.Host: // only an ask rule asks about a program
		o.none = "the rule " + asked.Rule + " asks each time"
	case c.server != nil:
		o.none = "the hosts of a server are those of its entry"
	case !c.admission.scope.Personal:
		o.none = notPersonal
	case asked.Program == "": // without a name, the rule would apply to any program
		o.none = "it is not known which program connects"
	case asked.Entry != "" && isOperator(c.admission.principal):
		program, host := settings.CutProgramHost(asked.Entry)
		o.rules, o.allPrograms = []string{host + " for " + program + ", in this workspace"}, host
	default:
		o.rules = []string{asked.Text + " for " + asked.Program + " (" + during + ")"}
	}
	return o
}

// scripts returns the text that a program runs which is about to start.
func (c *execCall) scripts(asked builtin.ExecQuestion) []guard.Script {
	if asked.Host || c.env == nil || len(asked.Words) == 0 {
		return nil
	}
	dir, err := c.env.Policy.Resolve(asked.Dir)
	if err != nil {
		return nil
	}
	words := slices.Clone(asked.Words)
	if filepath.Base(asked.Program) == words[0] {
		words[0] = asked.Program
	}
	e := guard.NewExec(guard.Quote(words...), dir)
	e.Unsandboxed = c.env.Policy.Commands().Excluded(e)
	return c.env.Policy.Scripts(guard.Intent{Tool: c.req.Tool, Effects: []guard.Effect{e}},
		guard.Verdict{Action: guard.Ask})
}

// hostRemedy says how a person allows a host for longer than a call.
func hostRemedy(where string) string {
	name, _, err := net.SplitHostPort(where)
	if err != nil || name == "localhost" { // the port says which service
		name = where
	}
	remedy := "To allow it in this workspace: toolhost allow-host " + name
	if preset := hostpreset.With(name); preset != "" {
		remedy += ", or with the other hosts of " + preset + ": toolhost allow-host --preset " + preset
	}
	return remedy
}

// outcome translates an answer. An answer that allows a program also allows the scripts that the question showed.
func (c *execCall) outcome(q *Question, asked builtin.ExecQuestion, a *Answer) builtin.ExecAnswer {
	if a.Decision != "" && !slices.Contains(q.Decisions(), a.Decision) {
		return builtin.ExecAnswer{By: a.By, Reason: fmt.Sprintf("the answer %q was not offered, only %q were",
			clipped(a.Decision), q.Decisions())}
	}
	same := func(shown, now guard.Script) bool {
		return shown.File == guard.OneLine(now.File) && shown.Digest == now.Digest
	}
	refuses := a.Decision == "" || a.Decision == DenyIt
	if !refuses && !slices.EqualFunc(q.Scripts, c.scripts(asked), same) {
		return builtin.ExecAnswer{By: a.By, Reason: "a script that it runs has changed since the question. Run it again to " +
			"ask about the new text"}
	}
	switch a.Decision {
	case AllowHost:
		c.host.approvals.remember(settings.ListHosts, q.AllPrograms)
		return builtin.ExecAnswer{Allowed: true, By: a.By}
	case AlwaysAllow:
		if q.entry != "" {
			return builtin.ExecAnswer{Allowed: true, Kept: c.host.approvals.remember(settings.ListPrograms, q.entry),
				By: a.By}
		}
		c.host.approvals.always.add(c.key(asked))
		fallthrough
	case AllowOnce:
		return builtin.ExecAnswer{Allowed: true, By: a.By}
	}
	return builtin.ExecAnswer{By: a.By, Reason: refusedBecause(a)}
}

// A modern client gets a question about a program as the result of the call, whose command continues as a task. The
// client repeats the call with the answer, and the call continues.

// resumePrefix is the prefix of the states of questions about programs. The rest is a state of package approvals.
const resumePrefix = "exec."

// errGone is the error for a state for which no command waits: it is from another process, was already used, or is too
// late.
var errGone = errors.New("the answer came too late or twice, or to another host: the program that asked no longer " +
	"waits. Nothing was run by this call. " +
	"TaskOutput shows the state of the command if it was answered here; to run it from its beginning, call again without the answer")

// A suspended is a call that waits for the answer to a question about a program.
type suspended struct {
	call   *execCall
	asked  *builtin.ExecAsked
	q      *Question
	digest []byte
}

// suspend ends a call with a question about a program.
func (p *approver) suspend(c *execCall, result builtin.Result, rec *audit.Record, reply Reply) Reply {
	asked := result.Asks
	q := c.question(asked.Question)
	if q.Form = asked.Elicit; q.Form != nil {
		q.URL = "" // only the client can show the question
	}
	s := &suspended{call: c, asked: asked, q: q}
	s.digest = digest(c.admission.scope.Asked(c.admission.session != ""), c.req, q.Verdict,
		append(q.Decisions(), asked.Task))
	q.State = resumePrefix + p.questions.Issue(c.admission.principal, s.digest)
	p.suspensions.put(q.State, s)
	q.digest = s.digest
	rec.Verdict, rec.Question, reply.Question = guard.Ask.String(), q.ID, q
	rec.Did(audit.PhaseAsked, c.req.askedBy(), asked.Question.Text)
	return reply.with(result)
}

// abandon refuses a question whose call was cancelled, so that its command ends at once. A command asks again for each
// further program until it notices the end of ctx.
func (p *approver) abandon(ctx context.Context, state string) {
	s := p.suspensions.take(state)
	if s == nil {
		return
	}
	p.waiting.expire(state)
	if s.asked.Elicit != nil {
		_, _ = s.asked.Answer(ctx, nil) // the call is cancelled, so its result has no reader
		return
	}
	for asked := s.asked; asked != nil; {
		result, _ := asked.Resume(ctx, builtin.ExecAnswer{By: ByClient, Reason: "the call was cancelled"})
		asked = result.Asks
	}
}

// resumes reports whether a request has the answer to a question about a program.
func resumes(req Request) bool {
	return req.Answer != nil && strings.HasPrefix(req.Answer.State, resumePrefix)
}

// resume continues a suspended call with the answer in req. The error says why the answer does not count.
func (p *approver) resume(ctx context.Context, a *Admission, req Request, rec *audit.Record) (*suspended,
	builtin.Result, guard.Verdict, error) {
	state := req.Answer.State
	s := p.suspensions.take(state)
	if s == nil {
		return nil, builtin.Result{}, guard.Verdict{}, errGone
	}
	mine := digest(a.scope.Asked(a.session != ""), req, s.q.Verdict, append(s.q.Decisions(), s.asked.Task))
	if err := p.questions.Redeem(strings.TrimPrefix(state, resumePrefix), mine); err != nil {
		if a.principal != s.call.admission.principal || string(mine) != string(s.digest) {
			p.suspensions.put(state, s) // the valid answer may still come
		}
		return nil, builtin.Result{}, guard.Verdict{}, err
	}
	p.waiting.resume(rec, state, mine)
	if s.asked.Elicit != nil {
		rec.Did(audit.PhaseApproved, req.Answer.By, s.asked.Question.Text)
		v := s.q.Verdict
		v.Action = guard.Allow
		result, err := s.asked.Answer(ctx, json.RawMessage(req.Answer.Form))
		if err != nil {
			result = refused(err)
		}
		return s, result, v, nil
	}
	answer := s.call.outcome(s.q, s.asked.Question, req.Answer)
	v, what := s.q.Verdict, audit.PhaseRefused
	if v.Action = guard.Deny; answer.Allowed {
		v.Action, what = guard.Allow, audit.PhaseApproved
	}
	rec.Did(what, req.Answer.By, s.asked.Question.Text)
	result, err := s.asked.Resume(ctx, answer)
	if err != nil {
		result = refused(err)
	}
	return s, result, v, nil
}
