package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/wildcard"
)

// copied judges what a command puts into a directory that is there, under the names of
// what it copies: cp x/.envrc . and cp -r x/. .
func (l *line) copied(s command.Simple, from []command.Word, into *target, dirs []Path) {
	switch s.Name {
	case "cp", "mv", "ln", "install", "rsync":
	default:
		return
	}
	if !l.inside(into) {
		return
	}
	names := l.notable("what is copied", l.copiedNames(from, dirs), into.path, l.k.ask.HasPaths() || l.k.deny.HasPaths())
	for _, name := range names {
		p, err := l.k.resolve(into.path, name)
		if err != nil {
			continue
		}
		t := newTarget(p, writing, "write ")
		l.through(t, l.denied, l.guarded, l.linkDenied, l.asked, l.exposed)
	}
}

// makesDir reports whether the line makes a directory of that name.
func (l *line) makesDir(t *target) bool {
	return slices.ContainsFunc(l.analysis.Commands, func(s command.Simple) bool {
		if s.Name != "mkdir" {
			return false
		}
		_, made := s.Paths()
		return slices.ContainsFunc(l.targets(made, l.standsIn(s.Places), writing), func(dir *target) bool { return dir.real == t.real })
	})
}

// copiedNames returns the names that files keep which are copied: of "x/." those in x.
func (l *line) copiedNames(from []command.Word, dirs []Path) (names []string) {
	for _, w := range from {
		if w.Static || w.Home {
			if base := filepath.Base(w.Text); base != "." && !strings.HasSuffix(w.Text, "/.") && base != ".." && base != "/" && base != "~" {
				names = append(names, base)
				continue
			}
		}
		for _, dir := range dirs {
			if w.Glob {
				for _, file := range l.meant(w, dir, writing) {
					names = append(names, filepath.Base(file))
				}
			} else if p, err := l.resolve(w, w.Text, dir); err == nil && (w.Static || w.Home) {
				found, err := wildcard.List(p.real, maxJudged)
				if err != nil {
					l.tooMuch("copy "+w.Text, "The directory "+w.Text+" holds too many files to look at the names that they get.")
				}
				names = append(names, found...)
			}
		}
	}
	return names
}
