package audit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// A Call names one call on its way through the pipeline.
type Call struct {
	// ID tells the calls of one host apart. It rises in the order in which calls enter the pipeline.
	ID uint64
	// Principal, Scope and Tool are whose call it is, the label of the scope it works in, and what it calls.
	Principal, Scope, Tool string
	// Arrived is when the call came in.
	Arrived time.Time
	// Served says that there is a tool of that name here. Without it the name is whatever the caller made up.
	Served bool
	// Origin is where the call comes from.
	Origin Origin
}

// An Origin tells how a call reached the host. Nothing of it is verified, and nothing depends on it: it is for
// observers. It is zero for a call that did not come over MCP.
type Origin struct {
	// Transport is stdio or http.
	Transport string
	// Protocol is the revision of MCP that the client speaks; empty when it did not say.
	Protocol string
	// Client and ClientVersion are what the client calls itself; empty when it did not say.
	Client, ClientVersion string
	// Session is a digest of the id of the legacy MCP session over HTTP; empty when there is none.
	Session string
	// TraceParent and TraceState are the W3C trace context that came with the call.
	TraceParent, TraceState string
}

// The outcomes of a call, as [Outcome] tells them.
const (
	outcomeOK      = "ok"
	outcomeFailed  = "failed"  // it ran, and its tool reports an error
	outcomeRefused = "refused" // a rule, a hook or a person did not let it run
	outcomeAsked   = "asked"   // a person must be asked first; the call comes again
	outcomeInvalid = "invalid" // it ended before it was judged: bad arguments, no such tool, a wait that was given up
)

// Outcome tells in one word what became of a call that has ended.
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

// A Stage is a place that a call has come to on its way.
type Stage uint8

// The stages that observers see, in their order. A call may end at any of them.
const (
	// AtTurn has waited for its turn at the gate of its scope.
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

// A StageObserver is an [Observer] that also learns how far each call has come.
type StageObserver interface {
	Observer
	// CallReached is called at each stage that a call reaches.
	CallReached(ctx context.Context, c Call, s Stage)
}

// An Observer sees every call, but cannot change what becomes of it. Its methods are called on the call's own
// path, so they must not block.
type Observer interface {
	// CallBegan is called for a call that enters the pipeline. The call runs under the context it returns.
	CallBegan(ctx context.Context, c Call) context.Context
	// CallPlanned is called before a call is judged, with what it is about to do: the record holds its paths or command.
	// A call that cannot be bound or planned is not announced.
	CallPlanned(ctx context.Context, c Call, r Record)
	// CallEnded is called at a call's end, with the whole record and what is returned.
	CallEnded(ctx context.Context, c Call, r Record, result builtin.Result)
}

// Observers are called in turn.
type Observers struct {
	all  []Observer
	last atomic.Uint64 // the id given last
}

// NewObservers returns the observers that a host was given.
func NewObservers(all []Observer) *Observers { return &Observers{all: all} }

// Began numbers a call that enters the pipeline, and tells of it. The call runs under the context that comes back.
func (o *Observers) Began(ctx context.Context, c Call) (context.Context, Call) {
	c.ID = o.last.Add(1)
	for _, each := range o.all {
		ctx = each.CallBegan(ctx, c)
	}
	return ctx, c
}

// Reached tells of a stage that a call has come to.
func (o *Observers) Reached(ctx context.Context, c Call, s Stage) {
	for _, each := range o.all {
		if told, ok := each.(StageObserver); ok {
			told.CallReached(ctx, c, s)
		}
	}
}

// Planned tells what a call is about to do.
func (o *Observers) Planned(ctx context.Context, c Call, r Record) {
	for _, each := range o.all {
		each.CallPlanned(ctx, c, r)
	}
	o.Reached(ctx, c, AtJudgement)
}

// Ended tells of the end of a call.
func (o *Observers) Ended(ctx context.Context, c Call, r Record, result builtin.Result) {
	for _, each := range o.all {
		each.CallEnded(ctx, c, r, result)
	}
}
