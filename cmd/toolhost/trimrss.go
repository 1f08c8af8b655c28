package main

import (
	"context"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// rssTrimmer lets the host come to rest again after commands that go on in the background: a client that has started them
// waits, and what starting them needed would stay resident for as long.
type rssTrimmer struct{}

// CallBegan implements audit.Observer.
func (rssTrimmer) CallBegan(ctx context.Context, _ audit.Call) context.Context { return ctx }

// CallPlanned implements audit.Observer.
func (rssTrimmer) CallPlanned(context.Context, audit.Call, audit.Record) {}

// CallEnded implements audit.Observer.
func (rssTrimmer) CallEnded(_ context.Context, _ audit.Call, _ audit.Record, result builtin.Result) {
	if out, ok := result.Structured.(builtin.BashOutput); ok && out.TaskID != "" {
		letGoAtRest()
	}
}
