package main

import (
	"context"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/sandbox/ownprocess"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// An rssTrimmer trims the memory of the host again after a call that started background commands. At that time the
// client waits, and the pages that were needed only to start the commands would stay resident.
type rssTrimmer struct{}

// CallBegan implements audit.Observer.
func (rssTrimmer) CallBegan(ctx context.Context, _ audit.Call) context.Context { return ctx }

// CallPlanned implements audit.Observer.
func (rssTrimmer) CallPlanned(context.Context, audit.Call, audit.Record) {}

// CallEnded implements audit.Observer.
func (rssTrimmer) CallEnded(_ context.Context, _ audit.Call, _ audit.Record, result builtin.Result) {
	if out, ok := result.Structured.(builtin.BashOutput); ok && out.TaskID != "" {
		ownprocess.TrimWhenIdle()
	}
}
