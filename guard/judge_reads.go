package guard

import (
	"errors"
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
	line   *line
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

var errLeadsOut = errors.New("a link leads to what Read may not look at")

// onlyReads reports whether every command of the line belongs to the read-only
// set and reads nothing that Read would have to ask for. Such a line needs no
// rule in any mode.
func (c *readCheck) onlyReads() bool {
	c.placed = c.inReadable()
	return len(c.line.analysis.Undecidable) == 0 &&
		!slices.ContainsFunc(c.line.analysis.Commands, func(s command.Simple) bool { return !c.reads(s) })
}

func isGiven(w command.Word) bool { return w.Given }

// reads reports whether one command is read-only and its files are open to Read.
func (c *readCheck) reads(s command.Simple) bool {
	if !c.placed || !s.ReadOnly() {
		return false
	}
	dirs := c.line.standsIn(s.Places)
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
	if len(writes) > 0 || slices.ContainsFunc(files, func(w command.Word) bool { return !c.readableWord(w, dirs) }) {
		return false
	}
	if !s.FollowsLinks() { // as grep -R and find -L do
		return true
	}
	if len(files) == 0 {
		files = []command.Word{{Text: ".", Static: true}}
	}
	return c.allReadable(files, dirs, func(_ string, link bool) bool { return link }, false)
}

// readableGlobs reports whether Read may read the files that wildcards outside of commands match:
// for f in /root/*.
func (c *readCheck) readableGlobs() bool {
	return !slices.ContainsFunc(c.line.analysis.Globs, func(w command.Word) bool { return w.Wild || !c.readableMatches(w, c.line.dirs) })
}

// readableMatches reports whether Read may read every file that a wildcard matches now, and those that
// also names.
func (c *readCheck) readableMatches(w command.Word, dirs []Path, also ...string) bool {
	for _, dir := range dirs {
		names, err := c.line.expand(w, dir, maxGlob)
		if err != nil || slices.ContainsFunc(append(names, also...), func(name string) bool {
			p, err := c.line.resolve(w, name, dir)
			return err != nil || !c.readable(p)
		}) {
			return false
		}
	}
	return true
}

// inReadable reports whether the line stays in directories that Read may read: many commands read
// their working directory without naming it.
func (c *readCheck) inReadable() bool {
	if c.line.lost || !c.readableGlobs() {
		return false
	}
	outside := func(dir Path) bool { return !c.readable(dir) }
	if len(c.line.analysis.Commands) == 0 {
		return !slices.ContainsFunc(c.line.dirs, outside)
	}
	return !slices.ContainsFunc(c.line.analysis.Commands, func(s command.Simple) bool { return slices.ContainsFunc(c.line.standsIn(s.Places), outside) })
}

func (c *readCheck) readableWord(w command.Word, dirs []Path) bool {
	switch {
	case w.Stream, w.Static && isStream(w.Text): // the reads of the commands in it are judged with those commands
		return true
	case w.Glob:
		return c.readableGlob(w, dirs)
	case !w.Static && !w.Home:
		if values, ok := c.line.analysis.Values(w); ok {
			return !slices.ContainsFunc(values, func(v command.Word) bool {
				split := v.Glob || pathname.HasMeta(v.Text) || strings.ContainsAny(v.Text, " \t\n") // by the shell, if it may
				return split && !w.Single() || !c.readableWord(v, dirs)
			})
		}
		return w.Named() && !slices.ContainsFunc(w.Guesses, func(text string) bool {
			return pathname.HasMeta(text) || !c.readableWord(command.Word{Text: text, Static: true}, dirs)
		})
	}
	for _, dir := range dirs {
		if p, err := c.line.resolve(w, w.Text, dir); err != nil || !c.readable(p) {
			return false
		}
	}
	return true
}

// readableGlob judges every file that a wildcard matches now, and the directory that it lists.
func (c *readCheck) readableGlob(w command.Word, dirs []Path) bool {
	base, _ := cutGlob(w.Text)
	if pathname.HasMeta(base) {
		base = "."
	}
	return c.readableMatches(w, dirs, base)
}

func (c *readCheck) readable(p Path) bool {
	return c.j.decide(newTarget(p, reading, "read ")).Action == Allow
}

// suppliedReadable reports whether Read may read everything that find or xargs may supply as words
// of a command: `find src -exec cat {} +`, `git ls-files | xargs wc -l`.
func (c *readCheck) suppliedReadable(s command.Simple) bool {
	lister, split, ok := c.lister(s)
	if !ok {
		return false
	}
	starts, match, ok := lister.Lists()
	if s.Recurses() {
		match = func(string, bool) bool { return true }
	}
	return ok && c.allReadable(starts, c.line.standsIn(lister.Places), match, split)
}

// lister returns the command that lists the words supplied to another, and whether xargs splits its
// output at blanks.
func (c *readCheck) lister(s command.Simple) (lister command.Simple, split, ok bool) {
	if s.Outer < 0 {
		return command.Simple{}, false, false
	}
	outer := c.line.analysis.Commands[s.Outer]
	if outer.Name == "find" || outer.Name == "gfind" {
		return outer, false, true
	}
	lister, ok = c.line.analysis.Lister(outer)
	return lister, outer.SplitsLines(), ok
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
			names := []string{start.Text}
			if start.Glob {
				names, _ = c.line.expand(start, dir, maxGlob)
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
			return errLeadsOut
		}
		link := err == nil && entry.Type()&fs.ModeSymlink != 0
		if err != nil || entry.IsDir() || !link && !ruled || !match(entry.Name(), link) {
			return nil // what cannot be opened here the command cannot open either
		}
		dir := filepath.Dir(path)
		if p, err := c.j.data.resolve(Path{given: dir, real: dir}, entry.Name()); err == nil && !c.readable(p) {
			return errLeadsOut
		}
		return nil
	})
	return err == nil
}

// oddName reports whether xargs would split a name, or a program would take it for an option.
func oddName(name string) bool {
	return strings.ContainsAny(name, " \t\r\n\v\f'\"\\") || strings.HasPrefix(name, "-")
}
