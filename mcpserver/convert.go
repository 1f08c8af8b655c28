package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// metaLongest makes Claude Code pass results of up to this many characters to a model. Of longer results (without it,
// of more than 50,000 characters) it shows the first 2,000 as JSON and saves the rest in a file. 50,000 is
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
		result.Content = append(result.Content, mcp.NewImageContent(image.Base64(), image.MIME))
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

// Structured selects the clients that get structuredContent, such as the exit code of a command, in addition to the
// text.
//
// MCP expects structuredContent to have the same content as the text. Here it has not, since that would double every
// file that is read. Claude Code, Codex, VS Code and Mastra pass only the structure to the model if there is one: the
// model would see the path of a file and not its content (anthropics/claude-code#54450, microsoft/vscode#290063).
// LangChain passes both as one JSON string, in which every quote and newline of the text is escaped.
type Structured string

const (
	// structuredAuto, the default, selects all clients except those that are known to work for a model.
	structuredAuto Structured = ""
	// structuredAlways selects every client, structuredNever none.
	structuredAlways Structured = "always"
	structuredNever  Structured = "never"
)

// ParseStructured reads a value of [Config.Structured]: auto, always or never.
func ParseStructured(text string) (Structured, error) {
	switch s := Structured(text); s {
	case structuredAlways, structuredNever:
		return s, nil
	case "auto":
		return structuredAuto, nil
	}
	return "", fmt.Errorf("structured results: expected auto, always or never, got %q", text)
}

// modelClients are words in the clientInfo names of clients that pass results to a model:
// "claude-code", "claude-ai", "codex-mcp-client", "Visual Studio Code - Insiders", "cursor-vscode", "opencode".
var modelClients = []string{
	"amp", "antigravity", "augment", "chatgpt", "claude", "cline", "codex", "copilot", "crush", "cursor", "devin", "droid",
	"gemini", "goose", "jetbrains", "junie", "kilo", "kimi", "kiro", "langchain", "librechat", "mastra", "openai", "opencode", "qwen",
	"roo", "trae", "visual", "vscode", "warp", "windsurf", "zed",
	// Programs that models run, and proxies for any client: "mcp-proxy", "mcp-hub".
	"gateway", "hub", "mcporter", "proxy", "supergateway",
}

// viewsExtension is declared by clients that show the views of MCP Apps in a conversation with a model. It is the only
// way to recognise Mastra, which uses the configured name of the server as its client name.
const viewsExtension = "io.modelcontextprotocol/ui"

// showsViews reports whether the client of a request declares that it shows views.
func showsViews(ctx context.Context) bool {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		return info.ClientCapabilities != nil && info.ClientCapabilities.Extensions[viewsExtension] != nil
	}
	s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	return ok && s.GetClientCapabilities().Extensions[viewsExtension] != nil
}

// withView returns the _meta of a tool with its view.
func withView(meta *mcp.Meta, view json.RawMessage) *mcp.Meta {
	all := map[string]any{"ui": view}
	if meta != nil {
		maps.Copy(all, meta.AdditionalFields)
	}
	return &mcp.Meta{AdditionalFields: all}
}

// to reports whether a client gets structuredContent in addition to the text of a result. No other code decides that:
// SEP-3279 would let a result say which client each of the two is for. A client without a name counts as a program. A
// client that shows views gets the structure that the view of a tool needs.
func (s Structured) to(c clientInfo, def *builtin.Def) bool {
	if c.Views && def != nil && def.View != nil {
		return true
	}
	if s != structuredAuto {
		return s == structuredAlways
	}
	words := strings.FieldsFunc(strings.ToLower(c.Name), func(r rune) bool { return !unicode.IsLetter(r) })
	return !c.Views && !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(modelClients, word) })
}

// A clientInfo holds what determines how a client passes results on to a model: its name and whether it shows views.
type clientInfo struct {
	Name, Version string
	Views         bool
}

// clientOf returns the client of a call, as given in the call or at the start of its session.
func clientOf(ctx context.Context, req mcp.CallToolRequest) (c clientInfo) {
	if meta := req.Params.Meta; meta != nil {
		if info, ok := meta.AdditionalFields[mcp.MetaKeyClientInfo].(map[string]any); ok {
			c.Name, _ = info["name"].(string)
			c.Version, _ = info["version"].(string)
			declared, _ := meta.AdditionalFields[mcp.MetaKeyClientCapabilities].(map[string]any)
			extensions, _ := declared["extensions"].(map[string]any)
			_, c.Views = extensions[viewsExtension]
			return c
		}
	}
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		c.Name, c.Version = s.GetClientInfo().Name, s.GetClientInfo().Version
		_, c.Views = s.GetClientCapabilities().Extensions[viewsExtension]
	}
	return c
}

