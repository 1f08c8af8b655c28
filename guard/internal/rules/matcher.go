package rules

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A Matcher finds the pattern that decides about a path among very many patterns. Patterns without wildcards are
// found by name, the others by their literal directory, or by their literal start or end.
type Matcher struct {
	spelling pathname.Spelling
	count    int
	carving  bool // some patterns are exceptions ("!"), so the order within a source matters

	byPath map[string][]*pattern // no wildcard: the absolute path
	byName map[string][]*pattern // bare, no wildcard: the last element
	byExt  map[string][]*pattern // bare "*.pem": the text from the last dot on
	byHead [256][]*pattern       // bare "id_*": the first byte
	anyEnd []*pattern            // bare, the rest
	// byDir has the anchored patterns with wildcards, by the directory that their literal elements lead to. They are
	// compared with the rest of a path.
	byDir map[string][]*pattern
	// rules are the rules of the patterns, in the order in which they were written.
	rules []*Rule
}

func newMatcher(s pathname.Spelling) *Matcher {
	return &Matcher{
		spelling: s,
		byPath:   map[string][]*pattern{}, byName: map[string][]*pattern{},
		byExt: map[string][]*pattern{}, byDir: map[string][]*pattern{},
	}
}

// add indexes one pattern. Patterns must be added in the order in which they were written. If the form in which names
// are compared changes the pattern, it is also added as written: in a set such as [uv], a letter with an accent is
// one character in one form, and a letter followed by an accent in the other.
func (m *Matcher) add(p pattern) {
	spelt := p
	spelt.base, spelt.tail, spelt.elements = m.spelling.Of(p.base), m.spelling.Of(p.tail), slices.Clone(p.elements)
	for i, e := range p.elements {
		spelt.elements[i] = m.spelling.Of(e)
	}
	m.index(spelt)
	if spelt.base != p.base || !slices.Equal(spelt.elements, p.elements) {
		m.index(p)
	}
}

func (m *Matcher) index(p pattern) {
	if n := len(m.rules); p.rule != nil && !p.carves && (n == 0 || m.rules[n-1] != p.rule) {
		m.rules = append(m.rules, p.rule)
	}
	p.order = m.count
	m.count++
	m.carving = m.carving || p.carves
	if p.bare {
		m.addBare(&p)
		return
	}
	literal := 0
	for literal < len(p.elements) && !pathname.HasMeta(p.elements[literal]) {
		literal++
	}
	dir := p.base
	for _, e := range p.elements[:literal] {
		dir += "/" + e
	}
	if p.elements = p.elements[literal:]; len(p.elements) == 0 {
		m.byPath[dir] = append(m.byPath[dir], &p)
		return
	}
	m.byDir[dir] = append(m.byDir[dir], &p)
}

func (m *Matcher) addBare(p *pattern) {
	glob := p.elements[0]
	if !pathname.HasMeta(glob) {
		m.byName[glob] = append(m.byName[glob], p)
		return
	}
	if dot := strings.LastIndexByte(p.tail, '.'); dot >= 0 {
		m.byExt[p.tail[dot:]] = append(m.byExt[p.tail[dot:]], p)
		return
	}
	if c := glob[0]; c != '*' && c != '?' && c != '[' && c != '\\' {
		m.byHead[c] = append(m.byHead[c], p)
		return
	}
	m.anyEnd = append(m.anyEnd, p)
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

// Empty reports whether there are no patterns.
func (m *Matcher) Empty() bool { return m == nil || m.count == 0 }

// Match returns the rule of the pattern that matches a path, which is absolute and has slashes, or one of the
// directories above it. It returns nil if none matches.
func (m *Matcher) Match(path string, dir bool) *Rule { return m.either(path, dir, (*Matcher).match) }

// MatchLeaf is Match for a path whose parent directories do not match.
func (m *Matcher) MatchLeaf(path string, dir bool) *Rule {
	return m.either(path, dir, (*Matcher).matchLeaf)
}

// either matches a path in the form in which names are compared. If the path itself differs from that form by more
// than case, it is matched too.
func (m *Matcher) either(path string, dir bool, match func(*Matcher, string, bool) *Rule) *Rule {
	if m.Empty() {
		return nil
	}
	spelt := m.spelling.Of(path)
	if r := match(m, spelt, dir); r != nil || spelt == path || strings.EqualFold(spelt, path) {
		return r
	}
	return match(m, path, dir)
}

func (m *Matcher) match(path string, dir bool) *Rule {
	var room [8]anchored
	active := m.enter(room[:0], "", 0)
	for end := nextElement(path, 0); end > 0; end = nextElement(path, end) {
		if p := m.level(path[:end], end < len(path) || dir, active); p != nil {
			return p.rule
		}
		active = m.enter(active, path[:end], end)
	}
	return nil
}

func (m *Matcher) matchLeaf(path string, dir bool) *Rule {
	var room [8]anchored
	active := m.enter(room[:0], "", 0)
	for end := nextElement(path, 0); end > 0 && end < len(path); end = nextElement(path, end) {
		active = m.enter(active, path[:end], end)
	}
	if p := m.level(path, dir, active); p != nil {
		return p.rule
	}
	return nil
}

// anchored are the patterns for the directory path[:end] of a path.
type anchored struct {
	patterns []*pattern
	end      int
}

// enter adds the patterns of a directory to those that apply to paths below it.
func (m *Matcher) enter(active []anchored, dir string, end int) []anchored {
	if ps := m.byDir[dir]; len(ps) > 0 {
		return append(active, anchored{ps, end})
	}
	return active
}

// nextElement returns the end of the path element that begins at start, or 0 after the last one.
func nextElement(path string, start int) int {
	for start < len(path) && path[start] == '/' {
		start++
	}
	if start >= len(path) {
		return 0
	}
	if i := strings.IndexByte(path[start:], '/'); i >= 0 {
		return start + i
	}
	return len(path)
}

// level returns the pattern that decides about a path itself. Directories above it are not considered, except for the
// patterns in active.
func (m *Matcher) level(path string, dir bool, active []anchored) *pattern {
	var d decision
	d.carving = m.carving
	slash := strings.LastIndexByte(path, '/')
	name := path[slash+1:]
	d.weigh(m.byPath[path], dir)
	d.bare(m.byName[name], path, name, dir)
	if len(m.byExt) > 0 {
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			d.bare(m.byExt[name[dot:]], path, name, dir)
		}
	}
	if name != "" {
		d.bare(m.byHead[name[0]], path, name, dir)
	}
	d.bare(m.anyEnd, path, name, dir)
	for _, a := range active {
		d.below(a.patterns, path, a.end, dir)
	}
	return d.result()
}

