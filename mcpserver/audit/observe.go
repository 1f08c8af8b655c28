package audit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// A Call identifies one call on its way through the pipeline.
type Call struct {
	// ID is unique within a host. It increases in the order in which calls enter the pipeline.
	ID uint64
	// Principal is the caller, Scope the label of the scope that the call works in, and Tool the tool it calls.
	Principal, Scope, Tool string
	// Arrived is the time at which the call arrived.
	Arrived time.Time
	// Served says that the host has a tool of that name. Otherwise the caller chose the name freely.
	Served bool
	// Origin describes how the call reached the host.
	Origin Origin
}

// An Origin describes how a call reached the host. It is not verified, and nothing depends on it: it is for observers.
// It is zero for a call that did not arrive over MCP.
type Origin struct {
	// Transport is stdio or http.
	Transport string
	// Protocol is the revision of MCP that the client speaks, empty if it is not known.
	Protocol string
	// Client and ClientVersion are the name and version that the client gives itself, empty if it gives none.
	Client, ClientVersion string
	// Session is a digest of the id of the legacy MCP session over HTTP; empty when there is none.
	Session string
	// TraceParent and TraceState are the W3C trace context of the call.
	TraceParent, TraceState string
}

// The outcomes of a call, as returned by [Outcome].
const (
	outcomeOK      = "ok"
	outcomeFailed  = "failed"  // it ran, and its tool reports an error
	outcomeRefused = "refused" // a rule, a hook or a person refused it
	outcomeAsked   = "asked"   // a person must be asked first; the call is repeated
	outcomeInvalid = "invalid" // it ended before it was judged: bad arguments, unknown tool, abandoned wait
)

// Outcome returns the outcome of a call in one word.
func Outcome(r Record, result builtin.Result) string {
	switch {
	case r.Verdict == guard.Ask.String():
		return outcomeAsked
	case !result.IsError:
		return outcomeOK
	case r.Verdict == guard.Allow.String():
		return outcomeFailed
	case r.Verdict == "":
		return outcomeInvalid
	}
	return outcomeRefused
}

// A Stage is a stage of the pipeline that a call has reached.
type Stage uint8

// The stages that observers see, in their order. A call may end at any of them.
const (
	// AtTurn has been let through by the gate of its scope.
	AtTurn Stage = iota + 1
	// AtJudgement has been planned, and is judged next.
	AtJudgement
	// AtRun was allowed, and runs next.
	AtRun
	// AtFit has run. Its result is cut to its limit, and the hooks that follow a call run.
	AtFit
)

func (s Stage) String() string {
	return [...]string{AtTurn: "turn", AtJudgement: "judgement", AtRun: "run", AtFit: "fit"}[s]
}

// A StageObserver is an [Observer] that is also told each stage that a call reaches.
type StageObserver interface {
	Observer
	// CallReached is called at each stage that a call reaches.
	CallReached(ctx context.Context, c Call, s Stage)
}

// An Observer sees every call but cannot influence it. Its methods run as part of the call, so they must not block.
type Observer interface {
	// CallBegan is called when a call enters the pipeline. The call runs under the returned context.
	CallBegan(ctx context.Context, c Call) context.Context
	// CallPlanned is called before a call is judged. The record holds the paths or the command. It is not called for a
	// call that cannot be bound or planned.
	CallPlanned(ctx context.Context, c Call, r Record)
	// CallEnded is called at the end of a call, with the complete record and the result.
	CallEnded(ctx context.Context, c Call, r Record, result builtin.Result)
}

// Observers are called in turn.
type Observers struct {
	all  []Observer
	last atomic.Uint64 // the last ID assigned
}

// NewObservers returns the observers of a host.
func NewObservers(all []Observer) *Observers { return &Observers{all: all} }

// Began assigns an ID to a call that enters the pipeline, and calls CallBegan. The call runs under the returned
// context.
func (o *Observers) Began(ctx context.Context, c Call) (context.Context, Call) {
	c.ID = o.last.Add(1)
	for _, each := range o.all {
		ctx = each.CallBegan(ctx, c)
	}
	return ctx, c
}

// Reached reports that a call has reached a stage.
func (o *Observers) Reached(ctx context.Context, c Call, s Stage) {
	for _, each := range o.all {
		if told, ok := each.(StageObserver); ok {
			told.CallReached(ctx, c, s)
		}
	}
}

// Planned reports a planned call.
func (o *Observers) Planned(ctx context.Context, c Call, r Record) {
	for _, each := range o.all {
		each.CallPlanned(ctx, c, r)
	}
	o.Reached(ctx, c, AtJudgement)
}

// Ended reports the end of a call.
func (o *Observers) Ended(ctx context.Context, c Call, r Record, result builtin.Result) {
	for _, each := range o.all {
		each.CallEnded(ctx, c, r, result)
	}
}
