package main

import (
	"context"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/observe"
)

// rssTrimmer lets the host come to rest again behind commands that go on in the background: a client that has started them
// waits, and what starting them needed would stay resident for as long.
type rssTrimmer struct{}

// CallBegan implements observe.Observer.
func (rssTrimmer) CallBegan(ctx context.Context, _ observe.Call) context.Context { return ctx }

// CallPlanned implements observe.Observer.
func (rssTrimmer) CallPlanned(context.Context, observe.Call, audit.Record) {}

// CallEnded implements observe.Observer.
func (rssTrimmer) CallEnded(_ context.Context, _ observe.Call, _ audit.Record, result builtin.Result) {
	if out, ok := result.Structured.(builtin.BashOutput); ok && out.TaskID != "" {
		letGoAtRest()
	}
}
