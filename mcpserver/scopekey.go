package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"toolhost/builtin"
	"toolhost/mcpserver/internal/wire"
)

// A ScopeKey is a key of a request's _meta whose value names a conversation. It partitions what belongs to a
// principal and never authorises.
type ScopeKey struct {
	Name string
	// Exact says that each value stands for one agent's conversation. Its state survives a restart, and what a
	// person allowed there may be remembered. Otherwise several agents may share it.
	Exact bool
}

// knownScopeKeys are the keys that clients are known to send. Claude Code's is shared by the subagents of a session.
func knownScopeKeys() []ScopeKey {
	return []ScopeKey{{"threadId", true}, {"vscode.conversationId", true}, {"openai/session", true}, {"claudecode/sessionId", false}}
}

// scopeKeys are the keys of a host in the order in which they are looked for: further ones first. They replace
// known ones of the same name.
func scopeKeys(further []ScopeKey) []ScopeKey {
	return append(slices.Clone(further), slices.DeleteFunc(knownScopeKeys(), func(k ScopeKey) bool {
		return slices.ContainsFunc(further, func(f ScopeKey) bool { return f.Name == k.Name })
	})...)
}

// ParseScopeKey reads NAME, NAME=shared or NAME=exact. What is not said to be exact is shared, which is the safe
// guess.
func ParseScopeKey(text string) (ScopeKey, error) {
	name, kind, given := strings.Cut(text, "=")
	key := ScopeKey{Name: name, Exact: kind == "exact"}
	switch {
	case name == "" || given && kind != "exact" && kind != "shared":
		return key, fmt.Errorf("%q is no scope key: give the name of a key of _meta, with =exact if its values stand for one agent's conversation each, or =shared", text)
	case name == metaHandle || name == "progressToken" || strings.HasPrefix(name, "io.modelcontextprotocol/"):
		return key, fmt.Errorf("the scope key %s has a meaning of its own in _meta", name)
	}
	return key, nil
}

// argumentSession is the argument by which a call names its session, where [Config.SessionArgument] says so.
const argumentSession = "session"

// takesSession reports whether a tool has the argument of the session beside its own.
func (h *Host) takesSession(d *builtin.Def) bool {
	return h.cfg.SessionArgument && d.Schema.Properties[argumentSession] == nil
}

// shown is a tool as clients see it.
func (h *Host) shown(d *builtin.Def) *builtin.Def {
	if !h.takesSession(d) {
		return d
	}
	schema, def := *d.Schema, *d
	schema.Properties = maps.Clone(schema.Properties)
	if schema.Properties == nil {
		schema.Properties = map[string]*jsonschema.Schema{}
	}
	schema.Properties[argumentSession] = &jsonschema.Schema{
		Type: "string",
		Description: `The session this call belongs to. Pass "` + newHandle + `" in the first call; its result names the session, which you pass in every further call. ` +
			`Leave it out if you were not given one. Never make one up.`,
	}
	schema.PropertyOrder = append(slices.Clip(schema.PropertyOrder), argumentSession)
	def.Schema = &schema
	return &def
}

// nameSession lets the argument of the session count as the handle in _meta, which goes first.
func (h *Host) nameSession(m *wire.Envelope, message []byte) {
	if !h.cfg.SessionArgument || m.Method != wire.MethodCall || m.Params.Meta[metaHandle] != nil {
		return
	}
	var call struct {
		Params struct {
			Arguments map[string]json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	var handle string
	if json.Unmarshal(message, &call) != nil || json.Unmarshal(call.Params.Arguments[argumentSession], &handle) != nil || handle == "" {
		return // what is wrong with the arguments is said when they are bound
	}
	if d, err := h.lookUp(m.Params.Name); err != nil || !h.takesSession(d) {
		return
	}
	if m.Params.Meta == nil {
		m.Params.Meta = map[string]any{}
	}
	m.Params.Meta[metaHandle] = handle
}

// withoutSession takes the argument of the session off, which the tool does not know.
func (h *Host) withoutSession(tool string, args json.RawMessage) json.RawMessage {
	if d, err := h.lookUp(tool); err != nil || !h.takesSession(d) {
		return args
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil || fields[argumentSession] == nil {
		return args
	}
	delete(fields, argumentSession)
	rest, err := json.Marshal(fields)
	if err != nil {
		return args
	}
	return rest
}

// tellSession names a new session in the text of a reply, for a model that reads nothing else.
func (h *Host) tellSession(r Reply) Reply {
	if h.cfg.SessionArgument && r.Session != "" {
		r.Text += fmt.Sprintf("\n\n[The session of this call is %s: pass it as %q in further calls.]", r.Session, argumentSession)
	}
	return r
}
