package guard

import (
	"slices"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// onlyReads reports whether every command of the line belongs to the read-only
// set and reads nothing that Read would have to ask for. Such a line needs no
// rule in any mode.
func (l *commandJudge) onlyReads() bool {
	return len(l.analysis.Undecidable) == 0 &&
		!slices.ContainsFunc(l.analysis.Commands, func(s command.Simple) bool { return !l.reads(s) })
}

// reads reports whether one command is read-only and its files are open to Read.
func (l *commandJudge) reads(s command.Simple) bool {
	if !l.placed || !s.ReadOnly() {
		return false
	}
	dirs := l.standsIn(s.Places)
	if s.Name == "git" && !l.gitReads(dirs) {
		return false
	}
	files, writes := s.Paths()
	if slices.ContainsFunc(files, command.Word.Given) && !l.suppliedReadable(s) {
		return false
	}
	files = slices.DeleteFunc(files, command.Word.Given)
	for _, w := range s.Args[1:] { // echo /root/* tells names too
		if w.Glob {
			files = append(files, w)
		}
		if w.Wild {
			return false
		}
	}
	if len(writes) > 0 || slices.ContainsFunc(files, func(w command.Word) bool { return !l.readableWord(w, dirs) }) {
		return false
	}
	return !s.FollowsLinks() || !l.leadOut(files, dirs)
}

// readableGlobs reports whether the files that wildcards mean outside of commands are
// open to Read: for f in /root/*.
func (l *commandJudge) readableGlobs() bool {
	for _, w := range l.analysis.Globs {
		if w.Wild {
			return false
		}
		for _, dir := range l.dirs {
			names, err := l.expand(w, dir)
			if err != nil || slices.ContainsFunc(names, func(name string) bool { return !l.readableName(w, name, dir) }) {
				return false
			}
		}
	}
	return true
}

func (l *commandJudge) readableName(w command.Word, name string, dir Path) bool {
	p, err := l.resolve(w, name, dir)
	return err == nil && l.readable(p)
}

// inReadable reports whether the line stays in directories that Read may look
// into: many commands read the one they are in without naming it.
func (l *commandJudge) inReadable() bool {
	if l.lost || !l.readableGlobs() {
		return false
	}
	outside := func(dir Path) bool { return !l.readable(dir) }
	if len(l.analysis.Commands) == 0 {
		return !slices.ContainsFunc(l.dirs, outside)
	}
	return !slices.ContainsFunc(l.analysis.Commands, func(s command.Simple) bool { return slices.ContainsFunc(l.standsIn(s.Places), outside) })
}

func (l *commandJudge) readableWord(w command.Word, dirs []Path) bool {
	switch {
	case w.Stream, w.Static && isStream(w.Text): // what the commands in it read is judged with them
		return true
	case w.Glob:
		return l.readableGlob(w, dirs)
	case !w.Static && !w.Home:
		if values, ok := l.analysis.Values(w); ok {
			return l.valuesReadable(w, values, dirs)
		}
		return w.Named() && !slices.ContainsFunc(w.Guesses(), func(text string) bool {
			return pathname.HasMeta(text) || !l.readableWord(command.Word{Text: text, Static: true}, dirs)
		})
	}
	for _, dir := range dirs {
		if t, err := l.target(w, dir, reading); err != nil || l.decide(t).Action != Allow {
			return false
		}
	}
	return true
}

// readableGlob judges every file that a wildcard means now, and the directory it
// looks in.
func (l *commandJudge) readableGlob(w command.Word, dirs []Path) bool {
	for _, dir := range dirs {
		base, _ := cutGlob(w.Text)
		if pathname.HasMeta(base) {
			base = "."
		}
		names, err := l.expand(w, dir)
		if err != nil {
			return false
		}
		for _, name := range append(names, base) {
			if !l.readableName(w, name, dir) {
				return false
			}
		}
	}
	return true
}

func (l *commandJudge) readable(p Path) bool {
	return l.decide(newTarget(p, reading, "read ")).Action == Allow
}
