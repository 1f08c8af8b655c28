package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// Explain formats a verdict for a person: the decision, the deciding rule, and the verdict on each part
// of the call.
func Explain(v guard.Verdict) string {
	var b strings.Builder
	fmt.Fprintln(&b, v.Action)
	for _, line := range []struct{ name, value string }{
		{"rule", v.Rule}, {"source", v.Source}, {"reason", v.Reason}, {"next", v.Remedy}, {"allow", v.Person}, {"held", v.Held},
	} {
		if line.value != "" {
			fmt.Fprintf(&b, "%-7s %s\n", line.name, guard.OneLine(line.value))
		}
	}
	for _, p := range v.Parts {
		fmt.Fprintf(&b, "- %s: %s", guard.OneLine(p.What), p.Action)
		if p.Rule != "" {
			fmt.Fprintf(&b, " by %s", guard.OneLine(p.Rule))
		}
		if p.Source != "" {
			fmt.Fprintf(&b, " (%s)", guard.OneLine(p.Source))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// ToolsJSON returns the list of tools as clients get it.
func ToolsJSON(defs []*builtin.Def) ([]byte, error) {
	tools := []mcp.Tool{}
	for _, d := range defs {
		tool, err := toMCP(d)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return json.MarshalIndent(map[string]any{"tools": tools}, "", "  ")
}
