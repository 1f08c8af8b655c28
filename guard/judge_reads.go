package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/gitrepo"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A readCheck determines whether commands only read, and only files that Read may read.
type readCheck struct {
	j      *judge
	line   *commandLine
	placed bool // the line stays in directories that Read may read
	bare   bool // git runs in a repository without a work tree
}

// gitPlaces are the variables that direct git to another repository, or to parts of one, than that
// of its directory.
var gitPlaces = []string{"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_INDEX_FILE"}

// gitReads reports whether git, when it only reads in any of the directories, runs no other
// program.
func (c *readCheck) gitReads(dirs []Path) bool {
	elsewhere := func(name string) bool {
		_, set := os.LookupEnv(name)
		return set || slices.ContainsFunc(c.j.data.environment, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	for _, dir := range dirs {
		switch gitrepo.At(dir.real) {
		case gitrepo.Unusual:
			return false
		case gitrepo.Bare:
			c.bare = true
		}
	}
	return !slices.ContainsFunc(gitPlaces, elsewhere)
}

// onlyReads reports whether every command of the line belongs to the read-only
// set and reads nothing that Read would have to ask for. Such a line needs no
// rule in any mode.
func (c *readCheck) onlyReads() bool {
	c.placed = c.inReadable()
	return len(c.line.analysis.Undecidable) == 0 && every(c.line.analysis.Commands, c.reads)
}

func isGiven(w command.Word) bool { return w.Given }

// reads reports whether one command is read-only and its files are open to Read.
func (c *readCheck) reads(s command.Simple) bool {
	if !c.placed || !s.ReadOnly() {
		return false
	}
	dirs := c.line.runsIn(s.Places)
	if s.Name == "git" && !c.gitReads(dirs) {
		return false
	}
	files, writes := s.Paths()
	if slices.ContainsFunc(files, isGiven) && !c.suppliedReadable(s) {
		return false
	}
	files = slices.DeleteFunc(files, isGiven)
	for _, w := range s.Args[1:] { // echo /root/* tells names too
		if w.Glob {
			files = append(files, w)
		}
		if w.Wild {
			return false
		}
	}
	if len(writes) > 0 || !every(files, func(w command.Word) bool { return c.readableWord(w, dirs) }) {
		return false
	}
	if !s.FollowsLinks() { // as grep -R and find -L do
		return true
	}
	if len(files) == 0 {
		files = []command.Word{fixed(".")}
	}
	return c.allReadable(files, dirs, func(_ string, link bool) bool { return link }, false)
}

// inReadable reports whether the line stays in directories that Read may read: many commands read
// their working directory without naming it. Wildcards outside of commands count as well: for f in
// /root/*.
func (c *readCheck) inReadable() bool {
	readable := func(w command.Word) bool { return !w.Wild && c.readableNames(w, c.line.dirs) }
	if c.line.lost || !every(c.line.analysis.Globs, readable) {
		return false
	}
	if len(c.line.analysis.Commands) == 0 {
		return every(c.line.dirs, c.readable)
	}
	return every(c.line.analysis.Commands, func(s command.Simple) bool { return every(c.line.runsIn(s.Places), c.readable) })
}

// every reports whether f holds for all of a list.
func every[T any](list []T, f func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !f(x) })
}

// readableWord reports whether Read may read every file that a word may mean, and the directory that
// a wildcard lists.
func (c *readCheck) readableWord(w command.Word, dirs []Path) bool {
	switch {
	case w.Wild:
		return false
	case w.Stream, w.Static && isStream(w.Text): // the reads of the commands in it are judged with those commands
		return true
	case w.Glob:
		base, _ := cutGlob(w.Text)
		if pathname.HasMeta(base) {
			base = "."
		}
		return c.readableNames(w, dirs, base)
	case !w.Static && !w.Home:
		values, all := c.line.analysis.Values(w)
		if !all {
			all = w.Named()
			for _, text := range w.Guesses {
				values = append(values, fixed(text))
			}
		}
		return all && every(values, func(v command.Word) bool {
			split := v.Glob || strings.ContainsAny(v.Text, " \t\n") // by the shell, if it may
			return (v.Glob || !pathname.HasMeta(v.Text)) && (w.Single() || !split) && c.readableWord(v, dirs)
		})
	}
	return c.readableNames(w, dirs)
}

