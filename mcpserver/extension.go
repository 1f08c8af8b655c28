package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// An Extension holds a program's own tools, prompts and resources, in the types of the MCP library. The
// fixtures of the official conformance suite are an example.
type Extension struct {
	// Tools go through the same pipeline as the host's own: authentication, a scope, the gate, rules, hooks, the audit
	// log.
	Tools []ExtraTool
	// Prompts, resources and what Options adds are authenticated, but no rules apply to them.
	Prompts   []server.ServerPrompt
	Resources []server.ServerResource
	Templates []server.ServerResourceTemplate
	Options   []server.ServerOption
}

// An ExtraTool is a tool of an [Extension].
type ExtraTool struct {
	// Tool is the tool as clients see it. Its schema must be a JSON Schema. It is not used to check arguments.
	Tool mcp.Tool
	// Needs are the client capabilities, such as "sampling", without which a modern call is refused.
	Needs []string
	// Rounds says that the tool asks its client further questions and checks the answers itself.
	Rounds bool
	// Run is called when the gate lets the call run. The model sees its error, unless it is a [*ProtocolError].
	Run func(context.Context, ExtraCall) (*mcp.CallToolResult, error)
}

// An ExtraCall is one call of an [ExtraTool].
type ExtraCall struct {
	mcp.CallToolRequest
	// Args are the arguments after the pipeline, as one JSON object.
	Args json.RawMessage
	// Progress reports the progress of the call to the client. It is nil if the client did not ask for it.
	Progress func(lastLines string)
	// Notify sends a notification that belongs to the call, in order before its answer.
	Notify func(ctx context.Context, method string, params map[string]any)
	// Later makes the rest of the call a task, if the client follows tasks. It reports whether the call is one.
	Later func() bool
	// Ask puts a question to the client of a call that is a task, and waits for the answer.
	Ask func(context.Context, mcp.ElicitationParams) (*mcp.ElicitationResult, error)
}

// An extraRun carries a call of an extra tool through the pipeline, in the context. The pipeline does not know the
// request and result types of the library.
type extraRun struct {
	call    ExtraCall
	result  *mcp.CallToolResult
	failure *ProtocolError
}

type extraKey struct{}

// def describes the tool to the pipeline. Its effects are unknown.
func (t ExtraTool) def() (*builtin.Def, error) {
	var shown struct {
		InputSchema *jsonschema.Schema `json:"inputSchema"`
	}
	raw, err := json.Marshal(t.Tool)
	if err == nil {
		err = json.Unmarshal(raw, &shown)
	}
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t.Tool.Name, err)
	}
	d := builtin.Def{Name: t.Tool.Name, Title: t.Tool.Title, Doc: t.Tool.Description, Schema: shown.InputSchema}
	run := func(ctx context.Context, env *builtin.Env, args json.RawMessage) (builtin.Result, error) {
		now, ok := ctx.Value(extraKey{}).(*extraRun)
		if !ok {
			return builtin.Result{}, fmt.Errorf("%s is served over MCP only", t.Tool.Name)
		}
		now.call.Args, now.call.Progress = args, env.Progress
		task := taskOf(ctx)
		now.call.Later, now.call.Ask = func() bool { return task != nil && task.HandOver("") }, task.elicit
		result, err := t.Run(ctx, now.call)
		now.failure, _ = errors.AsType[*ProtocolError](err)
		if err != nil {
			return builtin.Result{}, err
		}
		now.result = result
		return builtin.Result{Text: textIn(result), IsError: result.IsError}, nil
	}
	return builtin.External(d, false, func(_ context.Context, env *builtin.Env,
		args json.RawMessage) (builtin.Plan, error) {
		return builtin.Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.CallTool{}}},
			Run:    func(ctx context.Context) (builtin.Result, error) { return run(ctx, env, args) },
		}, nil
	}), nil
}

// answer returns the tool's own result, unless a stage of the pipeline has refused the call or changed its text.
func (t *extraRun) answer(r Reply) *mcp.CallToolResult {
	if t.result == nil || r.Text != textIn(t.result) || r.IsError != t.result.IsError {
		return toResult(r)
	}
	return attachSession(t.result, r.Session)
}

func textIn(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// extend registers what does not go through the pipeline.
func (s *Server) extend(e Extension) {
	if len(e.Prompts) > 0 {
		s.mcp.AddPrompts(e.Prompts...)
	}
	if len(e.Resources) > 0 {
		s.mcp.AddResources(e.Resources...)
	}
	if len(e.Templates) > 0 {
		s.mcp.AddResourceTemplates(e.Templates...)
	}
}
