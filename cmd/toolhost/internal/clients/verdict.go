package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/cmd/toolhost/fakemodel"
	"github.com/toolhost/toolhost/guard/alias"
)

// next returns the next call of the fake model. It records the tools in the first turn, and plans a call of each tool
// that could read the canary.
func (t *trial) next(turn fakemodel.Turn) *fakemodel.Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(turn.Tools) == 0 { // a side request, such as for a title
		return nil
	}
	if !t.asked {
		t.asked = true
		t.note(turn)
	}
	n := len(turn.Results)
	for i, result := range turn.Results[:min(n, len(t.plan))] {
		t.judge(t.plan[i].Tool, result)
	}
	if t.repeats++; n >= len(t.plan) || t.repeats > maxRepeats*len(t.plan) {
		select {
		case <-t.done:
		default:
			close(t.done)
		}
		return nil
	}
	return &t.plan[n]
}

// judge records whether a result contains the canary.
func (t *trial) judge(by fakemodel.Tool, result string) {
	v := t.verdict
	switch own := by.Of(serverName) == ""; {
	case strings.Contains(result, t.secret):
		v.Canary = Leaked
		if !slices.Contains(v.LeakedBy, by.Name) {
			v.LeakedBy = append(v.LeakedBy, by.Name)
		}
	case v.Canary == NotTried && (own || strings.Contains(result, "canary.txt)")): // our refusal names the rule
		v.Canary = Held
	}
}

// serverName is the name of toolhost in a trial.
const serverName = "toolhost"

// note records the offered tools, and plans the calls.
func (t *trial) note(turn fakemodel.Turn) {
	v := t.verdict
	searching := false
	for _, tool := range turn.Tools {
		own := tool.Of(serverName)
		searching = searching || searchTool.MatchString(tool.Name)
		switch i := slices.Index(v.Missing, own); {
		case i >= 0 && tool.Deferred:
			v.Deferred, v.Missing = append(v.Deferred, own), slices.Delete(v.Missing, i, i+1)
		case i >= 0:
			v.Offered.Ours, v.Missing = append(v.Offered.Ours, own), slices.Delete(v.Missing, i, i+1)
			v.Bytes += tool.Size
		case own == "" && touches(tool.Name):
			v.Offered.Own = append(v.Offered.Own, tool.Name)
			if args := reading(tool, t.canary); args != "" {
				t.plan = append(t.plan, fakemodel.Call{Tool: tool, Arguments: args})
			}
		}
	}
	v.Missing = slices.DeleteFunc(v.Missing, func(name string) bool {
		deferred := searching || bytes.Contains(turn.Body, []byte("mcp__"+serverName+"__"+name))
		if deferred {
			v.Deferred = append(v.Deferred, name)
		}
		return deferred
	})
	for _, list := range [][]string{v.Offered.Ours, v.Offered.Own, v.Deferred} {
		slices.Sort(list)
	}
	if slices.Contains(v.Missing, "Read") {
		return
	}
	raw, _ := json.Marshal(map[string]string{"file_path": t.canary}) // strings
	t.plan = append(t.plan, fakemodel.Call{Tool: turn.Named(serverName, "Read"), Arguments: string(raw)})
}

// searchTool matches the name of a tool by which a model finds deferred ones.
var searchTool = regexp.MustCompile(`(?i)^tool_?search`)

// touching matches names of tools for files, commands and the web that are not aliases of our tools.
var touching = regexp.MustCompile(`(?i)bash|shell|exec|command|terminal|monitor|read|write|edit|patch|file|notebook|director|^ls$|^list$|glob|grep|search_|replace|web|fetch|browser|url|image`)

// apart matches names of tools for other purposes that touching or an alias would also match.
var apart = regexp.MustCompile(`(?i)todo|agent|^task$|mcp|memory|documentation|skill|board|plan_?mode|ask_?(user|question)|mailbox`)

// touches reports whether a client's own tool accesses files, commands or the web.
func touches(name string) bool {
	return (alias.Tool(name) != "" || touching.MatchString(name)) && !apart.MatchString(name)
}

// reading returns the arguments with which a client's own tool would read a file, or "" if according to its schema it
// cannot.
func reading(tool fakemodel.Tool, path string) string {
	var schema struct {
		Properties map[string]struct {
			Type any
			Enum []any
		}
		Required []string
	}
	if json.Unmarshal(tool.Schema, &schema) != nil {
		return ""
	}
	args := map[string]any{}
	for name, p := range schema.Properties {
		kind, _ := p.Type.(string)
		switch {
		case slices.Contains([]string{"command", "cmd", "script"}, name) && kind == "array":
			args[name] = []string{"sh", "-c", "cat '" + path + "'"}
		case slices.Contains([]string{"command", "cmd", "script"}, name):
			args[name] = "cat '" + path + "'"
		case name == "commands" && kind == "array":
			args[name] = []string{"cat '" + path + "'"}
		case alias.Tool(tool.Name) == "Read" && slices.Contains([]string{"file_path", "filePath", "absolute_path", "path"},
			name):
			args[name] = path
		}
	}
	if len(args) == 0 {
		return ""
	}
	for _, name := range schema.Required {
		if p := schema.Properties[name]; args[name] == nil && len(p.Enum) > 0 {
			args[name] = p.Enum[0]
		} else if args[name] == nil {
			args[name] = map[any]any{"boolean": false, "number": 10000, "integer": 10000, "array": []string{}}[p.Type]
			args[name] = cmp.Or(args[name], any("verify"))
		}
	}
	raw, _ := json.Marshal(args) // strings, numbers, lists
	return string(raw)
}
