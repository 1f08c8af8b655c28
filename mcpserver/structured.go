package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Structured says who gets the structure of a result, such as the exit code of a command, in addition to its text.
//
// MCP means structuredContent to say what the text says. Ours does not repeat it, since that would double every file that
// is read. Claude Code, Codex, VS Code and Mastra give a model the structure alone when there is one: it would see where a
// file lies, and not a line of it (anthropics/claude-code#54450, microsoft/vscode#290063). LangChain gives it both as one
// string of JSON, in which every quote and line break of the text is escaped.
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
	return "", fmt.Errorf("%q does not say who gets structured results: give auto, always or never", text)
}

// modelClients are words in the names of clients that work for a model, as they give them in clientInfo:
// "claude-code", "claude-ai", "codex-mcp-client", "Visual Studio Code - Insiders", "cursor-vscode", "opencode".
var modelClients = []string{
	"amp", "antigravity", "augment", "chatgpt", "claude", "cline", "codex", "copilot", "crush", "cursor", "devin", "droid",
	"gemini", "goose", "jetbrains", "junie", "kilo", "kimi", "kiro", "langchain", "librechat", "mastra", "openai", "opencode", "qwen",
	"roo", "trae", "visual", "vscode", "warp", "windsurf", "zed",
	// Programs that a model runs, and those that any client may use: "mcp-proxy", "mcp-hub".
	"gateway", "hub", "mcporter", "proxy", "supergateway",
}

// viewsExtension is declared by clients that show the views of MCP Apps in a conversation with a model. It is the only
// way to recognise Mastra, whose client name is the name that its user gave the server.
const viewsExtension = "io.modelcontextprotocol/ui"

// to reports whether a client gets the structure of results. A client without a name is taken for a program.
func (s Structured) to(c clientInfo) bool {
	if s != structuredAuto {
		return s == structuredAlways
	}
	words := strings.FieldsFunc(strings.ToLower(c.Name), func(r rune) bool { return !unicode.IsLetter(r) })
	return !c.Views && !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(modelClients, word) })
}
