package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/internal/question"
)

// What the owner of the machine sees and decides, whoever calls. The history is in history.go.

// An Asker puts questions to the owner of the machine, when the client cannot put them to a person.
type Asker interface {
	// Present reports whether somebody is there to answer.
	Present() bool
	// Ask waits for the answer, until ctx is done at the latest: the answer is then a refusal.
	Ask(ctx context.Context, q OwnerQuestion) Answer
}

// An OwnerQuestion is a question for an [Asker], and whose call it is about.
type OwnerQuestion struct {
	Principal, Scope, Tool string
	*Question
}

// ownerPresent reports whether the owner can be asked.
func (h *Host) ownerPresent() bool {
	return h.cfg.Asker != nil && h.cfg.Asker.Present() && h.OwnerMayAnswer() == nil
}

// askOwner waits for the owner's answer to a question. No answer in time is a refusal.
func (h *Host) askOwner(ctx context.Context, a *Admission, req Request, q *Question) *Answer {
	ctx, cancel := context.WithTimeout(ctx, question.Time)
	defer cancel()
	answer := h.cfg.Asker.Ask(ctx, OwnerQuestion{Principal: a.principal, Scope: a.scope.Label, Tool: req.Tool, Question: q})
	if err := h.OwnerMayAnswer(); err != nil { // it may have changed while the question stood
		answer = Answer{Reason: "the answer does not count, because " + err.Error()}
	}
	answer.State, answer.By = q.State, ByConsole
	return &answer
}

// OwnerMayAnswer reports why answers at the console do not count: a command of the agent that nothing holds could
// read the owner's credentials and approve itself. It is nil where commands are contained, or none can be run.
func (h *Host) OwnerMayAnswer() error {
	if h.uncontained.Load() {
		return errors.New("a command ran outside of the sandbox without a person's approval since this host started: it could have read the key to this page. Start the host anew")
	}
	policy := h.policy(LocalPrincipal)
	if held := policy.Containment(); held.Writes && held.Denies {
		return nil
	} else if runs, _ := policy.ToolEnabled(builtin.Bash.Name); runs && slices.Contains(h.tools, builtin.Bash) {
		return fmt.Errorf("commands are not contained on this machine, so one could open this page and approve itself: %s", held.Why)
	}
	return nil
}

// noteUncontained remembers that a command runs which nothing holds and no person approved.
func (h *Host) noteUncontained(policy *guard.Policy, in guard.Intent, req Request) {
	command := in.Command()
	if command == nil || req.Answer != nil {
		return
	}
	held := policy.Containment()
	if !held.Writes || !held.Denies || command.Unsandboxed || policy.Excluded(command.Text) {
		h.uncontained.Store(true)
	}
}

// Roots are the directories that the tools work in.
func (h *Host) Roots() []string { return slices.Clone(h.cfg.Roots) }

// Settings is what all sources of rules say now. It must not be changed.
func (h *Host) Settings() *settings.Settings { return h.settings.Reload() }

// RuleWarnings are entries of the rules that could not be understood as they were meant.
func (h *Host) RuleWarnings() []string { return slices.Clone(h.policy(LocalPrincipal).Warnings()) }

// AuditPath is the file that calls are recorded in; "" when they are not.
func (h *Host) AuditPath() string {
	if h.audit == nil {
		return ""
	}
	return h.audit.Path()
}

// Tasks are the background tasks of all principals, oldest first.
func (h *Host) Tasks() []builtin.TaskInfo { return h.box.Tasks() }

// TaskOutput returns what a task has written from an offset on. If there is nothing yet it waits for output or for
// the task's end, at most for wait.
func (h *Host) TaskOutput(ctx context.Context, t builtin.TaskInfo, offset int64, wait time.Duration) (builtin.TaskChunk, error) {
	return h.box.TaskOutput(ctx, t, offset, wait)
}

// StopTask ends a task and everything it started. Stopping one that has ended is no error.
func (h *Host) StopTask(t builtin.TaskInfo) error { return h.box.StopTask(t) }

// StateDir is where the host keeps what outlives it. Contained commands cannot read it.
func (h *Host) StateDir() string { return h.cfg.StateDir }

// KeepPort keeps the port that the host listens on from commands of all hosts with this state directory, also after this one has
// ended: its clients would talk to them.
func (h *Host) KeepPort(addr net.Addr) {
	if h.stateDirErr != nil {
		return
	}
	if err := sandbox.RecordPort(h.policy(LocalPrincipal).Network().PortRecords, addr); err != nil {
		h.log.Warn("commands may listen on the port of this host after its end", "address", addr, "error", err)
	}
}

// endTasks ends the background tasks of a principal.
func (h *Host) endTasks(principal string) {
	for _, t := range h.box.Tasks() {
		if t.Principal != principal || t.Done {
			continue
		}
		if err := h.box.StopTask(t); err != nil {
			h.log.Warn("a background task of a revoked credential could not be ended", "principal", principal, "error", err)
		}
	}
}
