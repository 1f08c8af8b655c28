package telemetry

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A metricExporter sends metrics.
type metricExporter struct{ *sender }

// newMetricExporter returns an exporter of metrics.
func newMetricExporter(cfg endpoint) *metricExporter { return &metricExporter{newSender(cfg)} }

var _ sdk.Exporter = (*metricExporter)(nil)

// Temporality implements the SDK's interface.
func (e *metricExporter) Temporality(k sdk.InstrumentKind) metricdata.Temporality {
	if e.cfg.Delta && k != sdk.InstrumentKindUpDownCounter && k != sdk.InstrumentKindObservableUpDownCounter {
		return metricdata.DeltaTemporality
	}
	return metricdata.CumulativeTemporality
}

// Aggregation implements the SDK's interface.
func (e *metricExporter) Aggregation(k sdk.InstrumentKind) sdk.Aggregation {
	return sdk.DefaultAggregationSelector(k)
}

// Export implements the SDK's interface.
func (e *metricExporter) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	if len(rm.ScopeMetrics) == 0 {
		return nil
	}
	request, err := encodeMetrics(rm)
	if err != nil {
		return err
	}
	return e.send(ctx, request)
}

// ForceFlush implements the SDK's interface. The exporter holds nothing back.
func (e *metricExporter) ForceFlush(context.Context) error { return nil }

// encodeMetrics returns an ExportMetricsServiceRequest.
func encodeMetrics(rm *metricdata.ResourceMetrics) (request message, err error) {
	request = exportRequest(rm.Resource, func(m *message) { // ResourceMetrics
		for _, sm := range rm.ScopeMetrics {
			m.scoped(sm.Scope, func(m *message) { // ScopeMetrics
				for _, each := range sm.Metrics {
					m.message(2, func(m *message) {
						if e := m.metric(each); e != nil {
							err = e
						}
					})
				}
			})
		}
	})
	return request, err
}

func (m *message) metric(v metricdata.Metrics) error {
	data, ok := v.Data.(metricdata.Histogram[float64])
	if !ok {
		return fmt.Errorf("the metric %s is of a kind that is not sent: %T", v.Name, v.Data)
	}
	m.string(1, v.Name)
	m.string(2, v.Description)
	m.string(3, v.Unit)
	m.message(9, func(m *message) { histogram(m, data) })
	return nil
}

// temporality returns a metric's temporality in OTLP.
func temporality(t metricdata.Temporality) uint64 {
	switch t {
	case metricdata.DeltaTemporality:
		return 1
	case metricdata.CumulativeTemporality:
		return 2
	}
	return 0
}

func histogram(m *message, h metricdata.Histogram[float64]) {
	for _, p := range h.DataPoints {
		m.message(1, func(m *message) {
			m.time(2, p.StartTime)
			m.time(3, p.Time)
			if p.Count != 0 {
				m.alwaysFixed64(4, p.Count)
			}
			m.alwaysDouble(5, p.Sum)
			m.packed(6, p.BucketCounts)
			m.packedDoubles(7, p.Bounds)
			exemplars(m, p.Exemplars)
			m.attributes(9, p.Attributes.ToSlice())
			if v, ok := p.Min.Value(); ok {
				m.alwaysDouble(11, v)
			}
			if v, ok := p.Max.Value(); ok {
				m.alwaysDouble(12, v)
			}
		})
	}
	m.varint(2, temporality(h.Temporality))
}

func exemplars(m *message, all []metricdata.Exemplar[float64]) {
	for _, e := range all {
		m.message(8, func(m *message) {
			m.time(2, e.Time)
			m.alwaysDouble(3, e.Value)
			m.bytes(4, e.SpanID)
			m.bytes(5, e.TraceID)
			m.attributes(7, e.FilteredAttributes)
		})
	}
}

func (m *message) packed(field int, all []uint64) {
	var inner []byte
	for _, v := range all {
		inner = binary.LittleEndian.AppendUint64(inner, v)
	}
	m.bytes(field, inner)
}

func (m *message) packedDoubles(field int, all []float64) {
	var inner []byte
	for _, v := range all {
		inner = binary.LittleEndian.AppendUint64(inner, math.Float64bits(v))
	}
	m.bytes(field, inner)
}
