package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/observe"
	"github.com/toolhost/toolhost/resultstore"
)

// The stations of [Host.Call], in its order.

// info is what observers are told of a call that begins.
func (h *Host) info(a *Admission, req Request) observe.Call {
	c := observe.Call{Principal: a.principal, Tool: req.Tool, Arrived: a.began, Served: h.serves(req.Tool), Origin: req.Origin}
	if a.scope != nil {
		c.Scope = a.scope.Label
	}
	return c
}

// lookUp finds the tool that is served under a name, or that the name stands for. The error names what to call instead, if it can.
func (h *Host) lookUp(name string) (*builtin.Def, error) {
	if d := h.served(name); d != nil {
		return d, nil
	}
	if d := h.served(alias.Tool(name)); d != nil {
		return d, nil
	}
	if s, ok := alias.Instead(name); ok && h.served(s.Tool) != nil {
		return nil, fmt.Errorf("%s is not served here: %s", name, s.How)
	}
	return nil, h.noTool(name)
}

// handlerOf is the tool by whose handler a call of that name is answered: itself, the one it stands for, or the one to call instead.
func (h *Host) handlerOf(name string) string {
	if d, err := h.lookUp(name); err == nil {
		return d.Name
	}
	if s, ok := alias.Instead(name); ok && h.served(s.Tool) != nil {
		return s.Tool
	}
	return name
}

// served is the tool of that name, nil if it is not served.
func (h *Host) served(name string) *builtin.Def {
	for _, d := range h.tools {
		if d.Name == name && d.Enabled(h.box) {
			return d
		}
	}
	return nil
}

// noTool is the error for a name that no tool has.
func (h *Host) noTool(name string) error {
	if name == "" {
		return fmt.Errorf("%w: the call names none", ErrNoTool)
	}
	return fmt.Errorf("%w: %s", ErrNoTool, name)
}

// callNoTool is noTool for a call of a client. It goes to the audit log and to observers like every other: who tries names wants
// something.
func (h *Host) callNoTool(who auth.Identity, name string) error {
	err := h.noTool(name)
	h.Call(context.Background(), &Admission{principal: who.Principal, rights: who.Rights, err: err, began: time.Now()}, Request{Tool: name})
	return err
}

// serves reports whether there is a tool of that name.
func (h *Host) serves(name string) bool {
	return slices.ContainsFunc(h.tools, func(d *builtin.Def) bool { return d.Name == name })
}

// Tools are the tools a caller sees: those served here, enabled, within its rights, and not denied by name.
func (h *Host) Tools(who auth.Identity) []*builtin.Def {
	policy := h.policy(who.Principal)
	var seen []*builtin.Def
	for _, d := range h.tools {
		if ok, _ := policy.ToolEnabled(d.Name); ok && d.Enabled(h.box) && who.Rights.Has(rightTo(d.Right)) {
			seen = append(seen, d)
		}
	}
	return seen
}

// authorize refuses a call whose caller lacks the right to the tool, or to what this call of it is about to do: no
// argument makes more of a tool than its right says.
func authorize(rec *audit.Record, has auth.Rights, tool *builtin.Def, in guard.Intent) error {
	need := rightTo(tool.Right)
	if need != auth.Exec { // a command's files are judged by the rules, and held by its sandbox
		for _, e := range in.Effects {
			need |= rightTo(e.Permission())
		}
	}
	if has.Has(need) {
		return nil
	}
	rec.Verdict, rec.Rule = guard.Deny.String(), "rights of the caller"
	return fmt.Errorf("refused: %s needs the right %s, and the credential of this caller gives %s. Nothing that the arguments say changes that; "+
		"the owner of this host can give a token with more rights (toolhost token add NAME --rights …), or the authorization server the scope", tool.Name, need&^has, has)
}

// rightTo is the right that callers of a tool must hold.
func rightTo(r guard.Permission) auth.Rights {
	switch r {
	case guard.ToRead:
		return auth.Read
	case guard.ToWrite:
		return auth.Write
	}
	return auth.Exec
}

// ready refuses a call that could not be recorded in the log that was asked for.
func (h *Host) ready() error {
	err := h.audit.Ready()
	if err == nil || h.cfg.AuditLog == "" {
		return nil
	}
	return fmt.Errorf("refused: every call must be recorded, and the record cannot be written. %w", err)
}

