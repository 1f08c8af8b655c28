package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"

	"github.com/toolhost/toolhost/guard/internal/rules"
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

// globbing returns how the line has its shell expand wildcards, if one of its
// commands sets an option for that.
func (l *commandJudge) globbing() pathname.Expansion {
	g := pathname.Expansion{Entries: maxListed, Most: maxGlob}
	for _, s := range l.analysis.Commands {
		for _, w := range s.Args {
			g.Hidden = g.Hidden || w.Text == "dotglob"
			g.Deep = g.Deep || w.Text == "globstar"
			g.Fold = g.Fold || w.Text == "nocaseglob"
		}
	}
	g.Hidden = g.Hidden || strings.Contains(l.text, "GLOBIGNORE") // sets it as well
	return g
}

// expand returns the files a wildcard means, by absolute names.
func (l *commandJudge) expand(w command.Word, dir Path) ([]string, error) {
	return l.expandAs(l.globbing(), w, dir)
}

func (l *commandJudge) expandAs(g pathname.Expansion, w command.Word, dir Path) ([]string, error) {
	at, pattern := dir.given, w.Text
	switch {
	case w.Home:
		at, pattern = l.data.home.Given, pattern[1:]
	case filepath.IsAbs(pattern):
		at = filepath.VolumeName(pattern)
		pattern = pattern[len(at):]
	}
	return g.Files(at, pattern)
}

// meant returns the files that a wildcard means, as far as they are to be judged: where
// no rule speaks of what nothing else holds, only of writing there is something to say.
func (l *commandJudge) meant(w command.Word, dir Path, access rules.Access) []string {
	speaks := l.data.ask.HasPaths() || !l.contained() && l.data.deny.HasPaths()
	if !speaks && access == reading {
		return nil
	}
	g := l.globbing()
	g.Entries, g.Most = maxJudged, maxJudged
	names, err := l.expandAs(g, w, dir)
	if err != nil {
		l.tooMuch("use "+w.Text, "The wildcard "+w.Text+" names too many files to hold them against the rules on files.")
	}
	return l.notable("the wildcard "+w.Text, names, dir, speaks)
}

// notable returns those of the names, which may be relative to dir, that are to be
// judged. Where no rule speaks of what nothing else holds, these are of very many the
// protected ones.
func (l *commandJudge) notable(of string, names []string, dir Path, speaks bool) []string {
	switch {
	case len(names) <= maxGlob:
		return names
	case !speaks:
		parents := map[string]bool{} // whether they are protected, by whatever name
		return slices.DeleteFunc(names, func(name string) bool {
			if inProtected(pathname.Slashed(name)) {
				return false
			}
			parent := filepath.Dir(name)
			isProtected, known := parents[parent]
			if !known {
				p, err := l.data.resolve(dir, parent)
				isProtected = err == nil && l.data.isProtected(pathname.Slashed(p.real))
				parents[parent] = isProtected
			}
			return !isProtected
		})
	case len(names) > maxJudged:
		l.tooMuch("use "+of, "More files are named by "+of+" than are held against the rules on files.")
	}
	return names[:min(len(names), maxJudged)]
}

// tooMuch asks where files are named that are not judged, and nothing else holds them.
func (l *commandJudge) tooMuch(what, reason string) {
	part := l.part(Ask, ruleUndecidable, reason, "Name fewer files at once, or let a person agree.")
	part.What, part.Final = what, true
	l.add(part)
}
