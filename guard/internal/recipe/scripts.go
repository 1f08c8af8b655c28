package recipe

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Scripts returns what package managers run for names of scripts in the JSON of a project:
// "scripts" of package.json and composer.json, "tasks" of deno.json. A name may have
// wildcards. What runs before and after a script by its name is among it.
func Scripts(text string, names []string) (runs []Run) {
	var project struct {
		Scripts map[string]any `json:"scripts"`
		Tasks   map[string]any `json:"tasks"`
	}
	if json.Unmarshal([]byte(text), &project) != nil {
		return nil
	}
	wanted := slices.Clone(names)
	for _, name := range names {
		wanted = append(wanted, "pre"+name, "post"+name)
	}
	for _, scripts := range []map[string]any{project.Scripts, project.Tasks} {
		for _, name := range sortedKeys(scripts) {
			if slices.ContainsFunc(wanted, func(want string) bool { return matches(want, name) }) {
				runs = append(runs, Run{name, commandsOf(scripts[name])})
			}
		}
	}
	return runs
}

func matches(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "**", "*"), name)
	return pattern == name || pattern == Any || err == nil && ok
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// commandsOf returns the commands in a value: a text, a list, or what members that hold
// commands do.
func commandsOf(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimPrefix(v, "@")
	case []any:
		var lines []string
		for _, item := range v {
			lines = append(lines, commandsOf(item))
		}
		return strings.Join(lines, "\n")
	case map[string]any:
		var lines []string
		for _, member := range []string{"command", "cmd", "cmds", "sh", "defer"} {
			if inner, ok := v[member]; ok {
				lines = append(lines, commandsOf(inner))
			}
		}
		return strings.Join(lines, "\n")
	}
	return ""
}
