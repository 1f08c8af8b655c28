package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/scope"
)

// The argument by which a call names its session, where [Config.SessionArgument] says so.

// takesSession reports whether a tool has the argument of the session beside its own.
func (t *toolset) takesSession(d *builtin.Def) bool {
	return t.session && d.Schema.Properties[scope.Argument] == nil
}

// shown is a tool as clients see it.
func (t *toolset) shown(d *builtin.Def) *builtin.Def {
	if !t.takesSession(d) {
		return d
	}
	schema, def := *d.Schema, *d
	schema.Properties = maps.Clone(schema.Properties)
	if schema.Properties == nil {
		schema.Properties = map[string]*jsonschema.Schema{}
	}
	schema.Properties[scope.Argument] = &jsonschema.Schema{
		Type: "string",
		Description: `The session this call belongs to. Pass "` + scope.NewHandle + `" in the first call; its result names the session, which you pass in every further call. ` +
			`Leave it out if you were not given one. Never make one up.`,
	}
	schema.PropertyOrder = append(slices.Clip(schema.PropertyOrder), scope.Argument)
	def.Schema = &schema
	return &def
}

// nameSession lets the argument of the session count as the handle in _meta, which goes first.
func (t *toolset) nameSession(m *jsonrpc.Envelope, message []byte) {
	if !t.session || m.Method != jsonrpc.MethodCall || m.Params.Meta[scope.MetaHandle] != nil {
		return
	}
	var call struct {
		Params struct {
			Arguments map[string]json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	var handle string
	if json.Unmarshal(message, &call) != nil || json.Unmarshal(call.Params.Arguments[scope.Argument], &handle) != nil || handle == "" {
		return // what is wrong with the arguments is said when they are bound
	}
	if r := t.resolve(m.Params.Name); r.err != nil || !t.takesSession(r.def) {
		return
	}
	if m.Params.Meta == nil {
		m.Params.Meta = map[string]any{}
	}
	m.Params.Meta[scope.MetaHandle] = handle
}

// withoutSession takes the argument of the session off, which the tool does not know.
func (t *toolset) withoutSession(tool resolved, args json.RawMessage) json.RawMessage {
	if tool.err != nil || !t.takesSession(tool.def) {
		return args
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil || fields[scope.Argument] == nil {
		return args
	}
	delete(fields, scope.Argument)
	rest, err := json.Marshal(fields)
	if err != nil {
		return args
	}
	return rest
}

// tellSession names a new session in the text of a reply, for a model that reads nothing else.
func (t *toolset) tellSession(r Reply) Reply {
	if t.session && r.Session != "" {
		r.Text += fmt.Sprintf("\n\n[The session of this call is %s: pass it as %q in further calls.]", r.Session, scope.Argument)
	}
	return r
}
