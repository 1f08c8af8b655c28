package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// A Completion asks for values of an argument of a prompt or of a resource template, by the names that clients use.
type Completion struct {
	Prompt   string `json:",omitempty"`
	Template string `json:",omitempty"`
	Argument mcp.CompleteArgument
	Context  mcp.CompleteContext
}

// maxCompleted is how many values a completion has.
const maxCompleted = 100

// Complete returns the plan to complete an argument. The result has a [mcp.Completion] in Passed. Only what is listed
// is completed.
func (c Consults) Complete(env *builtin.Env, of Completion) (builtin.Plan, error) {
	var s *server
	var effect guard.CallTool
	params := map[string]any{"argument": of.Argument}
	r := request{method: "completion/complete", params: params, idempotent: true, parallel: true}
	if i := slices.IndexFunc(c.Prompts(), func(p Prompt) bool { return p.Name == of.Prompt }); of.Prompt != "" &&
		i >= 0 {
		p := c.Prompts()[i]
		s, effect = p.server, guard.CallTool{Tool: p.own.name, Reads: "prompt"}
		params["ref"] = map[string]string{"type": "ref/prompt", "name": p.own.name}
		r.id, r.pin = p.own.id(), p.own.pin
	} else if i := slices.IndexFunc(c.Templates(),
		func(t Template) bool { return t.URITemplate.Raw() == of.Template }); of.Template != "" && i >= 0 {
		var err error
		if s, err = c.g.server(c.Templates()[i].Server); err != nil {
			return builtin.Plan{}, err
		}
		own := strings.TrimPrefix(of.Template, Scheme+s.Name+"/")
		effect = guard.CallTool{Tool: own, Reads: "resource"}
		params["ref"] = map[string]string{"type": "ref/resource", "uri": own}
	} else {
		return builtin.Plan{}, errors.New("there is no such prompt or template: prompts/list and resources/templates/list " +
			"list them")
	}
	if len(of.Context.Arguments) > 0 {
		params["context"] = of.Context
	}
	effect.Listed = s.Trust != Project // arguments can send data of the caller to the server
	return caller{c.g, env, s}.plan(effect, r, completed), nil
}

// completed converts a response to completion/complete.
func completed(_ context.Context, _ *builtin.Env, raw json.RawMessage) (builtin.Result, error) {
	var r struct{ Completion mcp.Completion }
	if err := json.Unmarshal(raw, &r); err != nil {
		return builtin.Result{}, fmt.Errorf("cannot decode its completion: %w", err)
	}
	found := r.Completion
	found.HasMore = found.HasMore || len(found.Values) > maxCompleted
	found.Values = found.Values[:min(len(found.Values), maxCompleted)]
	for i := range found.Values {
		found.Values[i] = cleanText(found.Values[i], maxDescription)
	}
	return builtin.Result{Text: strings.Join(found.Values, "\n") + "\n", Passed: &found}, nil
}
