package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
)

func TestStructuredTo(t *testing.T) {
	for name, want := range map[string]bool{
		"":                              true,
		"mcp":                           true,
		"example-client":                true, // holds "amp", but not as a word
		"inspector-cli":                 true,
		"claude-code":                   false,
		"claude-ai":                     false,
		"codex-mcp-client":              false,
		"Visual Studio Code - Insiders": false,
		"cursor-vscode":                 false,
		"opencode":                      false,
		"kilo":                          false,
		"kimi-code":                     false,
		"@librechat/api-client":         false,
		"gemini-cli-mcp-client":         false,
		"Zed":                           false,
		"@langchain/mcp-adapters":       false,
		"mcp-proxy":                     false,
		"mcp-hub":                       false,
		"github-example":                true,
	} {
		if got := structuredAuto.to(clientInfo{Name: name}, nil); got != want {
			t.Errorf("%q: %v", name, got)
		}
		if structuredAuto.to(clientInfo{Name: name, Views: true}, nil) {
			t.Errorf("%q: gets the structure although it shows views", name)
		}
		if !structuredAlways.to(clientInfo{Name: name, Views: true}, nil) ||
			structuredNever.to(clientInfo{Name: name}, nil) {
			t.Errorf("%q: always or never is not heeded", name)
		}
	}
	if view := (&builtin.Def{View: json.RawMessage("{}")}); !structuredNever.to(clientInfo{Views: true}, view) ||
		structuredNever.to(clientInfo{}, view) {
		t.Error("a view gets no structure, or a client without views does")
	}
}

func TestParseStructured(t *testing.T) {
	for text, want := range map[string]Structured{"auto": structuredAuto, "always": structuredAlways,
		"never": structuredNever} {
		if got, err := ParseStructured(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := ParseStructured(""); err == nil || !strings.Contains(err.Error(), "auto, always or never") {
		t.Error(err)
	}
}

// TestModelGetsTheText holds that a client which would show a model the structure instead of the text gets none, in both eras.
func TestModelGetsTheText(t *testing.T) {
	t.Parallel()
	const views = `{"extensions":{"io.modelcontextprotocol/ui":{}}}`
	initialize := func(name, capabilities string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":%q,"version":"1"}}}`, capabilities, name)
	}
	modern := func(name, capabilities string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"},"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}}}`, name, capabilities)
	}
	for _, test := range []struct {
		name       string
		lines      []string
		structured bool
	}{
		{"a session of Claude Code", []string{initialize("claude-code", "{}"), toolCall(1, "Read", `{"file_path":"a.txt"}`)}, false},
		{"a session of a program", []string{initialize("test", "{}"), toolCall(1, "Read", `{"file_path":"a.txt"}`)}, true},
		{"a call of Codex", []string{modern("codex-mcp-client", "{}")}, false},
		{"a call of a program", []string{modern("test", "{}")}, true},
		{"a session of a client that shows views", []string{initialize("test", views), toolCall(1, "Read", `{"file_path":"a.txt"}`)}, false},
		{"a call of a client that shows views", []string{modern("test", views)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := startPipe(t, map[string]string{"a.txt": "the text\n"})
			var last string
			for _, line := range test.lines {
				c.send(line)
				raw, err := c.out.ReadBytes('\n')
				if err != nil {
					t.Fatal(err)
				}
				last = string(raw)
			}
			if !strings.Contains(last, "the text") || strings.Contains(last, "structuredContent") != test.structured {
				t.Error(last)
			}
		})
	}
}

// TestNoLinks holds that a result is text and images alone, also where the whole of it was kept: clients fail at other content.
func TestNoLinks(t *testing.T) {
	r := Reply{Result: builtin.Result{Text: "cut", Images: []builtin.Image{{MIME: "image/png", Data: []byte("x")}},
		SavedPath: "/kept"}}
	for i, content := range toResult(r).Content {
		switch content.(type) {
		case mcp.TextContent, mcp.ImageContent:
		default:
			t.Errorf("content %d is %T", i, content)
		}
	}
}
