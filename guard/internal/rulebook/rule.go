package rulebook

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"toolhost/guard/settings"
)

// serverName is the name this host is usually registered under with its
// clients. A deny or ask of mcp__toolhost__Bash is meant for our Bash.
const serverName = "toolhost"

// A Rule is one entry of permissions.allow, ask or deny, taken apart.
type Rule struct {
	Text   string // as written
	Source string // "file:line", "--deny"
	Spec   string // what stands in the parentheses; empty for every call
	tool   string // "Bash", "mcp__github__*", "*"
	file   string // where carve-outs reach
	root   string // what "/p" is relative to; empty for each root
}

// meant returns the rule as it should have been written.
func (r Rule) meant() string {
	if r.Spec == "" {
		return r.tool
	}
	return r.tool + "(" + r.Spec + ")"
}

var toolName = regexp.MustCompile(`^[A-Za-z_*][A-Za-z0-9_.*-]*$`)

// parseRule takes an entry apart: Tool or Tool(specifier). Tool(), Tool(*) and
// Tool mean every call. On an error the rule holds what could be made out.
func parseRule(e settings.Entry) (Rule, error) {
	r := Rule{Text: e.Text, file: e.File, root: e.Root, Source: e.Where()}
	text := strings.TrimSpace(e.Text)
	name, spec, open := strings.Cut(text, "(")
	r.tool = strings.TrimSpace(name)
	if !toolName.MatchString(r.tool) {
		return r, fmt.Errorf("%q is not a rule: write Tool or Tool(specifier)", e.Text)
	}
	if !open {
		return r, nil
	}
	closed := strings.HasSuffix(spec, ")")
	r.Spec = strings.TrimSpace(strings.TrimSuffix(spec, ")"))
	if strings.HasPrefix(strings.TrimLeft(strings.TrimSuffix(spec, ")"), " "), r.Spec+" ") && quotesNext(r.Spec) {
		r.Spec += " " // of the name, which a backslash says
	}
	if r.Spec == "*" {
		r.Spec = ""
	}
	if !closed {
		return r, fmt.Errorf("the rule %q has no closing parenthesis", e.Text)
	}
	if r.Spec == "" && strings.TrimSpace(strings.TrimSuffix(spec, ")")) == "" {
		return r, fmt.Errorf("the rule %q has nothing in its parentheses; write %s for every call", e.Text, r.tool)
	}
	if strings.ContainsRune(r.Spec, 0) {
		return r, errors.New("the rule contains a NUL character")
	}
	return r, nil
}

// An Access says how a tool touches files, and so which path rules it obeys.
type Access uint8

const (
	noFiles Access = iota
	// Reading and Writing are the ways of Read and Edit, and of the tools like them.
	Reading
	Writing
)

// accessOf returns how the tool of that name touches files.
func accessOf(tool string) Access {
	switch tool {
	case "Read", "Grep", "Glob", "LS", "NotebookRead":
		return Reading
	case "Edit", "Write", "NotebookEdit":
		return Writing
	}
	return noFiles
}

// ownTools are the tools of this host.
var ownTools = []string{"Read", "Edit", "Write", "Bash", "Glob", "Grep", "NotebookEdit", "TaskOutput", "TaskStop"}

// formerTools are tools of earlier versions of Claude Code, and of programs like it, with what they are called today.
var formerTools = map[string]string{
	"View": "Read", "MultiEdit": "Edit", "Replace": "Write", "GlobTool": "Glob", "GrepTool": "Grep",
	"BashOutput": "TaskOutput", "KillShell": "TaskStop", "KillBash": "TaskStop",
}

// former returns what the tool of a former name is called today, "" for any other.
func former(name string) string {
	for was, tool := range formerTools {
		if strings.EqualFold(name, was) {
			return tool
		}
	}
	return ""
}

// misspelt returns the tool that a name means which is no tool: it differs in case, or
// in one letter, is the former one, or has two of them in the other order (Raed). In a deny of files or
// commands it is taken for that tool: silence would leave a hole.
func misspelt(name string) string {
	if strings.ContainsAny(name, "*_") || slices.Contains(ownTools, name) || slices.Contains([]string{"Task", "Cd", "LS", "LSP"}, name) { // of other programs
		return ""
	}
	if tool := former(name); tool != "" {
		return tool
	}
	for _, tool := range ownTools {
		if strings.EqualFold(name, tool) || nearly(strings.ToLower(name), strings.ToLower(tool)) {
			return tool
		}
	}
	return ""
}

// nearly reports whether a becomes b when one letter is put in, taken out or replaced,
// or when two neighbours change places.
func nearly(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	rest, other := a[i:], b[i:]
	switch {
	case len(a)+1 == len(b):
		return rest == other[1:]
	case len(a) != len(b) || rest == "":
		return false
	}
	return rest[1:] == other[1:] || len(rest) > 1 && rest[0] == other[1] && rest[1] == other[0] && rest[2:] == other[2:]
}

// parameter takes a specifier of the form parameter:value apart. "npm:*" is the
// old form of "npm *" as well; which of the two is meant shows when a call has
// such a parameter.
func parameter(spec string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(spec, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" || value == "" {
		return "", "", false
	}
	for i := range len(name) {
		c := name[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "", "", false
		}
	}
	return name, value, true
}
