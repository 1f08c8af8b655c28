package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// method is the MCP method of every call that is observed.
const method = "tools/call"

// otherTool stands for tools that are not served, whose names callers make up.
const otherTool = "_OTHER"

// toolError is the error.type for a result that reports an error.
const toolError = "tool_error"

var _ audit.StageObserver = (*Telemetry)(nil)

// CallBegan implements [audit.Observer]: it starts the span of the call.
func (t *Telemetry) CallBegan(ctx context.Context, c audit.Call) context.Context {
	if t.tracer == nil {
		return ctx
	}
	carrier := propagation.MapCarrier{"traceparent": c.Origin.TraceParent, "tracestate": c.Origin.TraceState}
	ctx, span := t.tracer.Start(t.parents.Extract(ctx, carrier), method+" "+toolName(c),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.Arrived), trace.WithAttributes(common(c)...))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("toolhost.scope", c.Scope))
		if c.Origin.Session != "" {
			span.SetAttributes(attribute.String("mcp.session.id", c.Origin.Session)) // a digest: the id itself is a secret
		}
		if t.details {
			span.SetAttributes(attribute.String("toolhost.principal", c.Principal))
		}
	}
	return ctx
}

// CallReached implements [audit.StageObserver].
func (t *Telemetry) CallReached(ctx context.Context, _ audit.Call, s audit.Stage) {
	if t.tracer != nil {
		trace.SpanFromContext(ctx).AddEvent("toolhost." + s.String())
	}
}

// CallPlanned implements [audit.Observer].
func (t *Telemetry) CallPlanned(ctx context.Context, _ audit.Call, r audit.Record) {
	span := trace.SpanFromContext(ctx)
	if t.tracer == nil || !t.details || !span.IsRecording() {
		return
	}
	for _, part := range []struct {
		name   string
		values []string
	}{{"toolhost.reads", r.Reads}, {"toolhost.writes", r.Writes}, {"toolhost.effects", r.Effects}} {
		if len(part.values) > 0 {
			span.SetAttributes(attribute.StringSlice(part.name, part.values))
		}
	}
	if r.Command != "" {
		span.SetAttributes(attribute.String("toolhost.command", audit.Clip(r.Command)))
	}
}

// CallEnded implements [audit.Observer]: it ends the span and measures the call.
func (t *Telemetry) CallEnded(ctx context.Context, c audit.Call, r audit.Record, result builtin.Result) {
	outcome := audit.Outcome(r, result)
	failed := result.IsError && r.Verdict != guard.Ask.String()
	if t.duration != nil {
		labels := common(c)
		if failed {
			labels = append(labels, attribute.String("error.type", toolError))
		}
		t.duration.Record(ctx, time.Since(c.Arrived).Seconds(), metric.WithAttributes(labels...))
	}
	span := trace.SpanFromContext(ctx)
	if t.tracer == nil || !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("toolhost.outcome", outcome), attribute.Int("toolhost.result.bytes", r.Bytes))
	if r.Verdict != "" {
		span.SetAttributes(attribute.String("toolhost.verdict", r.Verdict))
	}
	if t.details && r.Rule != "" {
		span.SetAttributes(attribute.String("toolhost.rule", r.Rule))
	}
	if failed {
		span.SetAttributes(attribute.String("error.type", toolError))
		span.SetStatus(codes.Error, outcome) // not the text of the error, which contains paths
	}
	span.End()
}

// common returns the attributes of the conventions that both spans and metrics have. Each has few values.
func common(c audit.Call) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("mcp.method.name", method),
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", toolName(c)),
	}
	if c.Origin.Protocol != "" {
		all = append(all, attribute.String("mcp.protocol.version", c.Origin.Protocol))
	}
	switch c.Origin.Transport {
	case "stdio":
		all = append(all, attribute.String("network.transport", "pipe"))
	case "http":
		all = append(all, attribute.String("network.transport", "tcp"),
			attribute.String("network.protocol.name", "http"))
	}
	return all
}

func toolName(c audit.Call) string {
	if c.Served {
		return c.Tool
	}
	return otherTool
}