// passes is how much of the result of a call its client passes on to a model.
func (h *Host) passes(req Request) builtin.Passes {
	if req.Passes == nil {
		return builtin.Passes{}
	}
	return req.Passes(h.settings.Current().Clients.MaxResult)
}

// env is what the call may use.
func (h *Host) env(a *Admission, policy *guard.Policy, req Request) *builtin.Env {
	set := h.settings.Current()
	return &builtin.Env{
		Box: h.box, Principal: a.principal, Scope: a.scope.Label, Tool: req.Tool, Policy: policy,
		Seen: a.scope.Seen, Dir: a.scope.Dir, Shelf: h.results.For(a.principal),
		Shell:   builtin.ShellLimits{Timeout: set.Bash.DefaultTimeout, MaxTimeout: set.Bash.MaxTimeout, Window: set.Bash.ForegroundWindow, Tasks: set.Bash.MaxTasks},
		Durable: set.Write.Fsync, Progress: req.Progress, Passes: h.passes(req),
	}
}

// fit cuts a result to the limits of its tool and its client; the whole is kept on disk, or the result says why it is not.
func (h *Host) fit(shelf *resultstore.Shelf, tool *builtin.Def, r builtin.Result, passes builtin.Passes) builtin.Result {
	if tool.Limit == 0 || r.Kept != "" {
		return r
	}
	limit := tool.Limit
	if most := passes.Of(r.IsError); most > 0 {
		limit = min(limit, most)
	}
	fitted, err := shelf.Fit(r.Text, limit)
	if err != nil {
		h.log.Warn("a long result could not be kept", "tool", tool.Name, "error", err)
	}
	r.Text, r.Kept = fitted.Text, fitted.Path
	return r
}

// endedTold is how many tasks one result tells the end of. Further ones are told with the next result.
const endedTold = 5

// tellEnded adds to the text of a result which background tasks of the scope have ended since it was last told, a line each. What does
// not fit the client is told with the next result, and so it is when a call has no result to show: it panicked, asks, or was cancelled.
func (h *Host) tellEnded(ctx context.Context, a *Admission, req Request, reply *Reply) {
	if a.scope == nil || reply.Text == "" || reply.Question != nil || ctx.Err() != nil || h.extra(req.Tool) != nil {
		return
	}
	most, told, gap := h.passes(req).Of(reply.IsError), 0, "\n\n"
	h.box.TasksEnded(a.principal, a.scope.Label, func(t builtin.TaskInfo, how string) bool {
		text := fmt.Sprintf("%s%s[Task %s, %s, has ended: %s.]\n", strings.TrimSuffix(reply.Text, "\n"), gap, t.ID, headline(builtin.Bash.Name, t.Text), how)
		if told == endedTold || most > 0 && utf8.RuneCountInString(text) > most {
			return false
		}
		reply.Text, gap = text, "\n"
		told++
		return true
	})
}

// answeredBy is who put the question of a call to a person, "" if it has no answer.
func answeredBy(req Request) string {
	if req.Answer == nil {
		return ""
	}
	return req.Answer.By
}

// describe notes in the record what a call is about to do.
func describe(rec *audit.Record, in guard.Intent) {
	for _, e := range in.Effects {
		rec.Add(e.Record())
	}
}

// record writes the call's line, and returns it completed. A call that ran but could not be recorded says so.
func (h *Host) record(rec audit.Record, r builtin.Result) (audit.Record, builtin.Result) {
	rec.Millis = float64(time.Since(rec.Time).Microseconds()) / 1000
	rec.Bytes = len(r.Text)
	if r.IsError {
		rec.Error, _, _ = strings.Cut(r.Text, "\n")
	}
	if err := h.audit.Write(rec); err != nil {
		h.log.Error("a call could not be recorded", "tool", rec.Tool, "error", err)
		if h.cfg.AuditLog != "" {
			r.Text += "\n\n[The record of this call could not be written; further calls are refused until it can: " + err.Error() + "]"
		}
	}
	return rec, r
}

// headline names a call in one short line, as "Bash(make test)".
func headline(tool, command string) string {
	const longest = 60
	line, _, _ := strings.Cut(command, "\n")
	if r := []rune(line); len(r) > longest {
		line = string(r[:longest]) + "…"
	}
	return fmt.Sprintf("%s(%s)", tool, line)
}
