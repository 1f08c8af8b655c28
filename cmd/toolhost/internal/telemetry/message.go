package telemetry

import (
	"encoding/binary"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
)

// A message is a protobuf message under construction. The numbers of fields are those in
// opentelemetry/proto/*/v1/*.proto, version 1.11. As proto3 requires, a field with its zero value is left out;
// methods whose names begin with "always" are for optional fields and members of a oneof.
type message []byte

// A wireType says how a field's value is encoded. https://protobuf.dev/programming-guides/encoding
type wireType uint64

const (
	varint  wireType = 0
	fixed64 wireType = 1
	length  wireType = 2 // a length, and that many bytes
	fixed32 wireType = 5
)

func (m *message) tag(field int, kind wireType) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(kind))
}

func (m *message) alwaysBytes(field int, v []byte) {
	m.tag(field, length)
	*m = append(binary.AppendUvarint(*m, uint64(len(v))), v...)
}

func (m *message) bytes(field int, v []byte) {
	if len(v) > 0 {
		m.alwaysBytes(field, v)
	}
}

func (m *message) string(field int, v string) { m.bytes(field, []byte(v)) }

func (m *message) alwaysVarint(field int, v uint64) {
	m.tag(field, varint)
	*m = binary.AppendUvarint(*m, v)
}

func (m *message) varint(field int, v uint64) {
	if v != 0 {
		m.alwaysVarint(field, v)
	}
}

func (m *message) fixed32(field int, v uint32) {
	m.tag(field, fixed32)
	*m = binary.LittleEndian.AppendUint32(*m, v)
}

func (m *message) alwaysFixed64(field int, v uint64) {
	m.tag(field, fixed64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) alwaysDouble(field int, v float64) {
	m.alwaysFixed64(field, math.Float64bits(v))
}

// time writes a time in nanoseconds since 1970; an earlier time is left out.
func (m *message) time(field int, t time.Time) {
	if n := t.UnixNano(); !t.IsZero() && n > 0 {
		m.alwaysFixed64(field, uint64(n))
	}
}

// message writes a message within this one.
func (m *message) message(field int, write func(*message)) {
	var inner message
	write(&inner)
	m.alwaysBytes(field, inner)
}

// attributes writes a KeyValue for each attribute.
func (m *message) attributes(field int, all []attribute.KeyValue) {
	for _, kv := range all {
		m.message(field, func(m *message) {
			m.string(1, string(kv.Key))
			m.message(2, func(m *message) { m.anyValue(kv.Value) })
		})
	}
}

// anyValue writes the value of an attribute: a number, a list of texts, or a text.
func (m *message) anyValue(v attribute.Value) {
	switch v.Type() {
	case attribute.INT64:
		m.alwaysVarint(3, uint64(v.AsInt64()))
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

// exportRequest returns a request to a collector with the data of one resource. The outer structure is the same for
// all signals; content writes the rest.
func exportRequest(about *resource.Resource, content func(*message)) (request message) {
	request.message(1, func(m *message) {
		m.message(1, func(m *message) { m.attributes(1, about.Attributes()) })
		content(m)
		m.string(3, about.SchemaURL())
	})
	return request
}

// scoped writes the data that one instrumentation scope has recorded.
func (m *message) scoped(s instrumentation.Scope, content func(*message)) {
	m.message(2, func(m *message) {
		m.message(1, func(m *message) {
			m.string(1, s.Name)
			m.string(2, s.Version)
			m.attributes(3, s.Attributes.ToSlice())
		})
		content(m)
		m.string(3, s.SchemaURL)
	})
}
