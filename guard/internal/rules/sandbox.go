package rules

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"

	"github.com/toolhost/toolhost/guard/settings"
)

// Withheld compiles the paths that commands must not access. Wildcards have the same meaning as in rules.
func (c *Compiler) Withheld(entries []settings.Entry, s pathname.Spelling) *Matcher {
	m := newMatcher(s)
	for _, e := range entries {
		r := &Rule{Text: e.Text, Source: e.Where()}
		p, err := compilePattern(c.absolute(e), "")
		if err != nil {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: sandbox: %q: %v; it guards the literal path", e.Where(), e.Text,
				err))
			p = literalPattern(c.absolute(e), "")
		}
		p.rule, p.bare = r, false
		if q, ok := c.aliased(p, true); ok {
			m.add(q)
		}
		for _, q := range c.copies(p) {
			m.add(q)
		}
		m.add(p)
	}
	return m
}

// Opened returns the real names of the paths that commands may access.
func (c *Compiler) Opened(entries []settings.Entry) []string {
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(c.absolute(e), "/**")
		if pathname.HasMeta(name) {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: sandbox.filesystem: %q opens nothing: name the directory, without "+
				"wildcards", e.Where(), e.Text))
			continue
		}
		real := c.Place(pathname.Native(name)).Real
		if err := Redirected(name, pathname.Slashed(real), c.Bounds); err != nil {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: sandbox.filesystem: %q: %v", e.Where(), e.Text, err))
			continue
		}
		out = append(out, real)
	}
	return out
}

// absolute returns the slash path of an entry of sandbox.filesystem. Unlike in rules, a slash at the start makes the
// path absolute, and other paths are relative to the directory of the settings.
func (c *Compiler) absolute(e settings.Entry) string {
	name := strings.TrimSpace(e.Text)
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		name = pathname.Slashed(c.Home.Given) + name[1:]
	case filepath.IsAbs(name):
		name = pathname.Slashed(name)
	case e.Root != "":
		name = pathname.Slashed(e.Root) + "/" + name
	default:
		name = pathname.Slashed(c.Roots[0].Given) + "/" + name
	}
	return path.Clean(name)
}

// Excluded compiles sandbox.excludedCommands, which have the form of Bash rules. A name without a wildcard means the
// program with any arguments.
func (c *Compiler) Excluded(entries []settings.Entry) *Commands {
	rules := newCommands(Allow)
	for _, e := range entries {
		text := strings.TrimSpace(e.Text)
		if !strings.Contains(text, "*") {
			text += " *"
		}
		if err := rules.add(&Rule{Text: e.Text, Spec: text, file: e.File, Source: e.Where()}); err != nil {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: sandbox.excludedCommands: %v", e.Where(), err))
		}
	}
	return rules
}
