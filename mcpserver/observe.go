package mcpserver

import (
	"context"
	"sync/atomic"

	"toolhost/builtin"
	"toolhost/mcpserver/audit"
)

// A CallInfo names one call on its way through the pipeline.
type CallInfo struct {
	// ID tells the calls of one host apart. It rises in the order in which calls enter the pipeline.
	ID uint64
	// Principal, Scope and Tool are whose call it is, the label of the scope it works in, and what it calls.
	Principal, Scope, Tool string
}

// An Observer sees every call, but cannot change what becomes of it. Its methods are called on the call's own
// path, so they must not block.
type Observer interface {
	// CallBegan is told of a call that enters the pipeline. The call runs under the context it returns.
	CallBegan(ctx context.Context, c CallInfo) context.Context
	// CallPlanned is told what a call is about to do, before it is judged: the record holds its paths or command.
	// A call that cannot be bound or planned is not announced.
	CallPlanned(ctx context.Context, c CallInfo, r audit.Record)
	// CallEnded is told of a call's end, with the whole record and what is returned.
	CallEnded(ctx context.Context, c CallInfo, r audit.Record, result builtin.Result)
}

// observers are told in turn.
type observers struct {
	all  []Observer
	last atomic.Uint64 // the id given last
}

func (o *observers) began(ctx context.Context, a *Arrival, tool string) (context.Context, CallInfo) {
	c := CallInfo{ID: o.last.Add(1), Principal: a.principal, Tool: tool}
	if a.scope != nil {
		c.Scope = a.scope.key.label()
	}
	for _, each := range o.all {
		ctx = each.CallBegan(ctx, c)
	}
	return ctx, c
}

func (o *observers) planned(ctx context.Context, c CallInfo, r audit.Record) {
	for _, each := range o.all {
		each.CallPlanned(ctx, c, r)
	}
}

func (o *observers) ended(ctx context.Context, c CallInfo, r audit.Record, result builtin.Result) {
	for _, each := range o.all {
		each.CallEnded(ctx, c, r, result)
	}
}
