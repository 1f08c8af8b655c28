package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"toolhost/mcpserver/internal/wire"
)

// misuse finds what is wrong with a call of a tool that the library would let pass, or could answer with no
// fitting error: a requestState that was tampered with, and a capability that its client did not declare.
func (s *Server) misuse(m wire.Envelope) *wire.Fault {
	if m.Method != wire.MethodCall {
		return nil
	}
	extra := s.host.extra(m.Params.Name)
	if state := m.Params.RequestState; state != "" && (extra == nil || !extra.Rounds) {
		if _, _, err := s.host.questions.parse(state); err != nil {
			return &wire.Fault{ID: m.ID, Code: mcp.INVALID_PARAMS, Text: err.Error()}
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
	return &wire.Fault{
		ID: m.ID, Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY,
		Text: mcp.MissingRequiredClientCapabilityError{Capability: missing[0]}.Error(),
		Data: map[string]any{"requiredCapabilities": needed},
	}
}

// malformed finds what is wrong with the params of a request, in words for who sent it.
func (s *Server) malformed(m wire.Envelope) *wire.Fault {
	var err error
	switch {
	case m.Method == string(mcp.MethodInitialize):
		err = json.Unmarshal(m.Rest, &mcp.InitializeRequest{})
	case m.Method == string(mcp.MethodToolsList):
		err = s.wrongCursor(m)
	case m.Method == wire.MethodCall:
		err = s.wrongCall(m)
	}
	if err == nil {
		return nil
	}
	return &wire.Fault{ID: m.ID, Code: mcp.INVALID_PARAMS, Text: m.Method + ": " + readable(err), Ordinary: true}
}

// announced reports whether the headers of a request of the era without sessions say what its body says. If not, that is what is wrong
// with it, and the library says so.
func announced(r *http.Request, m wire.Envelope) bool {
	return r.Header.Get(mcp.HeaderMethod) == m.Method && (m.Method != wire.MethodCall || r.Header.Get(mcp.HeaderName) == m.Params.Name)
}

func (s *Server) wrongCursor(m wire.Envelope) error {
	var req mcp.ListToolsRequest
	if err := json.Unmarshal(m.Rest, &req); err != nil {
		return err
	}
	if req.Params.Cursor != "" {
		return errors.New("params.cursor is none that came from this server: the list of the tools is one page, leave it out")
	}
	return nil
}

func (s *Server) wrongCall(m wire.Envelope) error {
	name := m.Params.Name
	if _, known := s.tools[name]; !known && s.mcp.GetTool(name) == nil {
		return s.host.noTool(name)
	}
	if m.Plain || m.Arguments != nil {
		return nil // bound by ourselves
	}
	return json.Unmarshal(m.Rest, &mcp.CallToolRequest{})
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
