package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// An envelope is what must be known of a message before the library handles it.
type envelope struct {
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

	// rest is the message without the arguments of a call, which are in arguments; the whole message if nothing was cut.
	rest      []byte
	arguments json.RawMessage
	plain     bool // see [plainCall]; the arguments stand in rest as well
}

// modern reports whether a message is one of the era without sessions: its header or its _meta says so. That
// they agree is checked later.
func (m *envelope) modern(header string) bool {
	declared, _ := m.Params.Meta[mcp.MetaKeyProtocolVersion].(string)
	return mcp.IsModernProtocol(header) || mcp.IsModernProtocol(declared)
}

const (
	methodCall      = "tools/call"
	methodCancelled = "notifications/cancelled"
)

// A fault is why a message is answered with a JSON-RPC error before the library sees it.
type fault struct {
	id   json.RawMessage // nil: unknown, the answer's is null
	code int
	text string
	data any
	// ordinary says that the request is answered like others: a client of sessions takes an HTTP status for the end of its connection.
	ordinary bool
}

func (f *fault) response() mcp.JSONRPCError {
	var id any
	if f.id != nil {
		id = f.id
	}
	return mcp.NewJSONRPCError(mcp.NewRequestId(id), f.code, f.text, f.data)
}

// openEnvelope reads the envelope of a message; the fault tells what is wrong with one that has none.
func openEnvelope(message []byte) (m envelope, f *fault) {
	var err error
	m, plain := plainCall(message)
	if !plain {
		m, err = decodeEnvelope(message)
	}
	switch trimmed := bytes.TrimSpace(message); {
	case !utf8.Valid(message): // decoding it would put other characters in their place
		return m, &fault{id: usable(m.ID), code: mcp.PARSE_ERROR, text: notUTF8(message)}
	case err == nil && m.Method != "" && (m.Result != nil || m.Error != nil):
		return m, &fault{id: usable(m.ID), code: mcp.INVALID_REQUEST, text: "a message with a method is a request and has neither result nor error"}
	case err == nil && m.Method != "" && m.ID != nil && usable(m.ID) == nil:
		return m, &fault{code: mcp.INVALID_REQUEST, text: fmt.Sprintf("the id of a request must be a string, or an integer between -%d and %[1]d, and no string with half of a surrogate pair", largestID)}
	case err == nil && m.Method == "" && m.ID != nil && m.Result == nil && m.Error == nil: // its sender would wait for ever
		return m, &fault{id: usable(m.ID), code: mcp.INVALID_REQUEST, text: "this message has an id and neither a method nor a result: a request needs a method"}
	case err == nil && m.plain:
		return m, nil
	case err == nil && m.Version != "2.0" && m.Result == nil && m.Error == nil:
		return m, &fault{id: usable(m.ID), code: mcp.INVALID_REQUEST, text: `this is not a JSON-RPC 2.0 message: it needs "jsonrpc": "2.0"`}
	case err == nil:
		return m, unclear(m)
	case !json.Valid(message):
		return m, &fault{code: mcp.PARSE_ERROR, text: notJSON(message, err)}
	case trimmed[0] == '[':
		return m, &fault{code: mcp.INVALID_REQUEST, text: "batches are not part of the protocol: send one message at a time"}
	}
	var loose struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(message, &loose) // without an id the answer's is null
	return m, &fault{
		id: usable(loose.ID), code: mcp.INVALID_REQUEST,
		text: "this is not a JSON-RPC 2.0 message: method must be a string, params and _meta objects",
	}
}

// unclear is the fault of a message in which two readers could find different things.
func unclear(m envelope) *fault {
	name := ambiguous(m.rest)
	if name == "" {
		return nil
	}
	return &fault{id: usable(m.ID), code: mcp.INVALID_REQUEST, text: fmt.Sprintf(
		"%s stands in the message twice, or is spelt in capitals: somebody on the way could have read another one", name)}
}

// decodeEnvelope decodes a message, but not the arguments of a call.
func decodeEnvelope(message []byte) (m envelope, err error) {
	if rest, arguments, ok := cutArguments(message); ok {
		if json.Unmarshal(rest, &m) == nil && m.Method == methodCall {
			m.rest, m.arguments = rest, arguments
			return m, nil
		}
		m = envelope{}
	}
	err = json.Unmarshal(message, &m)
	m.rest = message
	return m, err
}

// largestID is the largest number that an id may be. Larger ones would come back changed, since the library and most clients
// keep them in 64-bit floating-point numbers.
const largestID = 1<<53 - 1

// usable is an id that a request may have, and that it is answered with; nil when it is none.
func usable(id json.RawMessage) json.RawMessage {
	if len(id) > 0 && id[0] == '"' {
		if strings.ContainsRune(idKey(id), utf8.RuneError) && bytes.IndexByte(id, '\\') >= 0 {
			return nil // half a character, as an escape: others would get the same answer
		}
		return id
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n < -largestID || n > largestID {
		return nil
	}
	return id
}

// idKey is the same for all spellings of an id: the letter a of a string may come as an escape too.
func idKey(id json.RawMessage) string {
	var text string
	if bytes.IndexByte(id, '\\') < 0 || json.Unmarshal(id, &text) != nil {
		return string(id)
	}
	return `"` + text + `"` // which no id without escapes is, unless it is the same
}

// misuse finds what is wrong with a call of a tool that the library would let pass, or could answer with no
// fitting error: a requestState that was tampered with, and a capability that its client did not declare.
func (s *Server) misuse(m envelope) *fault {
	if m.Method != methodCall {
		return nil
	}
	extra := s.host.extra(m.Params.Name)
	if state := m.Params.RequestState; state != "" && (extra == nil || !extra.Rounds) {
		if _, _, err := s.host.questions.parse(state); err != nil {
			return &fault{id: m.ID, code: mcp.INVALID_PARAMS, text: err.Error()}
		}
	}
	declared, modern := m.Params.Meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	if extra == nil || !modern {
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(extra.Needs), func(name string) bool { return declared[name] != nil })
	if len(missing) == 0 {
		return nil
	}
	needed := map[string]any{}
	for _, name := range missing {
		needed[name] = struct{}{}
	}
	return &fault{
		id: m.ID, code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY,
		text: mcp.MissingRequiredClientCapabilityError{Capability: missing[0]}.Error(),
		data: map[string]any{"requiredCapabilities": needed},
	}
}
