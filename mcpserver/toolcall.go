package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/builtin/jsontext"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
)

// A ToolCall is unwrapped when its name is looked up: the later stages see only the call of the inner tool.

const toolCallName = "ToolCall"

const toolCallDoc = `Calls a tool of another MCP server that is not in your list. Find its name and the schema of its arguments with ToolSearch first.
The call is that of the tool itself: the same rules apply, and a person may be asked. Tools in your list are called by their names and not through this one.`

// toolCallTool returns ToolCall as clients see it. It never runs.
func toolCallTool() *builtin.Def {
	return builtin.External(builtin.Def{
		Name: toolCallName, Title: "Call a found tool", Doc: toolCallDoc,
		Schema: &jsonschema.Schema{
			Type: "object", Required: []string{"name"}, PropertyOrder: []string{"name", "arguments"},
			Properties: map[string]*jsonschema.Schema{
				"name":      {Type: "string", Description: "the full name of the tool, such as mcp__SERVER__TOOL"},
				"arguments": {Type: "object", Description: "its arguments, by the schema that ToolSearch shows"},
			},
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		},
	}, false, func(context.Context, *builtin.Env, json.RawMessage) (builtin.Plan, error) {
		return builtin.Plan{}, errors.New("ToolCall was not unwrapped: this is a bug of toolhost, report it")
	})
}

// An innerCall is the call inside a ToolCall.
type innerCall struct {
	name string
	args json.RawMessage
}

// resolveCall is resolve for a call with arguments: for a ToolCall it returns the inner tool.
func (t *toolset) resolveCall(name string, args json.RawMessage) resolved {
	r := t.resolve(name)
	if r.err != nil || r.name != toolCallName {
		return r
	}
	c, err := openToolCall(args)
	if err != nil {
		return resolved{name: toolCallName, err: err, inside: c}
	}
	inner := t.resolve(c.name)
	switch {
	case inner.name == toolCallName:
		err = errors.New("ToolCall cannot call itself: give the name of the tool and its arguments")
	case inner.def != nil && !inner.foreign():
		err = fmt.Errorf("%s is a tool of this host: call it by its name, not through ToolCall", inner.name)
	case inner.err != nil:
		inner.name, err = c.name, inner.err
	}
	if err != nil {
		return resolved{name: inner.name, err: err, inside: c}
	}
	inner.inside = c
	return inner
}

// ownPrefix is the prefix of the tools of this host in clients that include the name of the server.
const ownPrefix = "mcp__toolhost__"

// openToolCall reads the arguments of a ToolCall. It returns what it has read even if it fails.
func openToolCall(raw json.RawMessage) (c *innerCall, err error) {
	c = &innerCall{args: json.RawMessage("{}")}
	wrong := func(format string, a ...any) (*innerCall, error) {
		return c, fmt.Errorf("ToolCall was not run, its arguments are wrong:\n- "+format, a...)
	}
	fields, err := uniqueMembers(unquoted(raw))
	if err != nil {
		return wrong(`%w; they are such as {"name": "mcp__SERVER__TOOL", "arguments": {}}`, err)
	}
	for name, value := range fields {
		switch name {
		case "name":
			if json.Unmarshal(value, &c.name) != nil {
				return wrong("name: expected a string, got %s", clipped(string(value)))
			}
		case "arguments":
			if c.args, err = toolArguments(value); err != nil {
				return wrong("arguments: %w", err)
			}
		default:
			return wrong("%q is not a parameter of ToolCall: put the arguments of the tool into \"arguments\"",
				clipped(name))
		}
	}
	if c.name = strings.TrimPrefix(c.name, ownPrefix); c.name == "" {
		return wrong("name is missing: give the full name of the tool, as ToolSearch shows it")
	}
	return c, nil
}

// toolArguments returns the arguments for a tool: an object, possibly sent as a string.
func toolArguments(value json.RawMessage) (json.RawMessage, error) {
	value = unquoted(value)
	if s := strings.TrimSpace(string(value)); s == "null" || s == "" {
		return json.RawMessage("{}"), nil
	}
	_, err := uniqueMembers(value)
	return value, err
}

