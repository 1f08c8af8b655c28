package recipe

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// A taskfile is what Taskfile.yml holds.
type taskfile struct {
	Vars  map[string]any `yaml:"vars"`
	Tasks map[string]any `yaml:"tasks"`
}

// yamlAlias finds what stands for another part of a YAML text. A few of them multiply.
var yamlAlias = regexp.MustCompile(`(?m)(^|[\s\[,{:-])\*[A-Za-z0-9_]`)

// The bounds of a Taskfile: its size in bytes, and its aliases.
const (
	maxTaskfile = 256 << 10
	maxAliases  = 12
)

// Task returns what task runs for tasks of a Taskfile, none for "default". It is not all
// if there is too much to look at.
func Task(text string, names []string) (runs []Run, all bool) {
	if len(text) > maxTaskfile || len(yamlAlias.FindAllString(text, maxAliases+1)) > maxAliases {
		return nil, false
	}
	var file taskfile
	if yaml.Unmarshal([]byte(text), &file) != nil {
		return nil, true // task does not run it either
	}
	if len(names) == 0 {
		names = []string{"default"}
	}
	if when := shellValues(file.Vars); when != "" {
		runs = append(runs, Run{"(when it is read)", when})
	}
	reach(names, func(name string) (calls []string) {
		for _, key := range sortedKeys(file.Tasks) {
			if key == name || name == Any || aliased(file.Tasks[key], name) {
				run, more := file.run(key)
				runs, calls = append(runs, run), append(calls, more...)
			}
		}
		return calls
	})
	return runs, true
}

// run returns what one task runs, and which others it calls.
func (f taskfile) run(key string) (run Run, calls []string) {
	run = Run{Target: key, Text: commandsOf(f.Tasks[key])}
	calls = called(f.Tasks[key])
	if task, ok := f.Tasks[key].(map[string]any); ok {
		if vars, ok := task["vars"].(map[string]any); ok {
			run.Text += "\n" + shellValues(vars)
		}
		for _, member := range []string{"status", "preconditions"} {
			run.Text += "\n" + commandsOf(task[member])
		}
		calls = append(calls, called(task["deps"])...)
	}
	for from, v := range f.Vars {
		if value, ok := v.(string); ok {
			run.Text = strings.NewReplacer("{{."+from+"}}", value, "{{ ."+from+" }}", value).Replace(run.Text)
		}
	}
	return run, calls
}

// aliased reports whether a task goes by another name too.
func aliased(task any, name string) bool {
	t, _ := task.(map[string]any)
	list, _ := t["aliases"].([]any)
	for _, item := range list {
		if item == name {
			return true
		}
	}
	return false
}

// shellValues returns the commands whose output variables hold.
func shellValues(vars map[string]any) string {
	var lines []string
	for _, name := range sortedKeys(vars) {
		if v, ok := vars[name].(map[string]any); ok {
			lines = append(lines, commandsOf(v))
		}
	}
	return strings.Join(lines, "\n")
}

// called returns the tasks that the commands of one call, or that one needs.
func called(v any) (names []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			names = append(names, called(item)...)
		}
	case map[string]any:
		if task, ok := v["task"].(string); ok {
			names = append(names, task)
		}
		names = append(names, called(v["cmds"])...)
	}
	return names
}
