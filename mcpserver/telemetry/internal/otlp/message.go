package otlp

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/encoding/protowire"
)

// A message is a protobuf message that is being written. The numbers of its fields are those of the files
// opentelemetry/proto/*/v1/*.proto, version 1.11. As proto3 wants it, a field with its zero value is left out;
// the methods whose names begin with "always" are for optional fields and parts of a oneof.
type message []byte

func (m *message) tag(field protowire.Number, kind protowire.Type) {
	*m = protowire.AppendTag(*m, field, kind)
}

func (m *message) alwaysBytes(field protowire.Number, v []byte) {
	m.tag(field, protowire.BytesType)
	*m = protowire.AppendBytes(*m, v)
}

func (m *message) bytes(field protowire.Number, v []byte) {
	if len(v) > 0 {
		m.alwaysBytes(field, v)
	}
}

func (m *message) string(field protowire.Number, v string) { m.bytes(field, []byte(v)) }

func (m *message) alwaysVarint(field protowire.Number, v uint64) {
	m.tag(field, protowire.VarintType)
	*m = protowire.AppendVarint(*m, v)
}

func (m *message) varint(field protowire.Number, v uint64) {
	if v != 0 {
		m.alwaysVarint(field, v)
	}
}

func (m *message) fixed32(field protowire.Number, v uint32) {
	m.tag(field, protowire.Fixed32Type)
	*m = protowire.AppendFixed32(*m, v)
}

func (m *message) alwaysFixed64(field protowire.Number, v uint64) {
	m.tag(field, protowire.Fixed64Type)
	*m = protowire.AppendFixed64(*m, v)
}

func (m *message) alwaysDouble(field protowire.Number, v float64) {
	m.alwaysFixed64(field, math.Float64bits(v))
}

// time writes a time in nanoseconds since 1970; one before that is none.
func (m *message) time(field protowire.Number, t time.Time) {
	if n := t.UnixNano(); !t.IsZero() && n > 0 {
		m.alwaysFixed64(field, uint64(n))
	}
}

// message writes a message within this one.
func (m *message) message(field protowire.Number, write func(*message)) {
	var inner message
	write(&inner)
	m.alwaysBytes(field, inner)
}

// attributes writes a KeyValue for each attribute.
func (m *message) attributes(field protowire.Number, all []attribute.KeyValue) {
	for _, kv := range all {
		m.message(field, func(m *message) {
			m.string(1, string(kv.Key))
			m.message(2, func(m *message) { m.anyValue(kv.Value) })
		})
	}
}

func (m *message) anyValue(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		m.alwaysVarint(2, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		m.alwaysVarint(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.alwaysDouble(4, v.AsFloat64())
	case attribute.STRING:
		m.alwaysBytes(1, []byte(v.AsString()))
	case attribute.STRINGSLICE:
		m.message(5, func(m *message) {
			for _, s := range v.AsStringSlice() {
				m.message(1, func(m *message) { m.alwaysBytes(1, []byte(s)) })
			}
		})
	default:
		m.alwaysBytes(1, []byte(v.String()))
	}
}

func (m *message) resource(field protowire.Number, r *resource.Resource) {
	m.message(field, func(m *message) { m.attributes(1, r.Attributes()) })
}

func (m *message) scope(field protowire.Number, s instrumentation.Scope) {
	m.message(field, func(m *message) {
		m.string(1, s.Name)
		m.string(2, s.Version)
		m.attributes(3, s.Attributes.ToSlice())
	})
}
