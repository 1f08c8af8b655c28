package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Structured says who gets the structure of a result, such as the exit code of a command, beside its text.
//
// MCP means structuredContent to say what the text says. Ours does not repeat it, since that would double every file that
// is read. Claude Code, Codex and VS Code give a model the structure alone when there is one: it would see where a file
// lies, and not a line of it (anthropics/claude-code#54450, microsoft/vscode#290063).
type Structured string

const (
	// StructuredAuto, the default, is for all but the clients that are known to work for a model.
	StructuredAuto Structured = ""
	// StructuredAlways is for every client, StructuredNever for none.
	StructuredAlways Structured = "always"
	StructuredNever  Structured = "never"
)

// ParseStructured reads auto, always or never.
func ParseStructured(text string) (Structured, error) {
	switch s := Structured(text); s {
	case StructuredAlways, StructuredNever:
		return s, nil
	case "auto":
		return StructuredAuto, nil
	}
	return "", fmt.Errorf("%q does not say who gets structured results: give auto, always or never", text)
}

// modelClients are words in the names of clients that work for a model, as they give them in clientInfo:
// "claude-code", "claude-ai", "codex-mcp-client", "Visual Studio Code - Insiders", "cursor-vscode", "opencode".
var modelClients = []string{
	"amp", "antigravity", "augment", "chatgpt", "claude", "cline", "codex", "copilot", "crush", "cursor", "devin", "droid",
	"gemini", "goose", "jetbrains", "junie", "kilo", "kiro", "librechat", "openai", "opencode", "qwen", "roo", "trae",
	"visual", "vscode", "warp", "windsurf", "zed",
}

// to reports whether a client of this name gets the structure of results. A client without a name is a program.
func (s Structured) to(name string) bool {
	if s != StructuredAuto {
		return s == StructuredAlways
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	return !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(modelClients, word) })
}

// clientName is what the client of a call calls itself: in the call, or when its session began.
func clientName(ctx context.Context, req mcp.CallToolRequest) string {
	if meta := req.Params.Meta; meta != nil {
		if info, ok := meta.AdditionalFields[mcp.MetaKeyClientInfo].(map[string]any); ok {
			name, _ := info["name"].(string)
			return name
		}
	}
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		return s.GetClientInfo().Name
	}
	return ""
}
