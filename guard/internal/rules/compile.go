package rules

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settings"
)

// A Compiler turns the entries of the settings into lists.
type Compiler struct {
	Roots  []pathname.Place // what relative patterns are relative to, for allow
	Bounds []pathname.Place // the same for deny and ask: additional directories too
	Home   pathname.Place
	// Copy is a copy of CopyOf: a pattern for a file in CopyOf is one for its copy too. Zero: there is none.
	Copy, CopyOf pathname.Place
	// Warnings are problems that a person should correct, each with file and line.
	Warnings []string

	added []added // the patterns of the list that is being compiled

	room map[string]*int   // for what braces stand for, by file
	real map[string]string // resolved directories, to ask for each once
	lost map[string]bool   // of these, the ones that could not be resolved
}

// Compile makes the list of one kind. In doubt a rule that allows is left out, and one
// that denies holds.
func (c *Compiler) Compile(kind Kind, entries []settings.Entry, s pathname.Spelling) *List {
	l := newList(kind, s)
	for _, e := range entries {
		parts := several(e.Text)
		if parts == nil {
			c.warn(l, e, c.compile(l, e))
			continue
		}
		if c.warn(l, e, fmt.Errorf("%q holds %d rules; write each by itself, as an entry of its own", e.Text, len(parts))); !l.strict() {
			continue
		}
		for _, part := range parts {
			e.Text = part
			c.warn(l, e, c.compile(l, e))
		}
	}
	c.warnCancelled(l)
	return l
}

func (c *Compiler) warn(l *List, e settings.Entry, err error) {
	if err != nil {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: permissions.%s: %v", e.Where(), l.kind, err))
	}
}

func (c *Compiler) compile(l *List, e settings.Entry) error {
	r, err := parseRule(e)
	switch {
	case err == nil:
		return c.add(l, &r)
	case l.strict() && toolName.MatchString(r.tool): // silence would leave a hole
		return errors.Join(fmt.Errorf("%w; it is taken for %s", err, r.intended()), c.add(l, &r))
	}
	return err
}

func (c *Compiler) add(l *List, r *Rule) error {
	tool := r.tool
	var doubt error
	if name := misspelt(tool); name != "" {
		doubt = fmt.Errorf("the rule %q names no tool; %s was meant", r.Text, name)
		if !l.strict() {
			return doubt
		}
		if r.Spec != "" || strings.EqualFold(tool, name) || alias.Ruled(tool) != "" { // a whole tool is not taken away for a likeness
			tool = name
		}
	}
	switch server, _, _ := cutServer(tool); {
	case l.strict():
		if tool = ownTool(tool); alias.Ruled(tool) != "" {
			tool = alias.Ruled(tool)
		}
		if tool != r.tool && r.Spec == "" {
			setFirst(l.tools, r.tool, r) // of an extension, by that very name
		}
	case tool == "*":
		return fmt.Errorf("the rule %q would allow every tool; name the tools", r.Text)
	case strings.Contains(tool, "*") && (!strings.HasPrefix(tool, "mcp__") || strings.Contains(server, "*")):
		return fmt.Errorf("the rule %q has a * in its tool name; in an allow only mcp__server__* may", r.Text)
	}
	doubt = errors.Join(doubt, l.addForeign(r))
	if tool == "*" || !strings.Contains(tool, "*") {
		return errors.Join(doubt, c.index(l, tool, r))
	}
	l.families = append(l.families, r)
	var failed error
	for _, own := range ownTools { // a deny of "*Edit" is one of each that it names
		if l.strict() && slices.ContainsFunc(alias.Names(own), func(name string) bool { return pathname.Text(tool, name) }) {
			failed = errors.Join(failed, c.index(l, own, r))
		}
	}
	return errors.Join(doubt, failed)
}

// index puts a rule where calls of the tool look for it.
func (c *Compiler) index(l *List, tool string, r *Rule) error {
	if l.strict() && l.Every == nil && (tool == "Edit" && r.Spec == "" || l.matcherOf(tool) == l.Edit && everything(r.Spec)) {
		l.Every = r
	}
	if r.Spec == "" {
		setFirst(l.tools, tool, r)
		return nil
	}
	if name, value, ok := parameter(r.Spec); ok && l.strict() {
		l.params[tool] = append(l.params[tool], newParamRule(r, name, value))
	}
	switch {
	case tool == "Bash":
		err := l.Commands.add(r)
		if l.strict() && errors.Is(err, errNoCommand) {
			setFirst(l.tools, tool, r)
		}
		if err != nil || !l.strict() {
			return err
		}
		return l.addMeant(r)
	case accessOf(tool) != noFiles:
		return c.addPath(l, tool, r)
	}
	doubt := l.domainMeant(tool, r)
	l.specs[tool] = append(l.specs[tool], r)
	if tool == "WebFetch" && l.strict() {
		return errors.Join(doubt, l.addDomain(r))
	}
	return doubt
}

// ownTool returns the plain name of a tool of ours that is named as clients see
// it.
func ownTool(tool string) string {
	server, name, _ := cutServer(tool)
	switch {
	case tool == "mcp__"+serverName, server == "mcp__"+serverName && name == "*":
		return "*"
	case server == "mcp__"+serverName:
		return name
	}
	return tool
}

// everything reports whether a pattern means all that is in the roots.
func everything(spec string) bool {
	return slices.Contains([]string{"**", "./**", "**/*", "./**/*", "**/**", "."}, spec)
}

// matcherOf is matcherFor for tools that touch files, nil for others.
func (l *List) matcherOf(tool string) *Matcher {
	if accessOf(tool) == noFiles {
		return nil
	}
	return l.matcherFor(tool)
}