// unquoted returns the JSON inside a JSON string, or value itself if it is not such a string.
func unquoted(value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) == nil && (strings.TrimSpace(text) == "" || json.Valid([]byte(text))) {
		return json.RawMessage(text)
	}
	return value
}

// uniqueMembers returns the members of an object. It returns an error if the value is not an object or has a duplicate
// member: a check between client and host could have read the other one.
func uniqueMembers(object json.RawMessage) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members == nil {
		return nil, fmt.Errorf("expected one JSON object, got %s", clipped(string(object)))
	}
	if name := jsontext.Repeated(object); name != "" {
		return nil, fmt.Errorf("%q occurs twice: give it once", clipped(name))
	}
	return members, nil
}

// maxChecked bounds the work of a check: the size of the schema times the size of the arguments, in bytes.
const maxChecked = 1 << 28

// checkArguments returns an error, with the schema, if the arguments of a call of another server's tool are wrong. It
// returns nil if a rule denies the tool or its schema cannot be applied. A schema with references is not applied: a
// recursive one would never end, and a short one can require exponential work.
func (r resolved) checkArguments(policy *guard.Policy, call *builtin.Call) error {
	if !r.foreign() {
		return nil
	}
	given, err := call.Input()
	if err != nil {
		return err
	}
	if ok, _ := policy.ToolEnabled(r.def.Name); !ok || r.def.Unlisted {
		return nil
	}
	var schema jsonschema.Schema
	if len(r.def.RawSchema)*len(given) > maxChecked || json.Unmarshal(r.def.RawSchema, &schema) != nil {
		return nil
	}
	// Encode the schema again, so that a reference is found however its key was spelled.
	if text, err := json.Marshal(&schema); err != nil || bytes.Contains(text, []byte(`"$ref":`)) ||
		bytes.Contains(text, []byte(`"$dynamicRef":`)) {
		return nil
	}
	checks, err := schema.Resolve(nil)
	var args any
	if err != nil || json.Unmarshal(given, &args) != nil {
		return nil
	}
	if err := checks.Validate(args); err != nil {
		return fmt.Errorf("%s was not run, its arguments are wrong:\n- %s\nIts schema: %s", r.def.Name,
			strings.Join(wrongFields(&schema, args, err), "\n- "), clippedTo(compacted(r.def.RawSchema), maxFound/2))
	}
	return nil
}

