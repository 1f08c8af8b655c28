package rules

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A Kind is the kind of a list of permissions, as named in the settings.
type Kind string

// The kinds of rules: Allow grants, the others restrict.
const (
	Deny  Kind = "deny"
	Ask   Kind = "ask"
	Allow Kind = "allow"
)

// A List holds the rules of one kind from all sources, indexed for large numbers of rules.
type List struct {
	kind Kind
	// tools has the rules on every call of a tool, by the name in the rule.
	tools map[string]*Rule
	// families has the rules with a * in the name of the tool: mcp__server__part*.
	families []*Rule
	params   map[string][]paramRule // by tool
	// foreign has all rules on tools of other servers, foreignParams those on an argument.
	foreign       []*Rule
	foreignParams []paramRule
	specs         map[string][]*Rule  // rules with a specifier that is neither a command nor a path, by tool
	only          map[string]*Matcher // the allow rules that apply to one tool only, such as Write(p)

	// Commands has the Bash rules, Read and Edit the path rules.
	Commands   *Commands
	Read, Edit *Matcher
	// Every is the deny or ask rule on all edits in the roots: Edit, Edit(**).
	Every *Rule
	// Domains are the domains in WebFetch(domain:…).
	Domains []string
}

func newList(kind Kind, s pathname.Spelling) *List {
	return &List{
		kind: kind, tools: map[string]*Rule{}, params: map[string][]paramRule{}, specs: map[string][]*Rule{},
		Commands: newCommands(kind),
		Read:     newMatcher(s), Edit: newMatcher(s), only: map[string]*Matcher{},
	}
}

// strict reports whether the rules restrict, so that a rule holds in case of doubt.
func (l *List) strict() bool { return l.kind != Allow }

// Named returns the rule on every call of the tool, or nil.
func (l *List) Named(tool string) *Rule {
	if r := l.tools[tool]; r != nil {
		return r
	}
	if r := l.tools["*"]; r != nil {
		return r
	}
	access := accessOf(tool)
	if access == Writing && l.tools["Edit"] != nil {
		return l.tools["Edit"]
	}
	if access == Reading || access == Writing && l.strict() {
		if r := l.tools["Read"]; r != nil {
			return r
		}
	}
	for _, r := range l.families {
		if r.Spec == "" && l.covers(r.tool, tool) {
			return r
		}
	}
	if !strings.HasPrefix(tool, foreignPrefix) {
		return nil
	}
	for _, r := range l.foreign {
		if r.Spec == "" && l.covers(r.tool, tool) {
			return r
		}
	}
	return nil
}

// Specified returns the rule whose specifier matches, or nil. It is for tools other than Bash and those on files.
func (l *List) Specified(tool string, matches func(specifier string) bool) *Rule {
	for _, r := range l.specs[tool] {
		if matches != nil && matches(r.Spec) {
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

var domainName = regexp.MustCompile(`^(\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*)$`)

// domainMeant returns an error for a rule on WebFetch that has a host or a URL without domain:. In a deny or ask rule
// it adds domain:.
func (l *List) domainMeant(tool string, r *Rule) error {
	host, isURL := strings.CutPrefix(r.Spec, "https://")
	if plain, ok := strings.CutPrefix(host, "http://"); ok {
		host, isURL = plain, true
	}
	host, _, _ = strings.Cut(host, "/")
	if _, _, ok := parameter(r.Spec); tool != "WebFetch" || ok && !isURL ||
		!domainName.MatchString(strings.TrimSuffix(strings.ToLower(host), ".")) {
		return nil
	}
	if l.strict() {
		r.Spec = "domain:" + host
	}
	return fmt.Errorf("the rule %q names no parameter; write WebFetch(domain:%s)", r.Text, host)
}

// addDomain adds the domain of a deny rule, from which commands are kept too.
func (l *List) addDomain(r *Rule) error {
	name, domain, ok := parameter(r.Spec)
	if !ok || name != "domain" || l.kind != Deny {
		return nil
	}
	domain = strings.TrimSuffix(strings.ToLower(domain), ".")
	if !domainName.MatchString(domain) {
		return fmt.Errorf("the rule %q does not hold for commands: write a host name, *.name for those below it, or *",
			r.Text)
	}
	l.Domains = append(l.Domains, domain)
	return nil
}

// Blind reports whether there is a rule on every Read.
func (l *List) Blind() bool { return l.tools["Read"] != nil }

// AnyChild stands for any name in a directory: no file has this name, so only a pattern for all names matches it.
const AnyChild = "/\x00"

// File returns the rule on a path. A deny or ask rule must match one of its names, an allow rule both. A directory is
// allowed if everything in it is.
func (l *List) File(tool string, access Access, given, real string, dir bool) *Rule {
	for _, m := range l.matchers(tool, access) {
		if m.Empty() {
			continue
		}
		g := l.match(m, given, dir)
		if g != nil && (l.strict() || real == given) {
			return g
		}
		if g == nil && !l.strict() || real == given {
			continue
		}
		if r := l.match(m, real, dir); r != nil {
			return r
		}
	}
	return nil
}

func (l *List) match(m *Matcher, name string, dir bool) *Rule {
	r := m.Match(name, dir)
	if r == nil && dir && !l.strict() {
		return m.Match(name+AnyChild, false)
	}
	return r
}

// matchers returns the matchers with the rules for such a call. A deny of Read also denies writing.
func (l *List) matchers(tool string, access Access) [2]*Matcher {
	switch {
	case access == Reading:
		return [2]*Matcher{l.Read, l.only[tool]}
	case access == Writing && l.strict():
		return [2]*Matcher{l.Edit, l.Read}
	case access == Writing:
		return [2]*Matcher{l.Edit, l.only[tool]}
	}
	return [2]*Matcher{}
}

// HasPaths reports whether any rule of any form is about files.
func (l *List) HasPaths() bool {
	return !l.Read.Empty() || !l.Edit.Empty() || l.tools["Read"] != nil || l.tools["Edit"] != nil
}