// A decision collects the patterns that match one path. Of each source the last pattern counts.
type decision struct {
	carving bool
	last    []*pattern // one for each source
}

func (d *decision) done() bool { return !d.carving && len(d.last) > 0 }

func (d *decision) take(p *pattern) {
	for i, q := range d.last {
		if q.rule.file == p.rule.file {
			if p.order > q.order {
				d.last[i] = p
			}
			return
		}
	}
	d.last = append(d.last, p)
}

func (d *decision) weigh(ps []*pattern, dir bool) {
	for _, p := range ps {
		if d.done() {
			return
		}
		if dir || !p.dirOnly {
			d.take(p)
		}
	}
}

func (d *decision) bare(ps []*pattern, path, name string, dir bool) {
	for _, p := range ps {
		if d.done() {
			return
		}
		if (dir || !p.dirOnly) && strings.HasSuffix(name, p.tail) && len(path) > len(p.base) &&
			pathname.Within(path, p.base) &&
			pathname.Element(p.elements[0], name) {
			d.take(p)
		}
	}
}

func (d *decision) below(ps []*pattern, path string, end int, dir bool) {
	for _, p := range ps {
		if d.done() {
			return
		}
		if (dir || !p.dirOnly) && strings.HasSuffix(path, p.tail) && matchRest(p.elements, path[end+1:]) {
			d.take(p)
		}
	}
}

func (d *decision) result() *pattern {
	if i := slices.IndexFunc(d.last, func(p *pattern) bool { return !p.carves }); i >= 0 {
		return d.last[i]
	}
	return nil
}

// Holds reports whether a path whose parent directories do not match is matched itself, or everything in it is.
func (m *Matcher) Holds(path string, dir bool) bool {
	return m.MatchLeaf(path, dir) != nil || dir && m.takesAll(path)
}

// takesAll reports whether the patterns match every name in a directory. Then the directory can be withheld as a
// whole, with names that appear in it later.
func (m *Matcher) takesAll(dir string) bool {
	return !m.carving && len(m.byDir) > 0 && m.MatchLeaf(dir+AnyChild, false) != nil
}

// All reports whether everything in a directory, including future files, is matched by a pattern for it or for a
// directory above.
func (m *Matcher) All(dir string) bool { return !m.carving && m.Match(dir+AnyChild, false) != nil }

// Rules returns the rules of the patterns, in the order they were written.
func (m *Matcher) Rules() []*Rule { return m.rules }

// Files returns the slashed paths that patterns without a wildcard name.
func (m *Matcher) Files() iter.Seq[string] { return maps.Keys(m.byPath) }

// Dirs returns the slashed paths of directories in which patterns with wildcards look.
func (m *Matcher) Dirs() iter.Seq[string] { return maps.Keys(m.byDir) }

// isFile reports whether something other than a directory has the name.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// Absolute returns the system's names of what the patterns mean whether it exists or not: paths without a wildcard,
// and directories with all of their content.
func (m *Matcher) Absolute() []string {
	if m.carving {
		return nil // walking the tree finds the exceptions
	}
	var out []string
	for name, patterns := range m.byPath {
		onFiles := slices.ContainsFunc(patterns, func(p *pattern) bool { return !p.dirOnly })
		if native := pathname.Native(name); onFiles || !isFile(native) {
			out = append(out, native)
		}
	}
	for dir, patterns := range m.byDir {
		whole := slices.ContainsFunc(patterns, func(p *pattern) bool { return len(p.elements) == 1 && p.elements[0] == "**" })
		if whole && strings.Count(dir, "/") > 1 {
			out = append(out, pathname.Native(dir))
		}
	}
	return out
}
