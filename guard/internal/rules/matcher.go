package rules

import (
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A Matcher finds the pattern that decides a path among very many. Patterns
// without wildcards are found by name; the others under the literal directory
// they begin with, or by their literal start or end.
type Matcher struct {
	spelling pathname.Spelling
	count    int
	carving  bool // some pattern carves out: the order within a source counts

	byPath map[string][]*pattern // no wildcard: the absolute path
	byName map[string][]*pattern // bare, no wildcard: the last element
	byExt  map[string][]*pattern // bare "*.pem": the text from the last dot on
	byHead [256][]*pattern       // bare "id_*": the first byte
	anyEnd []*pattern            // bare, the rest
	// byDir holds the anchored patterns with wildcards under the directory that
	// their literal elements lead to; they are compared with what follows it.
	byDir map[string][]*pattern
	// rules are those of the patterns, in the order they were written.
	rules []*Rule
}

func newMatcher(s pathname.Spelling) *Matcher {
	return &Matcher{
		spelling: s,
		byPath:   map[string][]*pattern{}, byName: map[string][]*pattern{},
		byExt: map[string][]*pattern{}, byDir: map[string][]*pattern{},
	}
}

// add indexes one pattern. Patterns are added in the order they were written. Where names are compared in another
// form than it was written in, it also counts as written: a set such as [uv] is on the letter that bears an accent in
// the one form and on none in the other.
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

// Empty reports whether there is no pattern.
func (m *Matcher) Empty() bool { return m == nil || m.count == 0 }

// Match returns the rule whose pattern decides that path, an absolute one with
// slashes, is meant: itself or a directory above it. Nil: it is not.
func (m *Matcher) Match(path string, dir bool) *Rule { return m.either(path, dir, (*Matcher).match) }

// MatchLeaf is Match for a path whose parent directories do not match.
func (m *Matcher) MatchLeaf(path string, dir bool) *Rule {
	return m.either(path, dir, (*Matcher).matchLeaf)
}

// either asks for a path in the form that names are compared in, and unchanged where that is more than a matter of
// case.
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

// anchored are the patterns of one directory above a path, which ends at end.
type anchored struct {
	patterns []*pattern
	end      int
}

// enter adds the patterns of a directory to those that the paths below it are
// compared with.
func (m *Matcher) enter(active []anchored, dir string, end int) []anchored {
	if ps := m.byDir[dir]; len(ps) > 0 {
		return append(active, anchored{ps, end})
	}
	return active
}

// nextElement returns the end of the path element that begins at start, 0 after
// the last one.
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

// level decides one path by itself, as if nothing were known of the directories
// above it but their patterns.
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

// A decision collects the patterns that match one path: of each source the last
// one written counts.
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
		if (dir || !p.dirOnly) && strings.HasSuffix(name, p.tail) && len(path) > len(p.base) && pathname.Within(path, p.base) &&
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

// takesAll reports whether all that is in a directory is meant, whatever its name: then
// the directory can be held as a whole, with what appears in it later.
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

// isFile reports whether something is there that is no directory.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// Absolute returns, by their system's names, what is meant whether it is there or not:
// paths without a wildcard, and directories all of whose content is meant.
func (m *Matcher) Absolute() []string {
	if m.carving {
		return nil // the walk knows the exceptions
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
