package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/doctor"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// An Asker puts questions to the operator, the owner of the machine, when the client cannot put them to a person.
type Asker interface {
	// Present reports whether a person is there to answer.
	Present() bool
	// Ask waits for the answer. When ctx is done it returns a refusal.
	Ask(ctx context.Context, q OperatorQuestion) Answer
}

// An OperatorQuestion is a question for an [Asker], and the caller that it is about.
type OperatorQuestion struct {
	Principal, Scope, Tool string
	// Client is what the client calls itself, with its version. Nothing verifies it. The label of an agent precedes it.
	Client string
	*Question
}

// operatorPresent reports whether the operator can be asked.
func (p *approver) operatorPresent() bool {
	return p.asker != nil && p.asker.Present() && p.operatorMayAnswer() == nil
}

// pageOf returns the address of the page at the console of a question about a call of a principal, or "" if there is
// no console or its answers do not count.
func (p *approver) pageOf(principal, id string) string {
	pages, ok := p.asker.(interface{ URL(id string) string })
	if !ok || p.policies.roots.of(p.policies.children.caller(principal)) != "" || p.operatorMayAnswer() != nil {
		return ""
	}
	return pages.URL(id)
}

// askOperator waits for the operator's answer to a question. No answer in time is a refusal.
func (p *approver) askOperator(ctx context.Context, a *Admission, req Request, q *Question) *Answer {
	ctx, cancel := context.WithTimeout(ctx, approvals.Lifetime)
	defer cancel()
	answer := p.asker.Ask(ctx, p.forOperator(a, req, q))
	answer.late = answer.Decision == "" && errors.Is(ctx.Err(), context.DeadlineExceeded)
	if err := p.operatorMayAnswer(); err != nil { // it may have changed while the question waited
		answer = Answer{Reason: "the answer does not count, because " + err.Error()}
	}
	answer.State, answer.By = q.State, byConsole
	return &answer
}

// forOperator returns a question about a call, with its caller.
func (p *approver) forOperator(a *Admission, req Request, q *Question) OperatorQuestion {
	client := strings.TrimSpace(req.Origin.Client + " " + req.Origin.ClientVersion)
	if label := p.policies.children.label(a.principal); label != "" {
		client = strings.TrimSuffix(label+", "+client, ", ")
	}
	return OperatorQuestion{Principal: a.principal, Scope: a.scope.Label, Tool: req.Tool, Client: client, Question: q}
}

// formAtConsole returns a function that asks the operator to fill in a form while the call waits, or nil if the
// operator cannot be asked.
func (p *approver) formAtConsole(a *Admission, req Request) func(context.Context,
	json.RawMessage) (json.RawMessage, error) {
	if !p.asksOperator(a.principal) {
		return nil
	}
	return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		q := &Question{ID: approvals.NewID(), Gist: req.Tool + ": questions of the agent", Form: params}
		answer := p.asker.Ask(ctx, p.forOperator(a, req, q))
		if err := p.operatorMayAnswer(); err != nil { // it may have changed while the question waited
			return nil, err
		}
		return json.RawMessage(answer.Form), nil
	}
}

// operatorMayAnswer implements [Operator.MayAnswer].
func (p *approver) operatorMayAnswer() error {
	if p.uncontained.Load() {
		return errors.New("a command ran outside of the sandbox without a person's approval since this host started: it " +
			"could have read the key to this page. Restart the host")
	}
	policy := p.policies.of(LocalPrincipal)
	if held := policy.Commands().Containment(); held.Writes && held.Denies {
		return nil
	} else if runs, _ := policy.ToolEnabled(builtin.Bash.Name); runs && p.policies.tools.has(builtin.Bash.Name) {
		return fmt.Errorf("commands are not contained on this machine, so one could open this page and approve itself: %s",
			held.Why)
	}
	return nil
}

// noteUncontained records that a command runs outside of any containment without a person's approval.
func (p *approver) noteUncontained(policy *guard.Policy, in guard.Intent, req Request) {
	command := in.Command()
	if command == nil || req.Answer != nil && req.Answer.By != byClassifier {
		return
	}
	held := policy.Commands().Containment()
	if !held.Writes || !held.Denies || command.Unsandboxed || policy.Commands().Excluded(*command) {
		p.uncontained.Store(true)
	}
}

// An Operator gives the owner of the machine access to a host: the calls, tasks and changes of all principals, under
// the current rules.
type Operator struct{ h *Host }

// Operator returns access to the host for the owner of the machine.
func (h *Host) Operator() Operator { return Operator{h} }

func (o Operator) policy() *guard.Policy { return o.h.policies.of(LocalPrincipal) }

// MayAnswer reports why answers at the console do not count: an uncontained command of the agent could read the
// operator's credentials and approve itself. It returns nil if commands are contained, or if none can run.
func (o Operator) MayAnswer() error { return o.h.approvals.operatorMayAnswer() }

