package guard

import (
	"iter"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/pathname"
	"toolhost/guard/internal/protected"
	"toolhost/guard/internal/wildcard"
)

// mayWrite judges the files that are named to a program of which it is not known what
// it does with them: any may be one that it writes. Those that the containment keeps
// as they are need no question, nor does the script that a shell is given to run.
func (l *line) mayWrite(s command.Simple, words []command.Word, dirs []Path) {
	if rest := s.BesideScript(); len(rest.Args) < len(s.Args) {
		s, words = rest, rest.Mentions()
	}
	for _, t := range l.targets(words, dirs, reading) {
		t = newTarget(t.path, writing, "write ")
		if l.contained() {
			l.through(t, l.absentDenied, l.exposed)
		} else {
			l.through(t, l.absentDenied, l.ruleFile, l.protected)
		}
	}
	var named []command.Word
	for _, w := range words {
		for _, text := range w.Guesses() {
			named = append(named, command.Word{Text: text, Static: true})
		}
	}
	l.mayName(slices.Values(named), dirs)
	if len(s.Undecidable) > 0 {
		l.mayName(s.Quoted(), dirs)
	}
}

// mayName asks before a protected file may be written that a text names, whether it
// is the value of one of the line's own variables or stands in a program that is
// given as text.
func (l *line) mayName(words iter.Seq[command.Word], dirs []Path) {
	for w := range words {
		if !protected.In(pathname.Slashed(w.Text)) && len(l.k.hooks.files.Names) == 0 {
			continue
		}
		for _, t := range l.targets([]command.Word{w}, dirs, writing) {
			l.through(t, l.exposed)
		}
	}
}

// made asks before names are made up that may be protected.
func (l *line) made(s command.Simple) {
	for _, pattern := range s.Made() {
		for element := range strings.SplitSeq(pathname.Slashed(pattern), "/") {
			for _, name := range protected.Names() {
				if wildcard.Shell(element, name, true) {
					part := l.part(Ask, RuleProtected, "The names of the files that "+pattern+" stands for are not known before, and one may be "+name+", which other programs run or obey.",
						"Give the files a name that is known.")
					part.What, part.Firm = "write "+pattern, true
					l.add(part)
					return
				}
			}
		}
	}
}

// ruleFile keeps commands that nothing contains from the guard's own rules.
func (l *line) ruleFile(t *target) (Part, bool) {
	if l.obeyed(t.path) {
		return l.guarded(t)
	}
	return Part{}, false
}

// linkedRules is ruleFile for a file that gets another name, by which it could be written. A symbolic link is followed, and a hard one
// cannot cross the mount by which a sandbox holds the file.
func (l *line) linkedRules(s command.Simple) func(*target) (Part, bool) {
	symbolic := slices.ContainsFunc(s.Args[1:], func(w command.Word) bool {
		return w.Text == "--symbolic" || isOption(w.Text) && w.Text[1] != '-' && strings.Contains(w.Text, "s")
	})
	return func(t *target) (Part, bool) {
		if symbolic || l.contained() {
			return Part{}, false
		}
		return l.ruleFile(t)
	}
}

// unknownFile reports whether the line does not say which file a word names.
func (l *line) unknownFile(w command.Word) bool { return !l.analysis.Names(w) }
