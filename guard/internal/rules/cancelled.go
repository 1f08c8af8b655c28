package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// An added pattern is one that was added to a matcher.
type added struct {
	matcher *Matcher
	pattern pattern
}

// idle says that a "!" pattern takes nothing back, nil if it may.
func (m *Matcher) idle(p pattern) error {
	if !p.carves || slices.ContainsFunc(m.rules, func(r *Rule) bool { return r.file == p.rule.file }) {
		return nil
	}
	return fmt.Errorf("the rule %q excepts nothing: the rule that it is an exception to must be before it, in the same file", p.rule.Text)
}

// warnCancelled warns of the rules that "!" patterns after them leave nothing to match.
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
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: permissions.%s: the rule %q matches nothing: a ! rule after it takes back all that it says", r.Source, l.kind, r.Text))
		}
	}
}

// sample returns a path that the pattern matches, and that no other is likely to name.
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
				return name + "/" + e // not told apart from wildcards by what follows
			default:
				end := strings.IndexByte(rest, ']')
				e = e[:i] + rest[:1] + rest[end+1:]
			}
		}
		name += "/" + e
	}
	return name
}
