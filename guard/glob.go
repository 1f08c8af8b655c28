package guard

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/pathname"
)

const (
	// maxGlob bounds how many files a wildcard of a command may name before it
	// counts as naming any.
	maxGlob = 1000
	// maxListed bounds the directory entries that are looked at for it.
	maxListed = 20_000
	// maxJudged bounds both where a command is asked for beyond.
	maxJudged = 50_000
)

var errManyFiles = errors.New("the wildcard names too many files")

// A globbing is how the shell expands wildcards: as its options say. It finds what
// any shell may find, and more where shells, locales or lost quotes would tell
// patterns apart: what is judged must not be less than what is read.
type globbing struct {
	hidden bool // dotglob: names that begin with a dot too
	deep   bool // globstar: ** is directories at any depth
	fold   bool // nocaseglob

	left  int // entries still looked at
	most  int // files that may be found
	found []string
}

// globbing returns how the line has its shell expand wildcards, if one of its
// commands sets an option for that.
func (l *line) globbing() globbing {
	g := globbing{left: maxListed, most: maxGlob}
	for _, s := range l.analysis.Commands {
		for _, w := range s.Args {
			g.hidden = g.hidden || w.Text == "dotglob"
			g.deep = g.deep || w.Text == "globstar"
			g.fold = g.fold || w.Text == "nocaseglob"
		}
	}
	g.hidden = g.hidden || strings.Contains(l.text, "GLOBIGNORE") // sets it as well
	return g
}

// expand returns the files a wildcard means, by absolute names.
func (l *line) expand(w command.Word, dir Path) ([]string, error) {
	return l.globbing().expand(l.k, w, dir)
}

func (g globbing) expand(k *core, w command.Word, dir Path) ([]string, error) {
	at, pattern := dir.given, w.Text
	switch {
	case w.Home:
		at, pattern = k.home.Given, pattern[1:]
	case filepath.IsAbs(pattern):
		at = filepath.VolumeName(pattern)
		pattern = pattern[len(at):]
	}
	err := g.walk(at, strings.Split(filepath.ToSlash(pattern), "/"))
	return g.found, err
}

// walk finds what the elements mean below at.
func (g *globbing) walk(at string, elements []string) error {
	for len(elements) > 0 && !isWild(elements[0]) {
		if elements[0] != "" && elements[0] != "." {
			at += string(filepath.Separator) + elements[0] // not cleaned: what is before ".." may be a link
		}
		elements = elements[1:]
	}
	if len(elements) == 0 {
		if _, err := os.Lstat(at); err == nil {
			g.found = append(g.found, at)
		}
		if len(g.found) > g.most {
			return errManyFiles
		}
		return nil
	}
	element, rest := elements[0], elements[1:]
	if g.deep && element == "**" {
		return g.below(at, rest)
	}
	names, err := g.list(at)
	if err != nil {
		return err
	}
	for _, name := range names {
		if g.shows(element, name) && matchWild(element, name, g.fold) {
			if err := g.walk(at+string(filepath.Separator)+name, rest); err != nil {
				return err
			}
		}
	}
	if strings.HasPrefix(element, ".") && len(rest) > 0 && matchWild(element, "..", false) {
		return g.walk(at+string(filepath.Separator)+"..", rest) // to shells without globskipdots
	}
	return nil
}

