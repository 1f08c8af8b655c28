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

// metaLongest lets Claude Code hand a model results up to this many characters. Of longer ones, without it of more than 50,000, it shows
// the first 2,000 as JSON and keeps the rest in a file of its own: more than half of the largest page of a Read.
const metaLongest = "anthropic/maxResultSizeChars"

// metaAlwaysLoad makes Claude Code show a tool to its model at once, and not only when the model has searched for it. Without it, it was
// seen to show none (2.1.328). metaSearchHint is found by a search of clients that defer the tool all the same.
const (
	metaAlwaysLoad = "anthropic/alwaysLoad"
	metaSearchHint = "anthropic/searchHint"
)

// toMCP describes a tool to clients. All four hints are always given: clients assume the worst of a missing one.
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

// toResult returns a reply as MCP carries it: the text for the model, and the structure for programs. A text that was cut names
// the path of the whole. A resource_link would add nothing, and clients fail at one: the helpers of Anthropic's SDK
// throw the result away, and LangChain hands the model's API a file:// address.
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

// attachSession adds to a result the handle of the session that was made for its call, if one was.
func attachSession(result *mcp.CallToolResult, session string) *mcp.CallToolResult {
	if session != "" {
		result.Meta = &mcp.Meta{AdditionalFields: map[string]any{scope.MetaHandle: session}}
		result.StructuredContent = withSession(result.StructuredContent, session)
	}
	return result
}

// withSession adds the handle of a new session to what programs learn from a result.
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
