package jsonrpc

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin/jsontext"
)

// Plain takes the message of a call apart that has nothing but what clients of the era of sessions send: it is decoded once,
// and answered without the library, which would decode it five times. Whenever a message has anything else, or two readers could
// find different things in it, ok is false, and the library gets it.
func Plain(message []byte) (m Envelope, ok bool) {
	p := plainParts{Scanner: jsontext.NewScanner(message)}
	if !p.Object(p.member) || !p.End() || p.seen != allParts {
		return m, false
	}
	if p.meta != nil && (json.Unmarshal(p.meta, &m.Params.Meta) != nil || m.Params.Meta[mcp.MetaKeyProtocolVersion] != nil) {
		return Envelope{}, false // of the era without sessions
	}
	m.ID, m.Method, m.Params.Name = p.id, MethodCall, string(p.name)
	m.Rest, m.Arguments, m.Plain = message, p.arguments, true
	return m, true
}

// plainParts are what a plain call is made of, as far as it was walked.
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

// once notes a member, and is false if it was there before.
func (p *plainParts) once(member part) bool {
	first := p.seen&member == 0
	p.seen |= member
	return first
}

// member takes a member of the message.
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

// param takes a member of params.
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

// isPlain reports whether a value reads the same to everybody: a string of ASCII without escapes, or digits.
func isPlain(value []byte) bool {
	for _, c := range value {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return len(value) > 0 && (value[0] == '"' || value[0] >= '0' && value[0] <= '9')
}
