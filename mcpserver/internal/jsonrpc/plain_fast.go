package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin/jsontext"
)

// Plain decodes a tool call of a legacy client that has only the usual members. Such a call is handled without the
// library, which would decode it five times. If the message has other members, or two decoders could read it
// differently, ok is false.
func Plain(message []byte) (m Envelope, ok bool) {
	p := plainParts{Scanner: jsontext.NewScanner(message)}
	if !p.Object(p.member) || !p.End() || p.seen != allParts {
		return m, false
	}
	if p.meta != nil && (json.Unmarshal(p.meta, &m.Params.Meta) != nil ||
		m.Params.Meta[mcp.MetaKeyProtocolVersion] != nil) {
		return Envelope{}, false // a modern call
	}
	m.ID, m.Method, m.Params.Name = p.id, MethodCall, string(p.name)
	m.Rest, m.Arguments, m.Plain = message, p.arguments, true
	return m, true
}

// plainParts are the parts of a plain call that were scanned so far.
type plainParts struct {
	*jsontext.Scanner
	seen                      part
	id, name, arguments, meta []byte
}

type part uint8

const (
	partVersion part = 1 << iota
	partID
	partMethod
	partParams
	partName
	partArguments

	allParts = partArguments<<1 - 1
)

// once records a member, and reports whether it was new.
func (p *plainParts) once(member part) bool {
	first := p.seen&member == 0
	p.seen |= member
	return first
}

// member scans a member of the message.
func (p *plainParts) member(name []byte) bool {
	switch string(name) {
	case "jsonrpc":
		return p.once(partVersion) && string(p.Value()) == `"2.0"`
	case "method":
		return p.once(partMethod) && string(p.Value()) == `"`+MethodCall+`"`
	case "params":
		return p.once(partParams) && p.Object(p.param)
	case "id":
		p.id = p.Value()
		return p.once(partID) && isPlain(p.id) && usable(p.id) != nil
	}
	return false
}

// param scans a member of params.
func (p *plainParts) param(name []byte) bool {
	switch string(name) {
	case "name":
		quoted := p.Value()
		if !p.once(partName) || !isPlain(quoted) || quoted[0] != '"' {
			return false
		}
		p.name = quoted[1 : len(quoted)-1]
		return true
	case "arguments":
		p.arguments = p.Value()
		return p.once(partArguments) && len(p.arguments) > 0 && p.arguments[0] == '{'
	case "_meta":
		if p.meta != nil {
			return false
		}
		p.meta = p.Value()
		return len(p.meta) > 0 && p.meta[0] == '{'
	}
	return false
}

// isPlain reports whether all decoders read a value the same: an ASCII string without escapes, or digits.
func isPlain(value []byte) bool {
	for _, c := range value {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return len(value) > 0 && (value[0] == '"' || value[0] >= '0' && value[0] <= '9')
}

// cutArguments removes the arguments of a call from its message: rest has an empty object in their place. The library
// decodes a message five times, and the arguments are most of a long one. If two decoders could find different
// arguments in the message, ok is false.
func cutArguments(message []byte) (rest []byte, arguments json.RawMessage, ok bool) {
	s := jsontext.NewScanner(message)
	var end, params, given int
	walked := s.Object(func(name []byte) bool {
		if !bytes.EqualFold(name, []byte("params")) {
			return s.Value() != nil
		}
		params++
		return string(name) == "params" && s.Object(func(name []byte) bool {
			value := s.Value()
			if bytes.EqualFold(name, []byte("arguments")) {
				given++
				arguments, end = value, s.At()
				return string(name) == "arguments" && value != nil && value[0] == '{'
			}
			return value != nil
		})
	})
	if !walked || !s.End() || params != 1 || given != 1 {
		return nil, nil, false
	}
	return slices.Concat(message[:end-len(arguments)], []byte("{}"), message[end:]), arguments, true
}