// Roots returns the directories that the tools work in.
func (o Operator) Roots() []string { return slices.Clone(o.h.cfg.Roots) }

// StateDir returns the directory of the data that outlives the host. Contained commands cannot read it.
func (o Operator) StateDir() string { return o.h.cfg.StateDir }

// Settings returns the current settings of all sources. They must not be modified.
func (o Operator) Settings() *settings.Settings { return o.h.policies.settings.Reload() }

// RuleWarnings returns the rules that may not mean what their author intended, or that match no known tool.
func (o Operator) RuleWarnings() []string {
	policy := o.policy()
	return slices.Concat(policy.Warnings(), o.h.tools.idleRules(policy, o.h.policies.settings.Current()))
}

// AddRule adds a rule to a list, such as "permissions.ask", of the owner's own settings for the first root.
func (o Operator) AddRule(list, rule string) error {
	where := o.h.policies.where
	if err := CheckRule(where, list, rule); err != nil {
		return err
	}
	return settings.Append(where, o.h.cfg.Roots[0], list, rule)
}

// CheckRule refuses a rule that would not be applied as written.
func CheckRule(where settings.Config, list, text string) error {
	set, entry := &settings.Settings{}, []settings.Entry{{Text: text, File: "RULE"}}
	switch list {
	case "permissions.allow":
		set.Allow = entry
	case "permissions.ask":
		set.Ask = entry
	case "permissions.deny":
		set.Deny = entry
	case "sandbox.credentials.envVars", "sandbox.credentials.files":
		return nil // the program made it
	default:
		if list == settings.ListPrograms {
			program, host := settings.CutProgramHost(text)
			if text = host; strings.ContainsAny(program, "/: \t") {
				return fmt.Errorf("%q is not the name of a program: use a name such as git or npm, without its directory", program)
			}
		}
		if strings.ContainsAny(text, "/ \t") {
			return fmt.Errorf("%q is not a host name: use a name such as proxy.golang.org or *.npmjs.org, without scheme "+
				"and path", text)
		}
		return checkPort(text)
	}
	policy, err := guard.New(guard.Config{Roots: where.Roots, ExplicitRoots: true, Home: where.Home,
		StateDir: where.StateDir, Settings: set})
	if err != nil {
		return err
	}
	if warnings := policy.Warnings(); len(warnings) > 0 {
		why := strings.TrimPrefix(warnings[0], "RULE: ")
		for _, meaning := range []string{"; it is taken for ", "; both are guarded"} {
			why, _, _ = strings.Cut(why, meaning) // what a rule in a file would mean: this rule is refused
		}
		return errors.New(why)
	}
	return nil
}

// checkPort refuses a service of this machine that commands do not reach even if a rule allows it.
func checkPort(text string) error {
	host, digits, _ := net.SplitHostPort(text)
	port, err := strconv.Atoi(digits)
	if name := sandbox.Controlled(port); err == nil && name != "" && guard.IsLoopback(host) {
		return fmt.Errorf("%s is the port of %s, which commands never reach on this machine", text, name)
	}
	return nil
}

// Holds returns what enforces a rule here, see [guard.Policy.Holds].
func (o Operator) Holds(action, rule string) string { return o.policy().Holds(action, rule) }

// AuditPath returns the file that calls are recorded in, "" when they are not.
func (o Operator) AuditPath() string {
	if o.h.recorder.audit == nil {
		return ""
	}
	return o.h.recorder.audit.Path()
}

// Tasks returns the background tasks of all principals, oldest first.
func (o Operator) Tasks() []*builtin.Task { return o.h.runtime.Tasks() }

// Changes lists changes to files, newest first.
func (o Operator) Changes(f builtin.ChangeFilter) ([]builtin.Change, error) {
	return o.h.runtime.Changes(o.policy(), f)
}

// Calls lists the calls that changed files, newest first, with what each changed.
func (o Operator) Calls(f builtin.ChangeFilter) ([]builtin.ChangedCall, error) {
	return o.h.runtime.Calls(o.policy(), f)
}

// Holdings returns how much disk space the changes of each principal take, largest first.
func (o Operator) Holdings() ([]builtin.Holding, error) { return o.h.runtime.Holdings() }

// ShowChange returns one change and its diff. A prefix of its id suffices.
func (o Operator) ShowChange(id string) (builtin.Change, string, error) {
	return o.h.runtime.ShowChange(o.policy(), id)
}

// ChangedFile returns the content of a changed file after the change, or before it if the change removed the file.
func (o Operator) ChangedFile(c builtin.Change) (string, error) {
	return o.h.runtime.ChangedFile(o.policy(), c)
}

// Undo restores the content that files had before the selected changes, and returns the result for each file. A
// selection before a call or since a time is a rewind: it is refused while commands run in the workspace, unless it is
// forced. A dry run returns the plan.
func (o Operator) Undo(ctx context.Context, sel builtin.UndoSelection) (result builtin.UndoResult, err error) {
	err = o.h.RunExclusive(ctx, "undo", func(env *builtin.Env) (err error) {
		result, err = o.h.runtime.Undo(ctx, env, sel)
		return err
	})
	return result, err
}