// passing lists how much of a result clients pass on to a model, by prefix of the client's name. From longer results
// they drop the middle for good (Claude Code's errors, Codex, Cline), or they write the result to a file of their own
// and show a part: Copilot shows 500 characters of 20,000. Claude Code takes its limit for other results from the
// description of a tool. Observed with Claude Code 2.0.0, 2.1.200 and 2.1.330, Codex 0.169.0, Copilot CLI 1.0.102,
// Gemini CLI 0.61.0, opencode 1.18.33, Qwen Code 0.24.4, Cline CLI 3.0.65, Kilo and Kimi Code 2.1.0.
//
// Qwen Code shows 2,000 characters of an error, in which the JSON of the call comes before that of the result.
var passing = []struct {
	name string
	builtin.ClientLimits
	repeats bool // errors contain the arguments of the call
}{
	{name: "claude", ClientLimits: builtin.ClientLimits{Error: 10_000}},
	{name: "codex", ClientLimits: builtin.ClientLimits{Result: 40_000}}, // 10,000 tokens
	{name: "copilot", ClientLimits: builtin.ClientLimits{Result: 19_500}},
	{name: "gemini", ClientLimits: builtin.ClientLimits{Result: 39_500}},
	{name: "opencode", ClientLimits: builtin.ClientLimits{Result: 50_000}},
	{name: "kilo", ClientLimits: builtin.ClientLimits{Result: 50_000}}, // 50 KiB
	{name: "kimi", ClientLimits: builtin.ClientLimits{Result: 49_500}},
	{name: "qwen", ClientLimits: builtin.ClientLimits{Result: 24_500, Error: 1_500}, repeats: true},
	// 8,000 of the JSON of a result, in which newlines and quotes count twice.
	{name: "@cline", ClientLimits: builtin.ClientLimits{Result: 6_500}},
}

// leastError is the lowest limit of an error, however long the arguments are, in characters.
const leastError = 700

// passes returns how much of a result the client passes on to a model, or other (in characters) if the client is not
// known. arguments is the length of the arguments of the call.
func (c clientInfo) passes(other, arguments int) builtin.ClientLimits {
	for _, p := range passing {
		if strings.HasPrefix(c.Name, p.name) {
			if p.repeats {
				p.Error = max(p.Error-arguments, leastError)
			}
			return p.ClientLimits
		}
	}
	return builtin.ClientLimits{Result: other}
}

// Limits of one message, call or result. Anything larger is refused with an error that says so.
const (
	// MaxMessage is the longest JSON-RPC message, in bytes.
	MaxMessage = transport.MaxMessage
	// maxArguments limits the arguments of one call, in bytes of JSON. The largest are those of Write.
	maxArguments = 24 << 20
	// maxResult limits the text and the images of one result, in bytes as sent. Only images of pages may reach it.
	maxResult = 16 << 20
)

// bind binds arguments that are not too long.
func bind(tool *builtin.Def, args json.RawMessage) (*builtin.Call, error) {
	if len(args) > maxArguments {
		return nil, fmt.Errorf("the arguments have %d bytes, the limit is %d: split the call, such as into one Write and "+
			"then Edits", len(args), maxArguments)
	}
	return tool.Bind(args)
}

// bounded drops the parts that make a result too long to send.
func bounded(r builtin.Result) builtin.Result {
	const base64 = 4.0 / 3 // the growth of an image by encoding
	size, fit := len(r.Text), 0
	for _, image := range r.Images {
		if size += int(float64(len(image.Data)) * base64); size <= maxResult {
			fit++
		}
	}
	if fit < len(r.Images) {
		r.Text += fmt.Sprintf("\n\n[%d of %d images were omitted: the limit of a result is %d bytes. Request fewer pages at "+
			"once.]", len(r.Images)-fit, len(r.Images), maxResult)
		r.Images = r.Images[:fit]
	}
	if len(r.Text) > maxResult {
		r = builtin.Result{IsError: true, Text: fmt.Sprintf("the result has %d bytes, the limit is %d: request less at once",
			len(r.Text), maxResult)}
	}
	return r
}
