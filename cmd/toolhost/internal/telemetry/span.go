package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A spanExporter sends spans.
type spanExporter struct{ exporter }

// newSpanExporter returns an exporter of spans.
func newSpanExporter(cfg endpoint) *spanExporter { return &spanExporter{exporter{newSender(cfg)}} }

var _ sdk.SpanExporter = (*spanExporter)(nil)

// ExportSpans implements the SDK's interface.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	return e.sender.send(ctx, encodeSpans(spans))
}

// encodeSpans returns an ExportTraceServiceRequest. All spans are of one provider, and so of one resource.
func encodeSpans(spans []sdk.ReadOnlySpan) []byte {
	return exportRequest(spans[0].Resource(), func(m *message) { // ResourceSpans
		for _, group := range byScope(spans) {
			m.scoped(group[0].InstrumentationScope(), func(m *message) { // ScopeSpans
				for _, s := range group {
					m.message(2, func(m *message) { m.span(s) })
				}
			})
		}
	})
}

// byScope groups spans by the instrumentation scope that recorded them, in the order of their first spans.
func byScope(spans []sdk.ReadOnlySpan) [][]sdk.ReadOnlySpan {
	type key struct {
		name, version, schema string
		attributes            attribute.Distinct
	}
	of := func(s instrumentation.Scope) key {
		return key{s.Name, s.Version, s.SchemaURL, s.Attributes.Equivalent()}
	}
	place := map[key]int{}
	var groups [][]sdk.ReadOnlySpan
	for _, s := range spans {
		k := of(s.InstrumentationScope())
		i, ok := place[k]
		if !ok {
			i = len(groups)
			place[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// Flags of a span in addition to those of its trace context.
const (
	flagKnowsRemote = 0x100 // it is known whether the parent is remote
	flagRemote      = 0x200 // the parent is remote
)

func (m *message) span(s sdk.ReadOnlySpan) {
	context := s.SpanContext()
	traceID, spanID := context.TraceID(), context.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
	m.string(3, context.TraceState().String())
	if parent := s.Parent().SpanID(); parent.IsValid() {
		m.bytes(4, parent[:])
	}
	m.string(5, s.Name())
	m.varint(6, uint64(kind(s.SpanKind())))
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.varint(10, uint64(s.DroppedAttributes()))
	for _, e := range s.Events() {
		m.message(11, func(m *message) {
			m.time(1, e.Time)
			m.string(2, e.Name)
			m.attributes(3, e.Attributes)
			m.varint(4, uint64(e.DroppedAttributeCount))
		})
	}
	m.varint(12, uint64(s.DroppedEvents()))
	m.message(15, func(m *message) {
		m.string(2, s.Status().Description)
		m.varint(3, uint64(status(s.Status().Code)))
	})
	flags := uint32(context.TraceFlags()) | flagKnowsRemote
	if s.Parent().IsRemote() {
		flags |= flagRemote
	}
	m.fixed32(16, flags)
}

// kind returns a span's kind in OTLP.
func kind(k trace.SpanKind) int {
	switch k {
	case trace.SpanKindInternal:
		return 1
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	case trace.SpanKindProducer:
		return 4
	case trace.SpanKindConsumer:
		return 5
	}
	return 0
}

// status returns a span's status in OTLP.
func status(c codes.Code) int {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}
