// Package jsonrpc parses the messages of clients, reports what is wrong with them in words for their sender, and encodes answers. Most calls of tools it reads whole, in one pass, and past the MCP library. And it encodes
// answers, and writes them to a client over a pipe.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// An Envelope is what must be known of a message before the library handles it.
type Envelope struct {
	Version any             `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Name         string          `json:"name"`
		RequestState string          `json:"requestState"`
		Meta         map[string]any  `json:"_meta"`
		RequestID    json.RawMessage `json:"requestId"`
	} `json:"params"`
	// Of a response to a request of ours.
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`

	// Rest is the message without the arguments of a call, which are in Arguments; the whole message if nothing was cut.
	Rest      []byte          `json:"-"`
	Arguments json.RawMessage `json:"-"`
	// Plain says that the message is one that [Plain] takes; the arguments stand in Rest as well.
	Plain bool `json:"-"`
}

// Modern reports whether a message is one of the era without sessions: its header or its _meta says so. That
// they agree is checked later.
func (m *Envelope) Modern(header string) bool {
	declared, _ := m.Params.Meta[mcp.MetaKeyProtocolVersion].(string)
	return mcp.IsModernProtocol(header) || mcp.IsModernProtocol(declared)
}

// The methods that the server itself looks for.
const (
	MethodCall      = "tools/call"
	MethodCancelled = "notifications/cancelled"
)

// A Error is why a message is answered with a JSON-RPC error before the library sees it.
type Error struct {
	ID   json.RawMessage // nil: unknown, the answer's is null
	Code int             // of JSON-RPC
	Text string
	Data any
	// Ordinary says that the request is answered like others: a client of sessions takes an HTTP status for the end of its connection.
	Ordinary bool
}

// Response is the answer to the message.
func (f *Error) Response() mcp.JSONRPCError {
	var id any
	if f.ID != nil {
		id = f.ID
	}
	return mcp.NewJSONRPCError(mcp.NewRequestId(id), f.Code, f.Text, f.Data)
}

// Open reads the envelope of a message; the fault tells what is wrong with one that has none.
func Open(message []byte) (m Envelope, f *Error) {
	var err error
	m, plain := Plain(message)
	if !plain {
		m, err = Decode(message)
	}
	switch trimmed := bytes.TrimSpace(message); {
	case !utf8.Valid(message): // decoding it would put other characters in their place
		return m, &Error{ID: usable(m.ID), Code: mcp.PARSE_ERROR, Text: notUTF8(message)}
	case err == nil && m.Method != "" && (m.Result != nil || m.Error != nil):
		return m, &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST, Text: "a message with a method is a request and has neither result nor error"}
	case err == nil && m.Method != "" && m.ID != nil && usable(m.ID) == nil:
		return m, &Error{Code: mcp.INVALID_REQUEST, Text: fmt.Sprintf("the id of a request must be a string, or an integer between -%d and %[1]d, and no string with half of a surrogate pair", LargestID)}
	case err == nil && m.Method == "" && m.ID != nil && m.Result == nil && m.Error == nil: // its sender would wait for ever
		return m, &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST, Text: "this message has an id and neither a method nor a result: a request needs a method"}
	case err == nil && m.Plain:
		return m, nil
	case err == nil && m.Version != "2.0" && m.Result == nil && m.Error == nil:
		return m, &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST, Text: `this is not a JSON-RPC 2.0 message: it needs "jsonrpc": "2.0"`}
	case err == nil:
		return m, unclear(m)
	case !json.Valid(message):
		return m, &Error{Code: mcp.PARSE_ERROR, Text: notJSON(message, err)}
	case trimmed[0] == '[':
		return m, &Error{Code: mcp.INVALID_REQUEST, Text: "batches are not part of the protocol: send one message at a time"}
	}
	var loose struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(message, &loose) // without an id the answer's is null
	return m, &Error{
		ID: usable(loose.ID), Code: mcp.INVALID_REQUEST,
		Text: "this is not a JSON-RPC 2.0 message: method must be a string, params and _meta objects",
	}
}

// unclear is the fault of a message in which two readers could find different things.
func unclear(m Envelope) *Error {
	name := ambiguous(m.Rest)
	if name == "" {
		return nil
	}
	return &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST, Text: fmt.Sprintf(
		"%s is in the message twice, or is spelt in capitals: a program on the way could have read another one", name)}
}

// Decode decodes a message, but not the arguments of a call.
func Decode(message []byte) (m Envelope, err error) {
	if rest, arguments, ok := cutArguments(message); ok {
		if json.Unmarshal(rest, &m) == nil && m.Method == MethodCall {
			m.Rest, m.Arguments = rest, arguments
			return m, nil
		}
		m = Envelope{}
	}
	err = json.Unmarshal(message, &m)
	m.Rest = message
	return m, err
}

// LargestID is the largest number that an id may be. Larger ones would come back changed, since the library and most clients
// keep them in 64-bit floating-point numbers.
const LargestID = 1<<53 - 1

// usable is an id that a request may have, and that it is answered with; nil when it is none.
func usable(id json.RawMessage) json.RawMessage {
	if len(id) > 0 && id[0] == '"' {
		if strings.ContainsRune(IDKey(id), utf8.RuneError) && bytes.IndexByte(id, '\\') >= 0 {
			return nil // half a character, as an escape: others would get the same answer
		}
		return id
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n < -LargestID || n > LargestID {
		return nil
	}
	return id
}

// IDKey is the same for all spellings of an id: the letter a of a string may come as an escape too.
func IDKey(id json.RawMessage) string {
	var text string
	if bytes.IndexByte(id, '\\') < 0 || json.Unmarshal(id, &text) != nil {
		return string(id)
	}
	return `"` + text + `"` // which no id without escapes is, unless it is the same
}
