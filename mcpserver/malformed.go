package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// What the library would answer with the words of its decoder, or take for something that others read in another way.

// byteOrderMark begins what some programs write as UTF-8.
var byteOrderMark = []byte("\uFEFF")

// notUTF8 says what a message is that cannot be read as text.
func notUTF8(message []byte) string {
	if bytes.IndexByte(message, 0) >= 0 {
		return "the message is not valid UTF-8: it looks like UTF-16, send UTF-8"
	}
	return "the message is not valid UTF-8"
}

// notJSON says what is the matter with a message that is none, as far as that can be guessed; err is the decoder's.
func notJSON(message []byte, err error) string {
	const text = "the message is not valid JSON"
	start := bytes.ToLower(message[:min(len(message), 32)])
	isHeader := func(head string) bool { return bytes.HasPrefix(start, []byte(head)) }
	switch {
	case bytes.HasPrefix(message, byteOrderMark):
		return text + ": it begins with a byte order mark, leave that out"
	case bytes.IndexByte(message, 0) >= 0:
		return text + ": there are NUL bytes in it, as in UTF-16; send UTF-8"
	case slices.ContainsFunc([]string{"content-length:", "content-type:", "post /", "get /"}, isHeader):
		return text + ": it looks like a header. Over stdio each message is a line of its own, with no header before it"
	case strings.Contains(err.Error(), "max depth"):
		return text + " to this server: its lists and objects are nested too deeply"
	}
	return text
}

// members are the names in a message that say what it asks for.
var members = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// paramMembers are those in the params of a call.
var paramMembers = []string{"name", "arguments", "_meta", "requestState", "inputResponses", "requestId"}

// ambiguous returns a member of a message that stands twice, or beside which stands, or in whose place, the same name in another
// spelling. Our decoder takes any of them, and the last; what stands between a client and us, and judges messages, may take another.
func ambiguous(message []byte) string {
	var params json.RawMessage
	name := twice(message, members, func(name string, value json.RawMessage) {
		if name == "params" {
			params = value
		}
	})
	if name == "" && len(params) > 0 && params[0] == '{' {
		if name = twice(params, paramMembers, func(string, json.RawMessage) {}); name != "" {
			name = "params." + name
		}
	}
	return name
}

// twice returns the first name in an object that is one of known in another spelling, or that came before. each gets the known ones.
func twice(object []byte, known []string, each func(name string, value json.RawMessage)) string {
	var seen []string
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return "" // others say that it is no JSON
		}
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

// malformed finds what is wrong with the params of a request, in words for who sent it.
func (s *Server) malformed(m envelope) *fault {
	var err error
	switch {
	case m.Method == string(mcp.MethodInitialize):
		err = json.Unmarshal(m.rest, &mcp.InitializeRequest{})
	case m.Method == string(mcp.MethodToolsList):
		err = s.wrongCursor(m)
	case m.Method == methodCall:
		err = s.wrongCall(m)
	}
	if err == nil {
		return nil
	}
	return &fault{id: m.ID, code: mcp.INVALID_PARAMS, text: m.Method + ": " + readable(err), ordinary: true}
}

// announced reports whether the headers of a request of the era without sessions say what its body says. If not, that is what is wrong
// with it, and the library says so.
func announced(r *http.Request, m envelope) bool {
	return r.Header.Get(mcp.HeaderMethod) == m.Method && (m.Method != methodCall || r.Header.Get(mcp.HeaderName) == m.Params.Name)
}

func (s *Server) wrongCursor(m envelope) error {
	var req mcp.ListToolsRequest
	if err := json.Unmarshal(m.rest, &req); err != nil {
		return err
	}
	if req.Params.Cursor != "" {
		return errors.New("params.cursor is none that came from this server: the list of the tools is one page, leave it out")
	}
	return nil
}

func (s *Server) wrongCall(m envelope) error {
	name := m.Params.Name
	if _, known := s.tools[name]; !known && s.mcp.GetTool(name) == nil {
		return s.host.noTool(name)
	}
	if m.plain || m.arguments != nil {
		return nil // bound by ourselves
	}
	return json.Unmarshal(m.rest, &mcp.CallToolRequest{})
}

// readable is what a decoder found wrong, without the names of its types.
func readable(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	if number, ok := strings.CutPrefix(wrong.Value, "number "); ok {
		return fmt.Sprintf("the number %s came, which is larger than any that can be read", number)
	}
	field := "params"
	if at := strings.LastIndex(wrong.Field, "params."); at >= 0 {
		field = wrong.Field[at:]
	}
	return fmt.Sprintf("%s: a value of another kind is expected, not this one (%s)", field, wrong.Value)
}
