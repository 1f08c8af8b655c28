package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

// misuse finds faults of a tool call that the library would accept, or refuse with an unsuitable error: a requestState
// that was tampered with, and a capability that the client did not declare.
func (m *message) misuse() *jsonrpc.Error {
	extra := m.tool.extra
	if state := m.Params.RequestState; state != "" && (extra == nil || !extra.Rounds) {
		if err := m.host.approvals.questions.Verify(strings.TrimPrefix(state, resumePrefix)); err != nil {
			return &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_PARAMS, Text: err.Error()}
		}
	}
	_, modern := m.Params.Meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	if extra == nil || !modern {
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(extra.Needs),
		func(name string) bool { return declares(&m.Envelope, name) })
	if len(missing) == 0 {
		return nil
	}
	return missingCapabilities(m.ID, missing...)
}

// Validate implements [transport.Message].
func (m *message) Validate(who auth.Identity) *jsonrpc.Error {
	if no := m.notOffered(); no != nil && m.ID != nil {
		return no
	}
	var err error
	switch m.Method {
	case string(mcp.MethodInitialize):
		err = json.Unmarshal(m.Rest, &mcp.InitializeRequest{})
	case string(mcp.MethodToolsList):
		err = m.checkCursor()
	case jsonrpc.MethodCall:
		err = m.checkCall(who)
	case string(mcp.MethodResourcesRead):
		return m.unknownResource(who)
	case string(mcp.MethodPromptsGet):
		err = m.checkPrompt(who)
	}
	if err == nil {
		return nil
	}
	return &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_PARAMS, Text: m.Method + ": " + readable(err), Ordinary: true}
}

func (m *message) checkCursor() error {
	var req mcp.ListToolsRequest
	if err := json.Unmarshal(m.Rest, &req); err != nil {
		return err
	}
	if req.Params.Cursor != "" {
		return errors.New("params.cursor is not a cursor of this server: omit it, the list of tools has one page")
	}
	return nil
}

// unknownResource returns the error for a resource that is not served. The library's error does not name it
// (https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2164).
func (m *message) unknownResource(who auth.Identity) *jsonrpc.Error {
	e := m.host.cfg.Extension
	var req mcp.ReadResourceRequest
	if json.Unmarshal(m.Rest, &req) != nil {
		return nil // the library refuses it
	}
	uri := req.Params.URI
	if strings.HasPrefix(uri, skillScheme) {
		if _, _, err := m.skillFile(who, uri); err == nil {
			return nil
		}
	}
	if _, err := m.host.gateway.Review(gateway.ServerOf(uri)); err == nil && strings.HasPrefix(uri, gateway.Scheme) ||
		slices.ContainsFunc(e.Resources, func(r server.ServerResource) bool { return r.Resource.URI == uri }) ||
		slices.ContainsFunc(e.Templates, func(t server.ServerResourceTemplate) bool {
			return t.Template.URITemplate != nil && t.Template.URITemplate.Regexp().MatchString(uri)
		}) {
		return nil
	}
	code := mcp.RESOURCE_NOT_FOUND
	if m.Modern("") {
		code = mcp.INVALID_PARAMS
	}
	return &jsonrpc.Error{
		ID: m.ID, Code: code, Text: fmt.Sprintf("there is no resource %q: resources/list names those that there are", uri),
		Data: map[string]any{"uri": uri}, Ordinary: true,
	}
}

func (m *message) checkCall(who auth.Identity) error {
	if name := m.Params.Name; errors.Is(m.tool.err, errNoTool) && m.mcp.GetTool(name) == nil &&
		!m.host.tools.now().serverOf(name).unsure() {
		m.tool = m.host.tools.resolve(name) // the server may have listed its tools since the message was opened
		if err := m.tool.err; errors.Is(err, errNoTool) {
			return m.host.callNoTool(who, name, m.host.policies.noTool(who.Principal, who, name, err))
		}
	}
	if m.Plain || m.Arguments != nil {
		return nil // bound by the pipeline
	}
	return json.Unmarshal(m.Rest, &mcp.CallToolRequest{})
}

// readable returns the text of a decoder's error without the names of Go types.
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
