package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// With [Config.SessionArgument], a call names its session in an argument.

// takesSession reports whether the session argument is added to a tool.
func (t *toolset) takesSession(d *builtin.Def) bool {
	if d.Schema == nil {
		return t.session && rawProperties(d.RawSchema)[scope.Argument] == nil
	}
	return t.session && d.Schema.Properties[scope.Argument] == nil
}

// rawProperties returns the properties of a schema from another server.
func rawProperties(schema json.RawMessage) map[string]json.RawMessage {
	var shown struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &shown) // a schema that is not an object has no properties
	return shown.Properties
}

// withRawProperty adds a property to a schema from another server.
func withRawProperty(schema json.RawMessage, name string, property *jsonschema.Schema) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(schema, &fields); err != nil {
		return nil, err
	}
	properties := rawProperties(schema)
	if properties == nil {
		properties = map[string]json.RawMessage{}
	}
	var err error
	if properties[name], err = json.Marshal(property); err == nil {
		fields["properties"], err = json.Marshal(properties)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// shown returns a tool as clients see it.
func (t *toolset) shown(d *builtin.Def) *builtin.Def {
	if !t.takesSession(d) {
		return d
	}
	def, argument := *d, &jsonschema.Schema{
		Type: "string",
		Description: `The session this call belongs to. Pass "` + scope.NewHandle +
			`" in the first call; its result names the session, which you pass in every further call. ` +
			`Leave it out if you were not given one. Never make one up.`,
	}
	if d.Schema == nil {
		if schema, err := withRawProperty(d.RawSchema, scope.Argument, argument); err == nil {
			def.RawSchema = schema
		}
		return &def
	}
	schema := *d.Schema
	schema.Properties = maps.Clone(schema.Properties)
	if schema.Properties == nil {
		schema.Properties = map[string]*jsonschema.Schema{}
	}
	schema.Properties[scope.Argument] = argument
	schema.PropertyOrder = append(slices.Clip(schema.PropertyOrder), scope.Argument)
	def.Schema = &schema
	return &def
}

// nameSession moves the session argument of a call into its session handle, unless _meta has one.
func (m *message) nameSession() {
	if !m.host.tools.session || m.Params.Meta[scope.MetaHandle] != nil || m.tool.err != nil || m.tool.inside == nil &&
		!m.host.tools.takesSession(m.tool.def) {
		return
	}
	var call struct {
		Params struct {
			Arguments map[string]json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	var handle string
	if json.Unmarshal(m.text, &call) != nil || json.Unmarshal(call.Params.Arguments[scope.Argument], &handle) != nil ||
		handle == "" {
		return // bind reports what is wrong with the arguments
	}
	if m.Params.Meta == nil {
		m.Params.Meta = map[string]any{}
	}
	m.Params.Meta[scope.MetaHandle] = handle
}

// withoutSession removes the session argument, which the tool itself does not have.
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

// tellSession adds the name of a new session to the text of a reply, for models that read only the
// text.
func (t *toolset) tellSession(r Reply) Reply {
	if t.session && r.Session != "" {
		r.Text += fmt.Sprintf("\n\n[The session of this call is %s: pass it as %q in further calls.]", r.Session,
			scope.Argument)
	}
	return r
}