// matcherFor returns where a path rule for the tool belongs. A deny of Grep(p) is
// one of Read(p): what a search finds it would show.
func (l *List) matcherFor(tool string) *Matcher {
	access := accessOf(tool)
	switch {
	case tool == "Read", access == Reading && l.strict():
		return l.Read
	case tool == "Edit", access == Writing && l.strict():
		return l.Edit
	}
	if l.only[tool] == nil {
		l.only[tool] = newMatcher(l.Read.spelling)
	}
	return l.only[tool]
}

// addSpec adds the specifier of a rule on files as it is written.
func (c *Compiler) addSpec(l *List, tool string, r *Rule) error {
	bases, text := c.anchor(l, r)
	texts, whole := []string{text}, true
	if l.strict() && !strings.HasPrefix(text, "!") {
		texts, whole = alternatives(text, c.roomOf(r.file))
		if strings.Contains(text, "[") && !strings.Contains(text, `\`) { // a directory may be called [slug]
			texts = append(texts, strings.ReplaceAll(text, "[", `\[`))
		}
	}
	for _, text := range texts {
		dir, ok := strings.CutSuffix(text, "/**")
		if l.strict() && ok && !strings.Contains(dir, "/") && !strings.HasPrefix(dir, "!") {
			// Claude Code denies secrets/** at any depth, and allows it at the root alone.
			known := len(c.added)
			if err := c.addPattern(l, tool, r, "**/"+text, bases); err != nil {
				return err
			}
			c.added = c.added[:known] // what is not written cannot be cancelled
		}
		if err := c.addPattern(l, tool, r, text, bases); err != nil {
			return err
		}
	}
	if !whole {
		return fmt.Errorf("the rule %.200q: its braces expand to more than %d patterns, or those of its file for more than %d MiB of them, and not all are guarded; "+
			"write several rules, with fewer braces", r.Text, maxAlternatives, maxSpread>>20)
	}
	return nil
}

// roomOf is what is left for what the braces of a file stand for.
func (c *Compiler) roomOf(file string) *int {
	if c.room == nil {
		c.room = map[string]*int{}
	}
	if c.room[file] == nil {
		left := maxSpread
		c.room[file] = &left
	}
	return c.room[file]
}

// addPattern adds the pattern text of a rule for each of the directories that it is
// relative to.
func (c *Compiler) addPattern(l *List, tool string, r *Rule, text string, bases []string) (failed error) {
	m := l.matcherFor(tool)
	for _, base := range bases {
		p, err := compilePattern(text, base)
		if err != nil {
			if !l.strict() {
				return fmt.Errorf("the rule %q allows nothing: %w", r.Text, err)
			}
			c.addLiteral(l, tool, r)
			return fmt.Errorf("the rule %q: %w; it guards the literal path %s", r.Text, err, r.Spec)
		}
		p.rule = r
		if failed == nil {
			failed = m.idle(p)
		}
		if q, ok := c.aliased(p, l.strict()); ok {
			m.add(q)
		}
		for _, q := range c.copies(p) {
			m.add(q)
		}
		m.add(p)
		c.added = append(c.added, added{m, p})
	}
	return failed
}

// addLiteral guards the path that an unusable pattern spells.
func (c *Compiler) addLiteral(l *List, tool string, r *Rule) {
	bases, text := c.anchor(l, r)
	for _, base := range bases {
		p := literalPattern(text, base)
		p.rule = r
		l.matcherFor(tool).add(p)
	}
}

// anchor returns the directories a path rule is relative to and the gitignore
// pattern that holds there.
func (c *Compiler) anchor(l *List, r *Rule) (bases []string, text string) {
	carve, spec := "", r.Spec
	if rest, ok := strings.CutPrefix(spec, "!"); ok {
		carve, spec = "!", rest
	}
	spec = cleanPattern(spec)
	relative := c.Roots
	if l.strict() {
		relative = c.Bounds
		spec = whole(spec)
	}
	switch {
	case strings.HasPrefix(spec, "//"):
		return []string{""}, carve + pathname.VolumePattern(spec[1:])
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		home := c.Home
		for spec = spec[1:]; strings.HasPrefix(spec, "/../"); spec = spec[3:] {
			home = pathname.Place{Given: filepath.Dir(home.Given), Real: filepath.Dir(home.Real)}
		}
		if strings.Trim(spec, "/") == "" {
			spec = "/**"
		}
		return home.Names(), carve + spec
	case strings.HasPrefix(spec, "/") && r.root != "":
		own := c.Place(r.root)
		bases = own.Names()
		if l.strict() && !slices.Contains(c.Roots, own) { // the file belongs to no root, and is about them all the same
			for _, root := range c.Roots {
				bases = append(bases, root.Names()...)
			}
		}
		return bases, carve + spec
	case strings.HasPrefix(spec, "./") && l.strict():
		spec = spec[2:] // Claude Code reads ./p as p
	case strings.HasPrefix(spec, "./"):
		spec = spec[1:] // no more than it says: the one at the root
	}
	for _, b := range relative {
		up, base := spec, b
		for strings.HasPrefix(up, "../") {
			up, base = up[3:], pathname.Place{Given: filepath.Dir(base.Given), Real: filepath.Dir(base.Real)}
			text = carve + "/" + up
		}
		bases = append(bases, base.Names()...)
	}
	if text == "" {
		text = carve + spec
	}
	return bases, text
}

// Place returns a directory by its given and its real name.
func (c *Compiler) Place(dir string) pathname.Place {
	return pathname.Place{Given: filepath.Clean(dir), Real: pathname.Native(c.resolved(pathname.Slashed(filepath.Clean(dir))))}
}