// RunExclusive runs an action of the owner of the machine under the name of a tool, while no call changes files.
func (h *Host) RunExclusive(ctx context.Context, tool string, do func(*builtin.Env) error) error {
	a := h.AdmitNamed("")
	defer a.Leave()
	if err := a.ticket.Acquire(ctx, false); err != nil {
		return err
	}
	return do(h.env(a, h.Operator().policy(), Request{Tool: tool}))
}

// Check plans a call without running it and returns the verdict on it. The error concerns the call itself: an unknown
// tool, or arguments that cannot be bound.
func (o Operator) Check(ctx context.Context, principal, tool string, args json.RawMessage) (guard.Verdict, error) {
	target := o.h.tools.resolveCall(tool, args)
	if errors.Is(target.err, errNoTool) {
		awaitServer(ctx, o.h, target.called(tool), func() {})
		target = o.h.tools.resolveCall(tool, args)
	}
	if target.err != nil {
		return guard.Verdict{}, o.h.policies.noTool(principal, Local(), target.called(tool), target.err)
	}
	if target.inside != nil {
		args = target.inside.args
	}
	call, err := target.def.Bind(args)
	if err != nil {
		return guard.Verdict{}, err
	}
	a := o.h.Admit(auth.Identity{Principal: principal, Rights: auth.All}, nil, "", true)
	defer a.Leave()
	policy := o.h.policies.of(principal)
	plan, err := call.Plan(ctx, o.h.env(a, policy, Request{Tool: tool}))
	if err != nil {
		return guard.Verdict{}, err
	}
	return target.judge(policy, plan.Intent), nil
}

// Examine returns the doctor's findings about this host: its roots, rules, sandbox, shell, state and tools.
func (o Operator) Examine(ctx context.Context) []doctor.Finding {
	h, policy := o.h, o.policy()
	return append(doctor.Examine(ctx, &doctor.Subject{
		Roots: h.cfg.Roots, Settings: h.policies.settings, Policy: policy, Missing: h.policies.sharedDenies(policy),
		Idle: h.tools.idleRules(policy, h.policies.settings.Current()), Principal: LocalPrincipal, Box: h.runtime,
		Tools: names(h.Tools(Local())), Commands: h.tools.resolve(builtin.Bash.Name).err == nil,
		StateDir: h.cfg.StateDir,
		Unkept:   h.stateDirErr, Audit: h.recorder.audit, AuditMaxSize: h.cfg.AuditMaxSize, AuditKeep: h.cfg.AuditKeep,
	}), h.children.examine()...)
}

// Containment returns what contains commands here: "namespaces", "landlock", "none", or "off" by the settings.
func (o Operator) Containment() string {
	if !o.Settings().Sandbox.Enabled {
		return "off"
	}
	return cmp.Or(string(o.h.runtime.SandboxReport().Backend), "none")
}

// Stats returns what the host currently holds.
func (o Operator) Stats() Stats {
	h, report := o.h, o.h.runtime.SandboxReport()
	s := Stats{
		Scopes: h.scopes.Count(), Sessions: h.counts.sessionsNow(),
		ResultBytes: h.counts.results.get(statsAge,
			func() int64 { return privatefile.Size(filepath.Join(h.cfg.StateDir, "results")) }),
		AuditFailures: h.recorder.audit.Failures(), AuthFailures: h.counts.unauthorised.Load(),
		Sandbox: string(report.Backend), Search: map[string]builtin.SearchStats{},
		Enforces: map[string]bool{
			"writes": report.Enforces.Writes, "denies": report.Enforces.Denies,
			"network": report.Enforces.Network, "processes": report.Enforces.Processes,
		},
	}
	for _, t := range h.runtime.Tasks() {
		if !t.Over() {
			s.Tasks++
		}
	}
	for _, root := range o.policy().Roots() {
		s.Search[root] = h.runtime.SearchStats(root)
	}
	return s
}

// A RunningAgent is an agent that the tool Agent has started and that has not ended.
type RunningAgent struct {
	ID, Type string
	// Caller is the principal that started it; that of an agent begins with "agent:".
	Caller   string
	ReadOnly bool
	// Worktree is the name of the worktree it works in, "" if it works in the roots.
	Worktree string
}

// Agents returns the agents that run, by their IDs.
func (o Operator) Agents() (all []RunningAgent) {
	c := o.h.children
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		a := RunningAgent{ID: one.spec.Agent.ID, Type: one.spec.Agent.Type, Caller: one.parent,
			ReadOnly: one.spec.ReadOnly}
		if one.spec.Worktree != nil {
			a.Worktree = one.spec.Worktree.Name
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b RunningAgent) int { return strings.Compare(a.ID, b.ID) })
	return all
}
