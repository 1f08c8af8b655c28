package guard

import (
	"path/filepath"
	"slices"

	"toolhost/guard/internal/command"
)

// maxGlob bounds how many files a wildcard of a read-only command may name
// before the command counts as any other.
const maxGlob = 1000

// onlyReads reports whether every command of the line belongs to the read-only
// set and reads nothing that Read would have to ask for. Such a line needs no
// rule in any mode.
func (l *line) onlyReads() bool {
	if l.lost || len(l.analysis.Undecidable) > 0 {
		return false
	}
	for _, dir := range l.dirs {
		if p, err := resolveFull(dir); err != nil || !l.readable(p) {
			return false
		}
	}
	return !slices.ContainsFunc(l.analysis.Commands, func(s command.Simple) bool { return !l.reads(s) })
}

// reads reports whether one command is read-only and its files are open to Read.
func (l *line) reads(s command.Simple) bool {
	if !s.ReadOnly() {
		return false
	}
	files, writes := s.Paths()
	if len(writes) > 0 {
		return false
	}
	for _, w := range files {
		if !l.readableWord(w) {
			return false
		}
	}
	return true
}

func (l *line) readableWord(w command.Word) bool {
	switch {
	case w.Static && isStream(w.Text):
		return true
	case w.Glob:
		return l.readableGlob(w)
	case !w.Static && !w.Home:
		return false
	}
	for _, dir := range l.dirs {
		if t, err := l.target(w, dir, reading); err != nil || l.decide(t).Action != Allow {
			return false
		}
	}
	return true
}

// readableGlob judges every file that a wildcard means now.
func (l *line) readableGlob(w command.Word) bool {
	for _, dir := range l.dirs {
		full, err := l.absolute(w, w.Text, dir)
		if err != nil {
			return false
		}
		base, _ := cutGlob(filepath.Clean(full))
		if hasMeta(base) {
			base = dir
		}
		names, err := filepath.Glob(full)
		if err != nil || len(names) > maxGlob {
			return false
		}
		for _, name := range append(names, base) {
			if p, err := resolveFull(name); err != nil || !l.readable(p) {
				return false
			}
		}
	}
	return true
}

func (l *line) readable(p Path) bool {
	return l.decide(target{path: p, given: slashed(p.given), real: slashed(p.real), access: reading}).Action == Allow
}