// below is walk for ** with rest behind it.
func (g *globbing) below(at string, rest []string) error {
	if len(rest) == 0 { // the directory is one of them
		if err := g.walk(at, nil); err != nil {
			return err
		}
		rest = []string{"*"}
	}
	if err := g.walk(at, rest); err != nil {
		return err
	}
	names, err := g.list(at)
	if err != nil {
		return err
	}
	for _, name := range names {
		next := at + string(filepath.Separator) + name
		if info, err := os.Lstat(next); err != nil || !info.IsDir() || !g.shows("*", name) {
			continue
		}
		if err := g.below(next, rest); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a directory; what is none, or cannot be read, has none.
func (g *globbing) list(dir string) ([]string, error) {
	f, err := os.Open(dir + string(filepath.Separator))
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(g.left + 1)
	if g.left -= len(names); g.left < 0 {
		return nil, errManyFiles
	}
	slices.Sort(names)
	return names, nil
}

func (g *globbing) shows(element, name string) bool {
	return g.hidden || name[0] != '.' || element[0] == '.'
}

// meant returns the files that a wildcard means, as far as they are to be judged: where
// no rule speaks of what nothing else holds, only of writing there is something to say.
func (l *line) meant(w command.Word, dir Path, access fileAccess) []string {
	speaks := l.k.ask.hasPaths() || !l.contained() && l.k.deny.hasPaths()
	if !speaks && access == reading {
		return nil
	}
	g := l.globbing()
	g.left, g.most = maxJudged, maxJudged
	names, err := g.expand(l.k, w, dir)
	if err != nil {
		l.tooMuch("use "+w.Text, "The wildcard "+w.Text+" names too many files to hold them against the rules on files.")
	}
	return l.notable("the wildcard "+w.Text, names, dir, speaks)
}

// notable returns those of the names, which may be relative to dir, that are to be
// judged. Where no rule speaks of what nothing else holds, these are of very many the
// protected ones.
func (l *line) notable(of string, names []string, dir Path, speaks bool) []string {
	switch {
	case len(names) <= maxGlob:
		return names
	case !speaks:
		parents := map[string]bool{} // whether they are protected, by whatever name
		return slices.DeleteFunc(names, func(name string) bool {
			if l.k.isShielded(pathname.Slashed(name)) {
				return false
			}
			parent := filepath.Dir(name)
			shielded, known := parents[parent]
			if !known {
				p, err := l.k.resolve(dir, parent)
				shielded = err == nil && l.k.isProtected(pathname.Slashed(p.real))
				parents[parent] = shielded
			}
			return !shielded
		})
	case len(names) > maxJudged:
		l.tooMuch("use "+of, "More files are named by "+of+" than are held against the rules on files.")
	}
	return names[:min(len(names), maxJudged)]
}

// tooMuch asks where files are named that are not judged, and nothing else holds them.
func (l *line) tooMuch(what, reason string) {
	part := l.part(Ask, RuleUndecidable, reason, "Name fewer files at once, or let a person agree.")
	part.What, part.Firm = what, true
	l.add(part)
}

// isWild reports whether the shell may take an element of a path for a pattern.
func isWild(element string) bool { return strings.ContainsAny(element, "*?[") }

// matchWild reports whether a shell could take pattern for name. A bracket is any
// character, or itself: [!a], [[:alpha:]] and [a-z] mean different things to
// different shells and locales.
func matchWild(pattern, name string, fold bool) bool {
	if fold {
		pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	}
	m := wildMatch{pattern: pattern, name: name, failed: map[[2]int]bool{}}
	return m.from(0, 0)
}

type wildMatch struct {
	pattern, name string
	failed        map[[2]int]bool
}

// from matches what is left of the pattern and of the name.
func (m *wildMatch) from(p, n int) bool {
	key := [2]int{p, n}
	if m.failed[key] {
		return false
	}
	ok := m.try(p, n)
	if !ok {
		m.failed[key] = true
	}
	return ok
}

func (m *wildMatch) try(p, n int) bool {
	if p == len(m.pattern) {
		return n == len(m.name)
	}
	switch c := m.pattern[p]; {
	case c == '*':
		return m.from(p+1, n) || n < len(m.name) && m.from(p, n+1)
	case c == '?':
		return m.one(p+1, n)
	case n < len(m.name) && m.name[n] == c && m.from(p+1, n+1):
		return true
	case c == '[':
		for end := p + 1; end < len(m.pattern); end++ {
			if m.pattern[end] == ']' && m.one(end+1, n) {
				return true
			}
		}
	}
	return false
}

// one matches one character, or one byte, and goes on in the pattern at p.
func (m *wildMatch) one(p, n int) bool {
	if n == len(m.name) {
		return false
	}
	_, size := utf8.DecodeRuneInString(m.name[n:])
	return m.from(p, n+1) || size > 1 && m.from(p, n+size)
}
