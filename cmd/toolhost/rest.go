package main

import (
	"context"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/observe"
)

// resting lets the host come to rest again behind commands that go on in the background: a client that has started them
// waits, and what starting them needed would stay resident for as long.
type resting struct{}

// CallBegan implements observe.Observer.
func (resting) CallBegan(ctx context.Context, _ observe.Call) context.Context { return ctx }

// CallPlanned implements observe.Observer.
func (resting) CallPlanned(context.Context, observe.Call, audit.Record) {}

// CallEnded implements observe.Observer.
func (resting) CallEnded(_ context.Context, _ observe.Call, _ audit.Record, result builtin.Result) {
	if out, ok := result.Structured.(builtin.BashOutput); ok && out.TaskID != "" {
		letGoAtRest()
	}
}
