package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// A spanExporter sends spans.
type spanExporter struct{ *sender }

// newSpanExporter returns an exporter of spans.
func newSpanExporter(cfg endpoint) *spanExporter { return &spanExporter{newSender(cfg)} }

var _ sdk.SpanExporter = (*spanExporter)(nil)

// ExportSpans implements the SDK's interface.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	return e.send(ctx, encodeSpans(spans))
}

// encodeSpans returns an ExportTraceServiceRequest. All spans are of one tracer, and so of one resource and scope.
func encodeSpans(spans []sdk.ReadOnlySpan) []byte {
	return exportRequest(spans[0].Resource(), func(m *message) { // ResourceSpans
		m.scoped(spans[0].InstrumentationScope(), func(m *message) { // ScopeSpans
			for _, s := range spans {
				m.message(2, func(m *message) { m.span(s) })
			}
		})
	})
}

// The numbers of the only kind of span, and of the only status but none, that this program records.
const (
	kindServer   = 2
	statusFailed = 2
)

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
	m.varint(6, kindServer)
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
		if s.Status().Code == codes.Error {
			m.string(2, s.Status().Description)
			m.varint(3, statusFailed)
		}
	})
	flags := uint32(context.TraceFlags()) | flagKnowsRemote
	if s.Parent().IsRemote() {
		flags |= flagRemote
	}
	m.fixed32(16, flags)
}