// readableNames reports whether Read may read what a word names, every file that a wildcard matches
// now, and those that also names.
func (c *readCheck) readableNames(w command.Word, dirs []Path, also ...string) bool {
	return every(dirs, func(dir Path) bool {
		names, err := []string{w.Text}, error(nil)
		if w.Glob {
			names, err = c.line.expand(w, dir, maxGlob)
		}
		return err == nil && every(append(names, also...), func(name string) bool {
			p, err := c.line.resolve(w, name, dir)
			return err == nil && c.readable(p)
		})
	})
}

func (c *readCheck) readable(p Path) bool {
	return c.j.decide(newTarget(p, reading, "read ")).Action == Allow
}

// suppliedReadable reports whether Read may read everything that find or xargs may supply as words
// of a command: `find src -exec cat {} +`, `git ls-files | xargs wc -l`.
func (c *readCheck) suppliedReadable(s command.Simple) bool {
	if s.Outer < 0 {
		return false
	}
	lister, split := c.line.analysis.Commands[s.Outer], false
	if lister.Name != "find" && lister.Name != "gfind" {
		split = lister.SplitsLines() // at blanks
		var ok bool
		if lister, ok = c.line.analysis.Lister(lister); !ok {
			return false
		}
	}
	starts, match, ok := lister.Lists()
	if s.Recurses() {
		match = func(string, bool) bool { return true }
	}
	return ok && c.allReadable(starts, c.line.runsIn(lister.Places), match, split)
}

// allReadable reports whether every file below the starts whose name matches may be read, links
// included, and whether each stays one word if xargs splits its input.
func (c *readCheck) allReadable(starts []command.Word, dirs []Path, match func(name string, link bool) bool, split bool) bool {
	left := maxFiles
	for _, start := range starts {
		if !start.Static && !start.Home && !start.Glob {
			return false
		}
		for _, dir := range dirs {
			names, err := []string{start.Text}, error(nil)
			if start.Glob {
				names, err = c.line.expand(start, dir, maxGlob)
			}
			if err != nil {
				return false
			}
			for _, name := range names {
				p, err := c.line.resolve(start, name, dir)
				if err != nil || !c.readable(p) || split && oddName(name) || !c.treeReadable(p.real, match, split, &left) {
					return false
				}
			}
		}
	}
	return true
}

// treeReadable reports whether the matching files below start may be read.
func (c *readCheck) treeReadable(start string, match func(name string, link bool) bool, split bool, left *int) bool {
	ruled := c.j.data.ask.HasPaths() || c.j.data.deny.HasPaths() || c.j.data.masksBelow(pathname.Slashed(start))
	err := filepath.WalkDir(start, func(path string, entry fs.DirEntry, err error) error {
		if *left--; *left < 0 || split && path != start && oddName(entry.Name()) {
			return fs.ErrPermission
		}
		link := err == nil && entry.Type()&fs.ModeSymlink != 0
		if err != nil || entry.IsDir() || !link && !ruled || !match(entry.Name(), link) {
			return nil // what cannot be opened here the command cannot open either
		}
		dir := filepath.Dir(path)
		if p, err := c.j.data.resolve(Path{given: dir, real: dir}, entry.Name()); err == nil && !c.readable(p) {
			return fs.ErrPermission
		}
		return nil
	})
	return err == nil
}

// oddName reports whether xargs would split a name, or a program would take it for an option.
func oddName(name string) bool {
	return strings.ContainsAny(name, " \t\r\n\v\f'\"\\") || strings.HasPrefix(name, "-")
}
