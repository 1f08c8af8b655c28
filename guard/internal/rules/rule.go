package rules

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settings"
)

// serverName is the name under which clients usually have this host. A deny or ask of mcp__toolhost__Bash means our
// Bash.
const serverName = "toolhost"

// A Rule is a parsed entry of permissions.allow, ask or deny.
type Rule struct {
	Text   string // as written
	Source string // "file:line", "--deny"
	Spec   string // what is in the parentheses; "" for every call
	tool   string // "Bash", "mcp__github__*", "*"
	file   string // the file of the rule, within which exceptions apply
	root   string // the directory that "/p" is relative to; "" for each root
	// Shared says that the rule denies a whole tool by its bare name in a file of Claude Code. Managed says that an
	// administrator wrote it.
	Shared, Managed bool
	// Own says that toolhost rules --remove can remove the rule, because it is in the user's settings of toolhost.
	Own    bool
	client bool // it is in a file of Claude Code
}

// NamesInner reports whether a rule on a program that runs another one also names that program: Bash(timeout 30
// pytest:*).
func (r *Rule) NamesInner(name string) bool {
	words := strings.Fields(strings.TrimSuffix(r.Spec, ":*"))
	return name != "" && len(words) > 1 && slices.ContainsFunc(words[1:],
		func(w string) bool { return path.Base(w) == name })
}

// intended returns the rule as it should have been written.
func (r Rule) intended() string {
	if r.Spec == "" {
		return r.tool
	}
	return r.tool + "(" + r.Spec + ")"
}

var toolName = regexp.MustCompile(`^[A-Za-z_*][A-Za-z0-9_.*-]*$`)

// parseRule parses an entry: Tool or Tool(specifier). Tool(), Tool(*) and Tool mean every call. If there is an error,
// the rule has what could be parsed.
func parseRule(e settings.Entry) (Rule, error) {
	r := Rule{Text: e.Text, file: e.File, root: e.Root, Source: e.Where(), Shared: e.Shared(),
		Managed: e.Kind == settings.Managed, Own: e.Kind == settings.User && !e.Client, client: e.Client}
	name, spec, open := strings.Cut(strings.TrimSpace(e.Text), "(")
	var disguised error
	r.tool, disguised = inASCII(strings.TrimSpace(name), e.Text)
	if r.tool = foreignName(r.tool); !toolName.MatchString(r.tool) {
		return r, fmt.Errorf("%q is not a rule: write Tool or Tool(specifier)", e.Text)
	}
	if !open {
		return r, disguised
	}
	return r, errors.Join(disguised, r.specify(spec))
}

// inASCII returns the tool whose name resembles a name with non-ASCII characters, and an error that says so. The
// names may also differ in one more letter.
func inASCII(name, text string) (string, error) {
	plain := strings.TrimSpace(pathname.Plain(name))
	if plain == name {
		plain = strings.Map(func(r rune) rune { return min(r, unicode.MaxASCII) }, name)
	}
	if plain == name {
		return name, nil
	}
	if tool := misspelt(plain); tool != "" {
		plain = tool
	}
	if !toolName.MatchString(plain) {
		return name, nil
	}
	return plain, fmt.Errorf("the rule %+q: the name of its tool is not ASCII; write %s", text, plain)
}

// specify parses what follows the first parenthesis.
func (r *Rule) specify(spec string) error {
	closed := strings.HasSuffix(spec, ")")
	r.Spec = strings.TrimSpace(strings.TrimSuffix(spec, ")"))
	if strings.HasPrefix(strings.TrimLeft(strings.TrimSuffix(spec, ")"), " "), r.Spec+" ") && quotesNext(r.Spec) {
		r.Spec += " " // an escaped space belongs to the name
	}
	if r.Spec == "*" {
		r.Spec = ""
	}
	if !closed {
		return fmt.Errorf("the rule %q has no closing parenthesis", r.Text)
	}
	if r.Spec == "" && strings.TrimSpace(strings.TrimSuffix(spec, ")")) == "" {
		return fmt.Errorf("the rule %q has nothing in its parentheses; write %s for every call", r.Text, r.tool)
	}
	if strings.ContainsRune(r.Spec, 0) {
		return errors.New("the rule contains a NUL character")
	}
	return nil
}

// several returns the rules of an entry that contains more than one, such as Read(a),Read(b), otherwise nil.
func several(text string) (rules []string) {
	depth, start := 0, 0
	end := func(i int) {
		if rule := strings.TrimSpace(text[start:i]); rule != "" {
			rules = append(rules, rule)
		}
		start = i + 1
	}
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 { // another rule may follow directly
				rules, start = append(rules, strings.TrimSpace(text[start:i+1])), i+1
			}
		case depth <= 0 && strings.ContainsRune(",;|& \t\n", c):
			end(i)
		}
	}
	end(len(text))
	for _, rule := range rules {
		name, _, open := strings.Cut(rule, "(")
		if !slices.Contains(ownTools, name) && misspelt(name) == "" || open && !strings.HasSuffix(rule, ")") {
			return nil
		}
	}
	if len(rules) < 2 {
		return nil
	}
	return rules
}

// An Access says how a tool accesses files, and so which path rules apply to it.
type Access uint8

const (
	noFiles Access = iota
	// Reading and Writing are how Read and Edit, and similar tools, access files.
	Reading
	Writing
)

// accessOf returns how a tool accesses files.
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
var ownTools = []string{"Agent", "Read", "Edit", "Write", "Bash", "Glob", "Grep", "NotebookEdit", "TaskOutput",
	"TaskStop", "ToolCall", "ToolSearch", "WebFetch", "WebSearch", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "ListMcpResources", "ReadMcpResource", "Skill"}

// misspelt returns the tool that a misspelt name means, or "": the name differs in case or in one letter, has two
// letters swapped (Raed), or is an alias. In a deny of files or commands such a name is taken for the tool, because
// ignoring it would leave a hole.
func misspelt(name string) string {
	if slices.Contains(ownTools, name) || name == "Task" { // which Claude Code reads too
		return ""
	}
	if tool := alias.Ruled(name); tool != "" {
		return tool
	}
	if strings.ContainsAny(name, "*_") || slices.Contains([]string{"Cd", "LS", "LSP"}, name) { // of other programs
		return ""
	}
	for _, tool := range ownTools {
		if alias.Misspelt(name, tool) {
			return tool
		}
	}
	return ""
}

// parameter splits a specifier of the form parameter:value. "npm:*" may also be the old form of "npm *"; which one is
// meant is known only when a call has such a parameter.
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
