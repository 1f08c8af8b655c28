package hook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/guard/settings"
)

// chosen is a hook that is to run, and where it is written.
type chosen struct {
	settings.Hook
	from string // "file:line"
	err  error  // why it cannot run
}

// label names the hook in a message. Arguments and queries are left out: they may
// hold a secret, and the message is for a model.
func (h chosen) label() string {
	name := ""
	if h.Type == "http" {
		name = bareURL(h.URL)
	} else if words := strings.Fields(h.Command); len(words) > 0 && !strings.Contains(words[0], "=") {
		name = words[0]
	}
	if name == "" {
		return "at " + h.from
	}
	return fmt.Sprintf("%q (%s)", clip(name, maxLabel), h.from)
}

// matching returns the hooks of set that apply to the call, each once. A group
// whose matcher cannot be read is one hook that cannot run: it may have been
// meant for this tool.
func (r *Runner) matching(set []settings.HookMatcher, c Call) []chosen {
	var hooks []chosen
	seen := map[string]bool{}
	for _, group := range set {
		ok, err := matches(group.Matcher, c.Tool)
		if err != nil {
			strict := slices.ContainsFunc(group.Hooks, func(h settings.Hook) bool { return h.Strict })
			hooks = append(hooks, chosen{Hook: settings.Hook{Strict: strict}, from: group.Source.Where(), err: err})
			continue
		}
		if !ok {
			continue
		}
		for _, h := range group.Hooks {
			// Maps are printed in the order of their keys.
			key := fmt.Sprintf("%q %q %q %t %q %q %q %q %t %t", h.Type, h.Command, h.Args, h.Args == nil,
				h.Shell, h.URL,
				h.Headers, h.AllowedEnvVars, h.Async, h.Uncontained)
			if seen[key] || h.If != "" && !r.match(h.If, c) {
				continue
			}
			seen[key] = true
			hooks = append(hooks, chosen{Hook: h, from: group.Source.Where()})
		}
	}
	return hooks
}

// isNames reports whether a matcher is a list of names.
var isNames = regexp.MustCompile(`^[A-Za-z0-9_, |-]*$`).MatchString

// asClients is the prefix that clients show before the names of our tools.
const asClients = "mcp__toolhost__"

// matches reports whether a matcher applies to a tool, by its own name or by the name that clients show. A list
// without names applies to all tools, as does the empty matcher, and the name of the server.
func matches(matcher, tool string) (bool, error) {
	if strings.TrimSpace(matcher) == "*" {
		return true, nil
	}
	if !isNames(matcher) {
		re, err := regexp.Compile(matcher)
		if err != nil {
			return false, fmt.Errorf("its matcher %q is not a regular expression in Go's syntax, which has no lookaround: %w",
				matcher, err)
		}
		return re.MatchString(tool) || re.MatchString(asClients+tool), nil
	}
	names := strings.FieldsFunc(matcher, func(c rune) bool { return c == '|' || c == ',' })
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	return len(names) == 0 || slices.ContainsFunc(names, func(n string) bool {
		return n == tool || n == asClients+tool || n == strings.TrimSuffix(asClients, "__")
	}), nil
}

// asRule matches a matcher that is a permission rule: the tool, and a text in parentheses.
var asRule = regexp.MustCompile(`^([A-Za-z_]\w*)\(.*\)$`)

// Idle says how to correct a matcher that matches none of these tools by mistake. It returns "" for a matcher that
// matches one, or that may be meant for tools of a client.
func Idle(matcher string, tools []string) (remedy string) {
	fires := func(tool string) bool {
		ok, err := matches(matcher, tool)
		return ok && err == nil
	}
	if slices.ContainsFunc(tools, fires) {
		return ""
	}
	if rule := asRule.FindStringSubmatch(matcher); rule != nil {
		return fmt.Sprintf(`a matcher is the name of a tool: write "matcher": %q, and "if": %q in the hook`,
			rule[1], matcher)
	}
	for name := range strings.FieldsFuncSeq(matcher, func(c rune) bool { return strings.ContainsRune("|, ^$()", c) }) {
		meant := alias.Tool(name)
		if i := slices.IndexFunc(tools, func(tool string) bool { return alias.Misspelt(name, tool) }); meant == "" && i >= 0 {
			meant = tools[i]
		}
		if slices.Contains(tools, meant) {
			return fmt.Sprintf("write %s instead of %s", meant, name)
		}
	}
	return ""
}
