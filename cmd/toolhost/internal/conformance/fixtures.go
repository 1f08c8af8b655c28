package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver"
)

// What the suite asks of the fixtures stands in the descriptions of its scenarios:
// https://github.com/modelcontextprotocol/conformance/tree/main/src/scenarios/server.

// askedTool is the fixture that a rule has asked, for the scenario about tampered answers.
const askedTool = "test_input_required_result_tampered_state"

const (
	testImage = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	testAudio = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

func fixtures() mcpserver.Extension {
	var tools []mcpserver.ExtraTool
	for _, some := range [][]mcpserver.ExtraTool{contentTools(), notifyingTools(), legacyAsking(), roundTools(),
		schemaTools(), taskTools()} {
		tools = append(tools, some...)
	}
	return mcpserver.Extension{
		Tools: tools, Prompts: prompts(), Resources: resources(), Templates: templates(),
		Options: []server.ServerOption{
			server.WithLogging(), server.WithCompletions(), server.WithPromptCapabilities(true),
			server.WithResourceCapabilities(true, true),
		},
	}
}

// emptyInput is the schema of a tool without arguments.
const emptyInput = `{"type":"object","properties":{},"additionalProperties":false}`

type runFunc = func(context.Context, mcpserver.ExtraCall) (*mcp.CallToolResult, error)

func tool(name, schema string, run runFunc) mcpserver.ExtraTool {
	return mcpserver.ExtraTool{Tool: mcp.NewToolWithRawSchema(name, "A fixture of the conformance suite.",
		json.RawMessage(schema)), Run: run}
}

// constant is a tool that always answers the same.
func constant(name string, isError bool, content ...mcp.Content) mcpserver.ExtraTool {
	return tool(name, emptyInput, func(context.Context, mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content, IsError: isError}, nil
	})
}

// deniable are tools of the host that no scenario calls.
var deniable = []string{"NotebookEdit", "TaskStop", "TaskOutput", "Glob", "Grep", "Edit", "Write", "Read", "Bash"}

// listChange is the tool that changes the list of tools: each call has the rules deny one more.
func listChange(rules string) mcpserver.ExtraTool {
	return tool("test_trigger_tool_change", emptyInput, func(context.Context,
		mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		text, err := os.ReadFile(rules)
		if err != nil {
			return nil, err
		}
		var now struct {
			Permissions map[string][]string `json:"permissions"`
		}
		if err := json.Unmarshal(text, &now); err != nil {
			return nil, err
		}
		now.Permissions["deny"] = deniable[:min(len(now.Permissions["deny"])+1, len(deniable))]
		return mcp.NewToolResultText("changed"), writeRules(rules, now.Permissions)
	})
}

// contentTools answer with each kind of content.
func contentTools() []mcpserver.ExtraTool {
	return []mcpserver.ExtraTool{
		constant("test_simple_text", false, mcp.NewTextContent("This is a simple text response for testing.")),
		constant("test_image_content", false, mcp.NewImageContent(testImage, "image/png")),
		constant("test_audio_content", false, mcp.NewAudioContent(testAudio, "audio/wav")),
		constant("test_embedded_resource", false, embedded("test://embedded-resource", "text/plain",
			"This is an embedded resource content.")),
		constant("test_multiple_content_types", false,
			mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(testImage, "image/png"),
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)),
		constant("test_error_handling", true, mcp.NewTextContent("This tool intentionally returns an error for testing")),
		{ // the call is refused before it runs, because the suite declares no such capability
			Tool: mcp.NewToolWithRawSchema("test_missing_capability", "Needs a client that samples.",
				json.RawMessage(emptyInput)),
			Needs: []string{"sampling"},
			Run: func(context.Context, mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("sampled"), nil
			},
		},
	}
}

func embedded(uri, kind, text string) mcp.EmbeddedResource {
	return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: text})
}

// notifyingTools send notifications while they run, without a pause: the last of them is the one that would
// be lost.
func notifyingTools() []mcpserver.ExtraTool {
	logs := func(ctx context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		if info := server.RequestProtocolInfoFromContext(ctx); info.Modern && info.LogLevel == "" {
			return mcp.NewToolResultText("nothing was logged, as nobody asked for it"), nil
		}
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			call.Notify(ctx, "notifications/message",
				map[string]any{"level": "info", "logger": "conformance", "data": text})
		}
		return mcp.NewToolResultText("Tool with logging executed successfully"), nil
	}
	progress := func(_ context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		for _, text := range []string{"begun", "half done", "done"} {
			if call.Progress != nil {
				call.Progress(text)
			}
		}
		return mcp.NewToolResultText("progress reported"), nil
	}
	changePrompts := func(ctx context.Context, _ mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		library := server.ServerFromContext(ctx)
		library.AddPrompt(mcp.NewPrompt("test_passing_prompt"), prompt())
		library.DeletePrompts("test_passing_prompt")
		return mcp.NewToolResultText("the list of prompts has changed"), nil
	}
	return []mcpserver.ExtraTool{
		tool("test_tool_with_logging", emptyInput, logs), tool("test_logging_tool", emptyInput, logs),
		tool("test_tool_with_progress", emptyInput, progress),
		tool("test_trigger_prompt_change", emptyInput, changePrompts),
	}
}

// schemaTools show that schemas reach clients whole, and that parameters in headers are checked.
func schemaTools() []mcpserver.ExtraTool {
	const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},
			"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
		"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`
	const headers = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`
	echo := func(_ context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(string(call.Args)), nil
	}
	return []mcpserver.ExtraTool{tool("json_schema_2020_12_tool", schema2020, echo),
		tool("test_custom_headers", headers, echo)}
}

func resources() []server.ServerResource {
	read := func(contents mcp.ResourceContents) server.ResourceHandlerFunc {
		return func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{contents}, nil
		}
	}
	const text, binary = "test://static-text", "test://static-binary"
	return []server.ServerResource{
		{
			Resource: mcp.NewResource(text, "static-text", mcp.WithResourceDescription("A static text."),
				mcp.WithMIMEType("text/plain")),
			Handler: read(mcp.TextResourceContents{URI: text, MIMEType: "text/plain",
				Text: "This is the content of the static text resource."}),
		},
		{
			Resource: mcp.NewResource(binary, "static-binary", mcp.WithResourceDescription("A static image."),
				mcp.WithMIMEType("image/png")),
			Handler: read(mcp.BlobResourceContents{URI: binary, MIMEType: "image/png", Blob: testImage}),
		},
	}
}

func templates() []server.ServerResourceTemplate {
	return []server.ServerResourceTemplate{{
		Template: mcp.NewResourceTemplate("test://template/{id}/data", "template",
			mcp.WithTemplateMIMEType("application/json")),
		Handler: func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			body, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json",
				Text: string(body)}}, err
		},
	}}
}
