package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"toolhost/builtin/jsontext"
)

// plainCall takes the message of a call apart that has nothing but what clients of the era of sessions send: it is decoded once,
// and answered without the library, which would decode it five times. Whenever a message has anything else, or two readers could
// find different things in it, ok is false, and the library gets it.
func plainCall(message []byte) (m envelope, ok bool) {
	p := plainParts{s: jsonScanner{text: message}}
	if !p.s.object(p.member) || p.seen != allParts || !jsontext.Valid(message) {
		return m, false
	}
	if p.meta != nil && (json.Unmarshal(p.meta, &m.Params.Meta) != nil || m.Params.Meta[mcp.MetaKeyProtocolVersion] != nil) {
		return envelope{}, false // of the era without sessions
	}
	m.ID, m.Method, m.Params.Name = p.id, methodCall, string(p.name)
	m.rest, m.arguments, m.plain = message, p.arguments[:len(p.arguments):len(p.arguments)], true
	return m, true
}

// plainParts are what a plain call is made of, as far as it was walked.
type plainParts struct {
	s                         jsonScanner
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

// value goes over a value and returns it.
func (p *plainParts) value() []byte {
	from := p.s.at
	if !p.s.value() {
		return nil
	}
	return p.s.text[from:p.s.at]
}

// member takes a member of the message.
func (p *plainParts) member(name []byte) bool {
	switch string(name) {
	case "jsonrpc":
		return p.once(partVersion) && string(p.value()) == `"2.0"`
	case "method":
		return p.once(partMethod) && string(p.value()) == `"`+methodCall+`"`
	case "params":
		return p.once(partParams) && p.s.object(p.param)
	case "id":
		p.id = p.value()
		return p.once(partID) && isPlain(p.id) && usable(p.id) != nil
	}
	return false
}

// param takes a member of params.
func (p *plainParts) param(name []byte) bool {
	switch string(name) {
	case "name":
		quoted := p.value()
		if !p.once(partName) || !isPlain(quoted) || quoted[0] != '"' {
			return false
		}
		p.name = quoted[1 : len(quoted)-1]
		return true
	case "arguments":
		p.arguments = p.value()
		return p.once(partArguments) && len(p.arguments) > 0 && p.arguments[0] == '{'
	case "_meta":
		if p.meta != nil {
			return false
		}
		p.meta = p.value()
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

// A plainAnswer is the answer to a plain call.
type plainAnswer struct {
	id     json.RawMessage
	result *mcp.CallToolResult
}

// answersPlain reports whether a call needs nothing of the library: its tool is one of ours, and no extension takes part.
func (s *Server) answersPlain(m envelope) bool {
	return m.plain && s.tools[m.Params.Name] && s.host.cfg.Extension.Options == nil
}

// callPlain answers a plain call as the library would.
func (s *Server) callPlain(ctx context.Context, m envelope) (response mcp.JSONRPCMessage) {
	defer func() {
		if p := recover(); p != nil {
			f := fault{id: m.ID, code: mcp.INTERNAL_ERROR, text: fmt.Sprintf("panic recovered in %s tool handler: %v", m.Params.Name, p)}
			response = f.response()
		}
	}()
	req := mcp.CallToolRequest{Request: mcp.Request{Method: methodCall}, Params: mcp.CallToolParams{Name: m.Params.Name, RawArguments: m.arguments}}
	if m.Params.Meta != nil {
		req.Params.Meta = mcp.NewMetaFromMap(m.Params.Meta)
	}
	result, err := s.call(ctx, req)
	if err != nil {
		f := fault{id: m.ID, code: mcp.INTERNAL_ERROR, text: err.Error()}
		return f.response()
	}
	return plainAnswer{m.ID, result}
}
