package mcpserver

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// metaLongest makes Claude Code pass results of up to this many characters to a model. Of longer results (without it,
// of more than 50,000 characters) it shows the first 2,000 as JSON and keeps the rest in a file of its own. 50,000 is
// less than half of the largest page of a Read.
const metaLongest = "anthropic/maxResultSizeChars"

// metaAlwaysLoad makes Claude Code show a tool to its model at once, and not only after the model has searched for it.
// Without it, version 2.1.328 showed none. Clients that defer the tool all the same search in metaSearchHint.
const (
	metaAlwaysLoad = "anthropic/alwaysLoad"
	metaSearchHint = "anthropic/searchHint"
)

// toMCP describes a tool to clients. All four hints are always set: clients assume the worst of a missing hint.
func toMCP(d *builtin.Def) (mcp.Tool, error) {
	schema, name := d.RawSchema, cmp.Or(d.Listed, d.Name)
	if schema == nil {
		var err error
		if schema, err = json.Marshal(d.Schema); err != nil {
			return mcp.Tool{}, fmt.Errorf("the schema of %s: %w", d.Name, err)
		}
	}
	tool := mcp.NewToolWithRawSchema(name, d.Doc, schema)
	tool.Title = d.Title
	tool.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint:    mcp.ToBoolPtr(d.Hints.ReadOnly),
		DestructiveHint: mcp.ToBoolPtr(!d.Hints.ReadOnly && !d.Hints.Additive),
		IdempotentHint:  mcp.ToBoolPtr(d.Hints.Idempotent || d.Hints.ReadOnly),
		OpenWorldHint:   mcp.ToBoolPtr(!d.Hints.Closed),
	}
	meta := map[string]any{}
	if d.MaxResult > 0 {
		meta[metaLongest] = d.MaxResult
	}
	if d.Core || d.AlwaysLoad {
		meta[metaAlwaysLoad] = true
	}
	if d.Brief != "" && (d.Core || d.Server != "") {
		meta[metaSearchHint] = d.Brief
	}
	if len(meta) > 0 {
		tool.Meta = &mcp.Meta{AdditionalFields: meta}
	}
	return tool, nil
}

// toResult converts a reply to MCP: the text for the model, and the structure for programs. If the text was cut, it
// names the path of the whole text. A resource_link would add nothing, and clients fail on it: the helpers of
// Anthropic's SDK discard the result, and LangChain hands the model's API a file:// address.
func toResult(r Reply) *mcp.CallToolResult {
	r.Result = bounded(r.Result)
	result := &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(r.Text)},
		StructuredContent: r.Structured,
		IsError:           r.IsError,
	}
	for _, image := range r.Images {
		result.Content = append(result.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(image.Data), image.MIME))
	}
	return attachSession(result, r.Session)
}

// attachSession adds the handle of the session that was created for the call to its result, if there is one.
func attachSession(result *mcp.CallToolResult, session string) *mcp.CallToolResult {
	if session != "" {
		result.Meta = &mcp.Meta{AdditionalFields: map[string]any{scope.MetaHandle: session}}
		result.StructuredContent = withSession(result.StructuredContent, session)
	}
	return result
}

// withSession adds the handle of a new session to the structured result.
func withSession(structured any, handle string) any {
	fields := map[string]any{}
	if raw, err := json.Marshal(structured); err == nil {
		_ = json.Unmarshal(raw, &fields) // the handle replaces what is not an object
	}
	if fields == nil {
		fields = map[string]any{}
	}
	fields["session"] = handle
	return fields
}