// wrongFields describes what is wrong with each argument, or all, the error for the whole, if no single argument is
// wrong.
func wrongFields(schema *jsonschema.Schema, args any, all error) (wrong []string) {
	given, _ := args.(map[string]any)
	for _, name := range schema.Required {
		if _, ok := given[name]; !ok {
			wrong = append(wrong, clipped(name)+" is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field, ok := schema.Properties[name]
		if !ok {
			if schema.AdditionalProperties != nil && schema.AdditionalProperties.Not != nil {
				wrong = append(wrong, fmt.Sprintf("%q is not a parameter", clipped(name)))
			}
			continue
		}
		checks, err := field.CloneSchemas().Resolve(nil)
		if err == nil {
			err = checks.Validate(given[name])
		}
		if err != nil {
			wrong = append(wrong, clipped(name)+": "+strings.TrimPrefix(err.Error(), "validating root: "))
		}
	}
	if len(wrong) == 0 {
		wrong = []string{strings.TrimPrefix(all.Error(), "validating root: ")}
	}
	return wrong
}

// judge returns the verdict on a call: the verdict on the tool or, if the call came in a ToolCall, the verdict of the
// rules on ToolCall if that is stricter.
func (r resolved) judge(policy *guard.Policy, in guard.Intent) guard.Verdict {
	v := policy.Judge(in)
	if r.inside == nil {
		return v
	}
	var names []any // a rule may give each
	for _, name := range []string{r.inside.name, r.def.Name, cmp.Or(r.def.Listed, r.def.Name)} {
		names = append(names, name, ownPrefix+name)
	}
	outer := policy.Judge(guard.Intent{Tool: toolCallName, Args: map[string]any{"name": names},
		Effects: []guard.Effect{guard.Compute{}}})
	if outer.Action < v.Action {
		return outer
	}
	return v
}

// noTool adds similar names of tools to the error for an unknown tool, as far as the caller may know them.
func (p *policies) noTool(principal string, who auth.Identity, name string, err error) error {
	if name == "" || !errors.Is(err, errNoTool) {
		return err
	}
	policy, now := p.of(principal), p.tools.now()
	near := now.nearest(name, maxNearest, func(d *builtin.Def) bool { return p.tools.visible(d, policy, who) })
	if len(near) > 0 && !strings.HasPrefix(near[0], "mcp__") {
		near = near[:1]
	}
	if len(near) > 0 {
		err = fmt.Errorf("%w (did you mean %s?)", err, strings.Join(near, ", "))
	}
	if s := now.serverOf(name); s.Down != "" && mayUse(who, s.Name) {
		err = fmt.Errorf("%w: the server %s cannot be called now: %s", err, s.Name,
			clippedTo(singleLine(s.Down), maxDown))
	}
	if len(now.Tools) > 0 && now.byName[toolSearchName].def != nil {
		err = fmt.Errorf("%w. ToolSearch finds tools", err)
	}
	return err
}

// serverOf returns the server to which the prefix of a tool name belongs.
func (s *snapshot) serverOf(tool string) foreignServer {
	i := slices.IndexFunc(s.Servers, func(o foreignServer) bool { return strings.HasPrefix(tool, "mcp__"+o.Name+"__") })
	if i < 0 {
		return foreignServer{}
	}
	return s.Servers[i]
}

// How long a call waits for a server that has not been asked for its tools yet, and how often it checks.
const (
	serverWait = 30 * time.Second
	serverLook = 20 * time.Millisecond
)

// awaitServer waits until the server of a tool has been asked for its tools, or cannot be asked. It calls late if it
// waits longer than serverTurn. The caller then resolves the tool again, also if there was nothing to wait for: the
// server may have listed it since the first time.
func awaitServer(ctx context.Context, h *Host, tool string, late func()) {
	unknown := func() bool { return h.tools.now().serverOf(tool).Unknown }
	if !unknown() {
		return
	}
	h.gateway.Look()
	defer time.AfterFunc(serverTurn, late).Stop()
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	tick := time.NewTicker(serverLook)
	defer tick.Stop()
	server := h.tools.now().serverOf(tool).Name
	failed := func(s gateway.Status) bool { return s.Name == server && s.Reason != "" }
	for unknown() && ctx.Err() == nil {
		if slices.ContainsFunc(h.gateway.Servers(), failed) {
			servers{h}.changed(h.gateway, false) // so that the error says why
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// maxNearest is the number of similar names that are shown for an unknown one.
const maxNearest = 3

// nearest returns at most n names that are similar to an unknown name, most similar first.
func (s *snapshot) nearest(name string, n int, visible func(*builtin.Def) bool) (near []string) {
	if len(name) > maxNear {
		return nil
	}
	plain := func(s string) string {
		return strings.ReplaceAll(strings.ToLower(strings.NewReplacer("/", "_", ".", "_", "-", "_", " ",
			"_").Replace(s)), "__", "_")
	}
	wanted, distances := plain(name), map[string]int{}
	for _, d := range s.all {
		far := distance(wanted, plain(d.Name))
		if d.Server != "" { // the name may lack the prefix, or that of the server
			_, short, _ := strings.Cut(strings.TrimPrefix(d.Name, "mcp__"), "__")
			far = min(far, distance(wanted, plain(strings.TrimPrefix(d.Name, "mcp__"))), distance(wanted, plain(short)))
		}
		if far <= 1+len(name)/3 && visible(d) {
			near, distances[d.Name] = append(near, d.Name), far
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return distances[a] - distances[b] })
	return near[:min(n, len(near))]
}
