package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// An added is a pattern, with the matcher to which it was added.
type added struct {
	matcher *Matcher
	pattern pattern
}

// idle returns an error if a "!" pattern has no effect, because no pattern before it in the same file can match.
// Otherwise it returns nil.
func (m *Matcher) idle(p pattern) error {
	if !p.carves || slices.ContainsFunc(m.rules, func(r *Rule) bool { return r.file == p.rule.file }) {
		return nil
	}
	return fmt.Errorf("the rule %q excepts nothing: the rule that it is an exception to must be before it, in the "+
		"same file", p.rule.Text)
}

// warnCancelled warns of rules that have no effect because of "!" patterns after them.
func (c *Compiler) warnCancelled(l *List) {
	cancelled := map[*Rule]bool{}
	var rules []*Rule
	for _, a := range c.added {
		r := a.pattern.rule
		if a.pattern.carves || !a.matcher.carving {
			continue
		}
		if _, known := cancelled[r]; !known {
			rules, cancelled[r] = append(rules, r), true
		}
		if a.matcher.Match(a.pattern.sample(), a.pattern.dirOnly) != nil {
			cancelled[r] = false
		}
	}
	c.added = nil
	for _, r := range rules {
		if cancelled[r] {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: permissions.%s: the rule %q matches nothing: a ! rule after it "+
				"takes back all that it says", r.Source, l.kind, r.Text))
		}
	}
}

// sample returns a path that the pattern matches, and that other patterns are unlikely to name.
func (p pattern) sample() string {
	const some = "toolhost-sample"
	name := p.base
	for _, e := range p.elements {
		if e == "**" {
			e = some
		}
		for pathname.HasMeta(e) {
			i := strings.IndexAny(e, `*?[\`)
			if i < 0 {
				break
			}
			rest := e[i+1:]
			switch e[i] {
			case '*':
				e = e[:i] + some + rest
			case '?':
				e = e[:i] + "t" + rest
			case '\\':
				return name + "/" + e // an escaped character cannot be distinguished from a wildcard
			default:
				end := strings.IndexByte(rest, ']')
				e = e[:i] + rest[:1] + rest[end+1:]
			}
		}
		name += "/" + e
	}
	return name
}
