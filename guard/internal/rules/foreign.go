package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// Tools of other servers are called mcp__SERVER__TOOL here. Rules may have other names for them: the shortened name
// that is listed, the name with the prefix that clients add, or the name of the server.

// foreignPrefix starts the names of tools of other servers.
const foreignPrefix = "mcp__"

// ownPrefix is the prefix that clients add to the names of all tools that this host lists.
const ownPrefix = foreignPrefix + serverName + "__"

// foreignName returns the name in a rule with the characters replaced that names of tools cannot have, as the host
// replaces them in the names that servers use. Characters that separate rules stay.
func foreignName(name string) string {
	if !strings.HasPrefix(name, foreignPrefix) {
		return name
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("./@:+#~$%!=?^<>", r) {
			return '_'
		}
		return r
	}, name)
}

// names returns the names by which rules of the list may name a tool. An allow rule must have its full name, because
// two tools may have the same shortened name.
func (l *List) names(tool string) []string {
	if !l.strict() || !strings.HasPrefix(tool, foreignPrefix) {
		return []string{tool}
	}
	all := []string{tool, ownPrefix + tool}
	if short := alias.Listed(tool); short != "" {
		all = append(all, short, ownPrefix+short)
	}
	return all
}

// covers reports whether the name in a rule means a tool, its server, or several tools including this one.
func (l *List) covers(name, tool string) bool {
	server, _, foreign := cutServer(tool)
	if foreign && (name == server || l.strict() && strings.TrimPrefix(strings.TrimSuffix(name, "__"),
		ownPrefix) == server) {
		return true
	}
	return slices.ContainsFunc(l.names(tool), func(known string) bool {
		return name == known || strings.Contains(name, "*") && pathname.Text(name, known)
	})
}

// addForeign adds a rule whose name may mean tools of other servers.
func (l *List) addForeign(r *Rule) error {
	name := ownTool(r.tool)
	foreign := strings.HasPrefix(name, foreignPrefix)
	if !foreign && !strings.Contains(name, "*") {
		return nil
	}
	param, value, ok := foreignParam(r.Spec)
	switch {
	case r.Spec == "":
	case ok && l.strict():
		l.foreignParams = append(l.foreignParams, newParamRule(r, param, value))
	case foreign && l.strict():
		return fmt.Errorf("the rule %q matches nothing: it names no parameter; write %s(parameter:value), or %s for "+
			"every call",
			r.Text, r.tool, r.tool)
	case foreign:
		return fmt.Errorf("the rule %q allows nothing: leave the parentheses out; "+
			"only a deny or an ask can name a parameter of a tool of another server", r.Text)
	}
	if foreign || strings.HasPrefix(r.tool, foreignPrefix) {
		l.foreign = append(l.foreign, r)
	}
	return nil
}

// foreignParam splits a specifier of the form parameter:value. Parameters of other servers may have any name.
func foreignParam(spec string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(spec, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	return name, value, ok && name != "" && value != ""
}

// Idle returns warnings about rules on tools of other servers that cover none of these tools. served are the servers
// that are served here, and unsure reports whether the tools of a server are not known.
func (l *List) Idle(tools, served []string, unsure func(server string) bool) (warnings []string) {
	for _, r := range l.foreign {
		name := ownTool(r.tool)
		if !strings.HasPrefix(name, foreignPrefix) || slices.ContainsFunc(tools,
			func(tool string) bool { return l.covers(r.tool, tool) }) {
			continue
		}
		server, _, _ := strings.Cut(strings.TrimPrefix(name, foreignPrefix), "__")
		alike := func(other string) bool { return alias.Misspelt(server, other) }
		why := ""
		switch several := strings.Contains(server, "*"); {
		case several && slices.ContainsFunc(served, unsure), !several && unsure(server):
		case several, slices.Contains(served, server):
			why = l.meant(name, tools)
		case !r.client || slices.ContainsFunc(served, alike): // a client's file has rules for the client's own servers too
			why = fmt.Sprintf(": no server %q is configured; `toolhost mcp list` shows the servers", server)
		}
		if why != "" {
			warnings = append(warnings, fmt.Sprintf("%s: permissions.%s: the rule %q matches no known tool%s", r.Source,
				l.kind, r.Text, why))
		}
	}
	return warnings
}

// meant returns a text that says which tool the name in a rule probably means.
func (l *List) meant(name string, tools []string) string {
	for _, tool := range tools {
		if short := alias.Listed(tool); short != "" && short == name {
			return ": an allow rule needs the full name, " + tool
		}
	}
	for _, tool := range tools {
		if alias.Misspelt(name, tool) {
			return fmt.Sprintf(": did you mean %s?", tool)
		}
	}
	return "; `toolhost mcp list` shows the servers, and ToolSearch finds their tools"
}
