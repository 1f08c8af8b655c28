package mcpserver

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// pathFields are the tool arguments that name a file or a directory.
var pathFields = []string{"file_path", "notebook_path", "path"}

// hookInput returns the input of a call for hooks, with absolute paths as Claude Code gives them. Otherwise a relative
// name, "~/x" or "a/../b" would evade a hook that compares tool_input.file_path with a directory. A path that cannot be
// resolved is left unchanged, because the call will fail to plan.
func hookInput(policy *guard.Policy, input json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return input
	}
	changed := false
	for _, field := range pathFields {
		var name string
		if json.Unmarshal(fields[field], &name) != nil || name == "" {
			continue
		}
		path, err := policy.Resolve(name)
		if err != nil {
			continue
		}
		fields[field], _ = json.Marshal(wholePath(policy, name, path)) // a string always encodes
		changed = true
	}
	if !changed {
		return input
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return whole
}

// wholePath returns the absolute path of name without "..". It is as given, unless a symbolic link precedes a "..", so
// that cleaning the text would lead elsewhere.
func wholePath(policy *guard.Policy, name string, path guard.Path) string {
	if !strings.Contains(name, "..") {
		return path.String()
	}
	if plain, err := policy.Resolve(path.String()); err != nil || plain.Real() != path.Real() {
		return path.Real()
	}
	return path.String()
}

// hookResponse returns the result for PostToolUse hooks: the text and the structure that clients get, and fields under
// the names of Claude Code, which hooks written for it read.
func hookResponse(input json.RawMessage, effects []guard.Effect, r builtin.Result) (json.RawMessage, error) {
	response := map[string]any{"text": r.Text, "structured": r.Structured, "success": true}
	var named struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	if json.Unmarshal(input, &named) == nil && named.File+named.Notebook != "" {
		response["filePath"] = named.File + named.Notebook
	}
	for _, e := range effects {
		if e, ok := e.(interface {
			HookResponse(text string) map[string]any
		}); ok {
			maps.Copy(response, e.HookResponse(r.Text))
		}
	}
	return json.Marshal(response)
}
