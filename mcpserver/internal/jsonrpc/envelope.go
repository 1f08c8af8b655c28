// Package jsonrpc parses the messages of clients, explains what is wrong with invalid ones, encodes responses, and
// writes them to a pipe. It parses most tool calls in one pass, without the MCP library.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin/jsontext"
)

// An Envelope has the parts of a message that are needed before the library handles it.
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
	// Result and Error belong to a response of the client to a request of the server.
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`

	// Rest is the message. If Arguments is set and Plain is not, Rest has an empty object in place of the arguments.
	Rest      []byte          `json:"-"`
	Arguments json.RawMessage `json:"-"`
	// Plain means that [Plain] has parsed the message.
	Plain bool `json:"-"`
}

// Modern reports whether a message belongs to the era without sessions, according to its header or its _meta. The
// caller checks separately that they agree.
func (m *Envelope) Modern(header string) bool {
	declared, _ := m.Params.Meta[mcp.MetaKeyProtocolVersion].(string)
	return mcp.IsModernProtocol(header) || mcp.IsModernProtocol(declared)
}

// Methods that the server handles itself.
const (
	MethodCall      = "tools/call"
	MethodCancelled = "notifications/cancelled"
)

// An Error is the JSON-RPC error for a message that the library does not handle.
type Error struct {
	ID   json.RawMessage // nil if unknown: the id of the response is then null
	Code int
	Text string
	Data any
	// Ordinary means that a legacy client gets the error with HTTP status 200. It would take another status for the end
	// of the connection.
	Ordinary bool
}

// Response returns the message to send.
func (f *Error) Response() mcp.JSONRPCError {
	var id any
	if f.ID != nil {
		id = f.ID
	}
	return mcp.NewJSONRPCError(mcp.NewRequestId(id), f.Code, f.Text, f.Data)
}

// Open parses the envelope of a message. The error says what is wrong with an invalid message.
func Open(message []byte) (m Envelope, invalid *Error) {
	if crowded(message) {
		var o Oversized
		o.Write(message)
		return m, &Error{ID: usable(o.ID()), Code: mcp.INVALID_REQUEST,
			Text: fmt.Sprintf("the message has more than %d members: send less at once", maxMembers)}
	}
	var err error
	m, plain := Plain(message)
	if !plain {
		m, err = Decode(message)
	}
	switch trimmed := bytes.TrimSpace(message); {
	case !utf8.Valid(message): // the decoder would replace the invalid bytes
		return m, &Error{ID: usable(m.ID), Code: mcp.PARSE_ERROR, Text: explainEncoding(message)}
	case err == nil && m.Method != "" && (m.Result != nil || m.Error != nil):
		return m, &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST,
			Text: "the message has a method and a result or error: send either a request or a response"}
	case err == nil && m.Method != "" && m.ID != nil && usable(m.ID) == nil:
		return m, &Error{Code: mcp.INVALID_REQUEST,
			Text: fmt.Sprintf("the id of the request is invalid: it must be an integer between -%d and %[1]d, or a string "+
				"without lone surrogates", LargestID)}
	case err == nil && m.Method == "" && m.ID != nil && m.Result == nil && m.Error == nil:
		// Without a response the client would wait forever.
		return m, &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST,
			Text: "the message has an id and neither a method nor a result: a request needs a method"}
	case err == nil && m.Plain:
		return m, nil
	case err == nil && m.Version != "2.0" && m.Result == nil && m.Error == nil:
		return m, &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST,
			Text: `not a JSON-RPC 2.0 message: it needs "jsonrpc": "2.0"`}
	case err == nil:
		return m, checkAmbiguous(m)
	case !json.Valid(message):
		return m, &Error{Code: mcp.PARSE_ERROR, Text: explainSyntax(message, err)}
	case trimmed[0] == '[':
		return m, &Error{Code: mcp.INVALID_REQUEST,
			Text: "batches are not supported by MCP: send one message at a time"}
	}
	var loose struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(message, &loose) // if this fails, the id of the response is null
	return m, &Error{
		ID: usable(loose.ID), Code: mcp.INVALID_REQUEST,
		Text: "not a JSON-RPC 2.0 message: method must be a string, params and _meta must be objects",
	}
}

// maxMembers is how many members the objects of a message may have together. Decoding a million takes seconds.
const maxMembers = 200_000

// crowded reports whether a message has more members than that.
func crowded(message []byte) bool {
	if len(message) < len(`"":0,`)*maxMembers {
		return false
	}
	members, quoted := 0, false
	for i := 0; i < len(message); i++ {
		switch message[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case ':':
			if !quoted {
				members++
			}
		}
	}
	return members > maxMembers
}

// checkAmbiguous returns an error if two decoders could read a message differently.
func checkAmbiguous(m Envelope) *Error {
	name := ambiguous(m.Rest)
	if name == "" {
		return nil
	}
	return &Error{ID: usable(m.ID), Code: mcp.INVALID_REQUEST, Text: fmt.Sprintf(
		"the message has %s twice or with different capitals: send it once, in lower case", name)}
}

// Decode decodes a message, except the arguments of a call.
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

// LargestID is the largest integer that is accepted as an id. The library and most clients store ids as float64, which
// would change larger ones.
const LargestID = 1<<53 - 1

// usable returns id if it is a valid id of a request, and nil otherwise.
func usable(id json.RawMessage) json.RawMessage {
	if len(id) > 0 && id[0] == '"' {
		if strings.ContainsRune(IDKey(id), utf8.RuneError) && bytes.IndexByte(id, '\\') >= 0 {
			return nil // a lone surrogate, as an escape: it decodes to the same text as others
		}
		return id
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n < -LargestID || n > LargestID {
		return nil
	}
	return id
}

// IDKey returns the same key for all encodings of an id, with and without escape sequences.
func IDKey(id json.RawMessage) string {
	var text string
	if bytes.IndexByte(id, '\\') < 0 || json.Unmarshal(id, &text) != nil {
		return string(id)
	}
	return `"` + text + `"`
}

// ByteOrderMark is the UTF-8 byte order mark, which some programs write before the first message.
var ByteOrderMark = []byte("\uFEFF")

// explainEncoding returns the error text for a message that is not valid UTF-8.
func explainEncoding(message []byte) string {
	if bytes.IndexByte(message, 0) >= 0 {
		return "the message is not valid UTF-8: it looks like UTF-16, send UTF-8"
	}
	return "the message is not valid UTF-8: send UTF-8"
}

// explainSyntax returns the error text for a message that is not valid JSON. It recognizes common mistakes. err is the
// error of the decoder.
func explainSyntax(message []byte, err error) string {
	const text = "the message is not valid JSON"
	start := bytes.ToLower(message[:min(len(message), 32)])
	isHeader := func(head string) bool { return bytes.HasPrefix(start, []byte(head)) }
	switch {
	case bytes.HasPrefix(message, ByteOrderMark):
		return text + ": it starts with a byte order mark, remove it"
	case bytes.IndexByte(message, 0) >= 0:
		return text + ": it contains NUL bytes, as UTF-16 does; send UTF-8"
	case slices.ContainsFunc([]string{"content-length:", "content-type:", "post /", "get /"}, isHeader):
		return text + ": it looks like a header. Over stdio, send each message on one line, without headers"
	case strings.Contains(err.Error(), "max depth"):
		return text + ": its arrays and objects are nested too deeply"
	}
	return text
}

// members are the members of a message that have a meaning.
var members = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// paramMembers are the members of params that have a meaning.
var paramMembers = []string{"name", "arguments", "_meta", "requestState", "inputResponses", "requestId", "taskId",
	"notifications"}

// ambiguous returns the name of a member that occurs twice or with different capitals. encoding/json ignores case and
// uses the last one. A program between client and host that checks messages may use another.
func ambiguous(message []byte) string {
	var params json.RawMessage
	name := duplicateName(message, members, func(name string, value json.RawMessage) {
		if name == "params" {
			params = value
		}
	})
	if name == "" && len(params) > 0 && params[0] == '{' {
		if name = duplicateName(params, paramMembers, func(string, json.RawMessage) {}); name != "" {
			name = "params." + name
		}
	}
	return name
}

// duplicateName returns the first name in an object that occurred before, or that differs from a known name only in
// case. It calls each for the known names.
func duplicateName(object []byte, known []string, each func(name string, value json.RawMessage)) string {
	var seen []string
	for name, value := range jsontext.Members(object) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			continue
		}
		if !slices.Contains(known, name) || slices.Contains(seen, name) {
			return name
		}
		seen = append(seen, name)
		each(name, value)
	}
	return ""
}
