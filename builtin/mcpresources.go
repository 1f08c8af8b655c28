package builtin

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/guard"
)

// resourceLimit is the longest result about resources, in characters.
const resourceLimit = 30_000

type listResourcesInput struct {
	Server string `json:"server,omitempty" jsonschema:"only the resources of this server"`
}

type readResourceInput struct {
	Server string `json:"server,omitempty" jsonschema:"the server of the resource; not with an address that begins with toolhost-mcp://"`
	URI    string `json:"uri" jsonschema:"the address of the resource, as ListMcpResources or a result gives it"`
}

// listResourcesTool lists the resources of other servers.
var listResourcesTool = declare(Tool[listResourcesInput]{
	Name: "ListMcpResources", Title: "List resources", Brief: "resources of other servers",
	OptIn: true, Hints: Hints{ReadOnly: true, Closed: true}, Limit: resourceLimit, SkipQueue: true,
	ConcurrencySafe: always[listResourcesInput],
	Plan: func(_ context.Context, env *Env, in listResourcesInput) (Plan, error) {
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Compute{}}},
			Run: func(ctx context.Context) (Result, error) {
				text, err := env.ListResources(ctx, in.Server)
				return Result{Text: text}, err
			},
		}, nil
	},
})

// readResourceTool reads a resource of another server.
var readResourceTool = declare(Tool[readResourceInput]{
	Name: "ReadMcpResource", Title: "Read a resource", Brief: "read a resource of another server",
	OptIn: true, Hints: Hints{ReadOnly: true}, Limit: resourceLimit,
	Refine:          func(s *jsonschema.Schema) { s.Properties["uri"].MinLength = jsonschema.Ptr(1) },
	ConcurrencySafe: always[readResourceInput],
	Plan: func(_ context.Context, env *Env, in readResourceInput) (Plan, error) {
		return env.ReadResource(in.Server, in.URI)
	},
})
