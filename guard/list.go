package guard

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"toolhost/guard/internal/pathname"
	"toolhost/guard/internal/wildcard"
)

// A list holds the rules of one kind, of all sources, indexed for many.
type list struct {
	action Action
	// tools holds the rules on every call of a tool, by its name as written.
	tools map[string]*rule
	// families are the rules with a * in the name of the tool: mcp__server__part*.
	families []*rule
	params   map[string][]paramRule // by tool
	commands *commandRules
	// read and edit are the path rules; only holds the allow rules for one tool
	// that do not speak for the others, such as Write(p).
	read, edit *matcher
	only       map[string]*matcher
	domains    []string // of WebFetch(domain:…)
	// every is the deny or ask rule on all edits in the boundary: Edit, Edit(**).
	every *rule
}

type paramRule struct {
	rule        *rule
	name, value string
}

func newList(action Action, s pathname.Spelling) *list {
	return &list{
		action: action, tools: map[string]*rule{}, params: map[string][]paramRule{}, commands: newCommandRules(action),
		read: newMatcher(s), edit: newMatcher(s), only: map[string]*matcher{},
	}
}

// strict reports whether the list takes rights away, so that in doubt a rule
// holds.
func (l *list) strict() bool { return l.action != Allow }

// named returns the rule on every call of the tool, nil for none.
func (l *list) named(tool string) *rule {
	if r := l.tools[tool]; r != nil {
		return r
	}
	if r := l.tools["*"]; r != nil {
		return r
	}
	access := accessOf(tool)
	if access == writing && l.tools["Edit"] != nil {
		return l.tools["Edit"]
	}
	if access == reading || access == writing && l.strict() {
		if r := l.tools["Read"]; r != nil {
			return r
		}
	}
	if server, _, ok := cutServer(tool); ok && l.tools[server] != nil {
		return l.tools[server]
	}
	for _, r := range l.families {
		if r.spec == "" && wildcard.Text(r.tool, tool) {
			return r
		}
	}
	return nil
}

// cutServer splits mcp__server__tool into mcp__server and tool.
func cutServer(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return "", "", false
	}
	s, name, ok := strings.Cut(rest, "__")
	return "mcp__" + s, name, ok
}

// param returns the rule on an argument of the call.
func (l *list) param(tool string, args map[string]any) *rule {
	for _, key := range []string{tool, "*"} {
		for _, pr := range l.params[key] {
			arg, given := args[pr.name]
			if !given {
				continue
			}
			if text, ok := scalar(arg); ok && wildcard.Text(pr.value, text) {
				return pr.rule
			}
		}
	}
	return nil
}

var domainName = regexp.MustCompile(`^(\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*)$`)

// addDomain notes a domain that is not to be fetched from: commands are kept from it
// too.
func (l *list) addDomain(r *rule) error {
	name, domain, ok := parameter(r.spec)
	if !ok || name != "domain" || l.action != Deny {
		return nil
	}
	domain = strings.TrimSuffix(strings.ToLower(domain), ".")
	if !domainName.MatchString(domain) {
		return fmt.Errorf("the rule %q does not hold for commands: write a host name, *.name for those below it, or *", r.text)
	}
	l.domains = append(l.domains, domain)
	return nil
}

// scalar returns an argument as a rule would write it.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// anyChild stands for whatever a directory holds: no file has this name, so only
// a pattern for all of them matches it.
const anyChild = "/\x00"

// file returns the rule on a path, whichever of its names matches. For an allow
// list both must; a directory is allowed when everything in it is.
func (l *list) file(tool string, access fileAccess, given, real string, dir bool) *rule {
	for _, m := range l.matchers(tool, access) {
		if m.empty() {
			continue
		}
		g := l.match(m, given, dir)
		if g != nil && (l.strict() || real == given) {
			return g.rule
		}
		if g == nil && !l.strict() || real == given {
			continue
		}
		if r := l.match(m, real, dir); r != nil {
			return r.rule
		}
	}
	return nil
}

func (l *list) match(m *matcher, name string, dir bool) *pattern {
	p := m.match(name, dir)
	if p == nil && dir && !l.strict() {
		return m.match(name+anyChild, false)
	}
	return p
}

// matchers returns where the rules for such a call stand. A Read deny blocks
// writing too.
func (l *list) matchers(tool string, access fileAccess) [2]*matcher {
	switch {
	case access == reading:
		return [2]*matcher{l.read, l.only[tool]}
	case access == writing && l.strict():
		return [2]*matcher{l.edit, l.read}
	case access == writing:
		return [2]*matcher{l.edit, l.only[tool]}
	}
	return [2]*matcher{}
}

// hasPaths reports whether a rule speaks about files, of whatever form.
func (l *list) hasPaths() bool {
	return !l.read.empty() || !l.edit.empty() || l.tools["Read"] != nil || l.tools["Edit"] != nil
}
