package guard

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// suppliedReadable reports whether all that find or xargs may put into the words of a
// command is open to Read: `find src -exec cat {} +`, `git ls-files | xargs wc -l`.
func (l *commandJudge) suppliedReadable(s command.Simple) bool {
	lister, split, ok := l.lister(s)
	if !ok {
		return false
	}
	starts, match, ok := lister.Lists()
	if s.Recurses() {
		match = func(string, bool) bool { return true }
	}
	return ok && l.allReadable(starts, l.standsIn(lister.Places), match, split)
}

// lister returns the command that lists what is put into the words of another, and whether
// xargs takes what it prints apart at blanks.
func (l *commandJudge) lister(s command.Simple) (lister command.Simple, split, ok bool) {
	if s.Outer < 0 {
		return command.Simple{}, false, false
	}
	outer := l.analysis.Commands[s.Outer]
	if outer.Name == "find" || outer.Name == "gfind" {
		return outer, false, true
	}
	lister, ok = l.analysis.Lister(outer)
	return lister, outer.SplitsLines(), ok
}

// allReadable reports whether every file below the starts whose name matches may be read,
// links included, and whether each stays one word where xargs splits what it reads.
func (l *commandJudge) allReadable(starts []command.Word, dirs []Path, match func(name string, link bool) bool, split bool) bool {
	left := maxFollowed
	for _, start := range starts {
		if start.Glob || !start.Static && !start.Home {
			return false
		}
		for _, dir := range dirs {
			p, err := l.resolve(start, start.Text, dir)
			if err != nil || !l.readable(p) || split && oddName(start.Text) || !l.treeReadable(p, match, split, &left) {
				return false
			}
		}
	}
	return true
}

func (l *commandJudge) treeReadable(start Path, match func(name string, link bool) bool, split bool, left *int) bool {
	ruled := l.data.ask.HasPaths() || l.data.deny.HasPaths() || l.data.masksBelow(pathname.Slashed(start.real))
	err := filepath.WalkDir(start.real, func(path string, entry fs.DirEntry, err error) error {
		if *left--; *left < 0 || split && path != start.real && oddName(entry.Name()) {
			return errLeadsOut
		}
		link := err == nil && entry.Type()&fs.ModeSymlink != 0
		if err != nil || entry.IsDir() || !link && !ruled || !match(entry.Name(), link) {
			return nil // what cannot be opened here the command does not open either
		}
		dir := filepath.Dir(path)
		if p, err := l.data.resolve(Path{given: dir, real: dir}, entry.Name()); err == nil && !l.readable(p) {
			return errLeadsOut
		}
		return nil
	})
	return err == nil
}

// oddName reports whether xargs would take a name for several, or a program for an option.
func oddName(name string) bool {
	return strings.ContainsAny(name, " \t\r\n\v\f'\"\\") || strings.HasPrefix(name, "-")
}

// valuesReadable reports whether every value that the line gives a variable names files that
// are open to Read.
func (l *commandJudge) valuesReadable(w command.Word, values []command.Word, dirs []Path) bool {
	return !slices.ContainsFunc(values, func(v command.Word) bool {
		if v.Glob && !w.Single() {
			return true // what is found may be split
		}
		if v.Static && pathname.HasMeta(v.Text) && !w.Single() || strings.ContainsAny(v.Text, " \t\n") && !w.Single() {
			return true
		}
		return !l.readableWord(v, dirs)
	})
}
