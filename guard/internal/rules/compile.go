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

// A Compiler compiles the entries of the settings into lists.
type Compiler struct {
	Roots  []pathname.Place // what relative patterns are relative to, for allow
	Bounds []pathname.Place // the same for deny and ask rules; includes additional directories
	Home   pathname.Place
	// Copy is a copy of the directory CopyOf: a pattern for a file in CopyOf also applies to its copy. Zero: there is
	// none.
	Copy, CopyOf pathname.Place
	// Warnings are problems that a person should correct, each with its file and line.
	Warnings []string

	room map[string]*int   // how many bytes are left for expanded braces, by file
	real map[string]string // the real names of directories, so that each is resolved once
	lost map[string]bool   // the directories that could not be resolved
}

// Compile returns the list of one kind. In case of doubt an allow rule is left out, and a deny or ask rule holds.
func (c *Compiler) Compile(kind Kind, entries []settings.Entry, s pathname.Spelling) *List {
	l := newList(kind, s)
	for _, e := range entries {
		parts := several(e.Text)
		if parts == nil {
			c.warn(l, e, c.compile(l, e))
			continue
		}
		if c.warn(l, e, fmt.Errorf("%q holds %d rules; write each by itself, as an entry of its own", e.Text,
			len(parts))); !l.strict() {
			continue
		}
		for _, part := range parts {
			e.Text = part
			c.warn(l, e, c.compile(l, e))
		}
	}
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
	case l.strict() && toolName.MatchString(r.tool): // ignoring the rule would leave a hole
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
		if r.Spec != "" || strings.EqualFold(tool, name) || alias.Ruled(tool) != "" { // similarity denies no whole tool
			tool = name
		}
	}
	switch server, _, _ := cutServer(tool); {
	case l.strict():
		if tool = ownTool(tool); alias.Ruled(tool) != "" {
			tool = alias.Ruled(tool)
		}
		if tool != r.tool && r.Spec == "" {
			setFirst(l.tools, r.tool, r) // for an extension with exactly that name
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
	for _, own := range ownTools { // a deny of "*Edit" denies each tool with such a name
		if l.strict() && slices.ContainsFunc(alias.Names(own), func(name string) bool { return pathname.Text(tool, name) }) {
			failed = errors.Join(failed, c.index(l, own, r))
		}
	}
	return errors.Join(doubt, failed)
}

// index adds a rule to the index in which calls of the tool look for it.
func (c *Compiler) index(l *List, tool string, r *Rule) error {
	if l.strict() && l.Every == nil && (tool == "Edit" && r.Spec == "" || l.matcherOf(tool) == l.Edit &&
		everything(r.Spec)) {
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

// ownTool returns the plain name of one of our tools, given a name under which clients list it.
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

// everything reports whether a pattern means everything in the roots.
func everything(spec string) bool {
	return slices.Contains([]string{"**", "./**", "**/*", "./**/*", "**/**", "."}, spec)
}

// matcherOf is matcherFor for tools that access files, and returns nil for others.
func (l *List) matcherOf(tool string) *Matcher {
	if accessOf(tool) == noFiles {
		return nil
	}
	return l.matcherFor(tool)
}

// matcherFor returns the matcher for path rules of the tool. A deny of Grep(p) becomes one of Read(p), because Read
// would show what a search finds.
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

// addSpec adds the specifier of a rule on files as written.
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
			// Claude Code denies secrets/** at any depth, but allows it at the root only.
			if err := c.addPattern(l, tool, r, "**/"+text, bases); err != nil {
				return err
			}
		}
		if err := c.addPattern(l, tool, r, text, bases); err != nil {
			return err
		}
	}
	if !whole {
		return fmt.Errorf("the rule %.200q: its braces expand to more than %d patterns, or those of its file for more than "+
			"%d MiB of them, and not all are guarded; "+
			"write several rules, with fewer braces", r.Text, maxAlternatives, maxSpread>>20)
	}
	return nil
}

// roomOf returns how many bytes are left for the expanded braces of a file.
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

// addPattern adds the pattern of a rule, once for each of the directories that it is relative to.
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
	}
	return failed
}

// addLiteral adds an unusable pattern as a literal path.
func (c *Compiler) addLiteral(l *List, tool string, r *Rule) {
	bases, text := c.anchor(l, r)
	for _, base := range bases {
		p := literalPattern(text, base)
		p.rule = r
		l.matcherFor(tool).add(p)
	}
}

// anchor returns the directories that a path rule is relative to, and its gitignore pattern in them.
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
		if l.strict() && !slices.Contains(c.Roots, own) { // the file belongs to no root, so its rules apply to all of them
			for _, root := range c.Roots {
				bases = append(bases, root.Names()...)
			}
		}
		return bases, carve + spec
	case strings.HasPrefix(spec, "./") && l.strict():
		spec = spec[2:] // Claude Code reads ./p as p
	case strings.HasPrefix(spec, "./"):
		spec = spec[1:] // an allow rule means only the file at the root
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
	return pathname.Place{Given: filepath.Clean(dir),
		Real: pathname.Native(c.resolved(pathname.Slashed(filepath.Clean(dir))))}
}
