package guard

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
)

// A commandLine is the text of a command with the directories that its names are relative to.
type commandLine struct {
	data     *policyData
	text     string
	analysis *command.Analysis
	dirs     []Path            // where its words may be relative to: its directory and what it changes to
	places   map[string][]Path // the directories of each place, by its key
	lost     bool              // it changes to a directory that is not known
}

// follow finds the directories that the line changes to. Where it is not understood
// which of its commands run in which, each is judged as if it ran in all of them.
func (ln *commandLine) follow() {
	entered := false
	for _, s := range ln.analysis.Commands {
		switch s.Name {
		case "cd", "pushd":
			to := command.Word{Text: "~", Static: true, Home: true}
			if len(s.Args) > 1 {
				to = s.Args[len(s.Args)-1]
			}
			dirs, known := ln.step(to, ln.dirs)
			ln.dirs = union(ln.dirs, dirs...)
			ln.lost = ln.lost || !known
			entered = true
		case "env", "genv", "sudo", "doas":
			ln.lost = ln.lost || ln.analysis.ChangesDir && len(s.Args) > 1 && isOption(s.Args[1].Text)
		}
	}
	ln.lost = ln.lost || ln.analysis.ChangesDir && !entered
}

// runsIn returns the directories that a command or redirection may run in.
func (ln *commandLine) runsIn(places []command.Place) (all []Path) {
	for _, place := range places {
		dirs := ln.walk(place)
		if len(dirs) == 0 {
			return ln.dirs
		}
		all = union(all, dirs...)
	}
	if len(all) == 0 {
		return ln.dirs
	}
	return all
}

// walk returns where the steps of a place lead, nothing if that is not known.
func (ln *commandLine) walk(place command.Place) []Path {
	key := place.Key()
	if dirs, known := ln.places[key]; known {
		return dirs
	}
	dirs := ln.dirs[:1]
	for _, to := range place {
		dirs, _ = ln.step(to, dirs)
	}
	ln.places[key] = dirs
	return dirs
}

// maxDirs bounds the directories that one line is followed into.
const maxDirs = 8

// step returns where a change of directory leads from each of dirs, and whether that is known.
// Bash takes ".." back along the names it came by, the kernel along the directories: both are
// examined.
func (ln *commandLine) step(to command.Word, dirs []Path) (next []Path, known bool) {
	if !to.Static && !to.Home || to.Text == "-" || len(dirs) > maxDirs {
		return nil, false
	}
	for _, dir := range dirs {
		p, err := ln.resolve(to, to.Text, dir)
		if err == nil {
			next = union(next, p)
			p, err = ln.data.resolve(dir, p.given)
		}
		if err != nil {
			return nil, false
		}
		next = union(next, p)
	}
	return next, true
}

// union appends the paths that are not yet in the list.
func union(list []Path, paths ...Path) []Path {
	for _, p := range paths {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// resolve resolves a word, or a part of it. "~" is the home directory only where
// the shell takes it so, and a command's own directory in /proc is not ours.
func (ln *commandLine) resolve(w command.Word, text string, dir Path) (Path, error) {
	if len(text) > realpath.MaxLength || strings.ContainsRune(text, 0) {
		return Path{}, fmt.Errorf("no file has such a name: %s", clip(text))
	}
	if !w.Home && strings.HasPrefix(text, "~") {
		text = "./" + text
	}
	for _, own := range []string{"/proc/self/cwd", "/proc/thread-self/cwd"} {
		if pathname.Within(text, own) {
			text = "." + text[len(own):]
		}
	}
	return ln.data.resolve(dir, text)
}

// fixed returns the word that stands for a text as it is.
func fixed(text string) command.Word { return command.Word{Text: text, Static: true} }

// targets resolves words in each directory the line may be in when it comes to
// them. A word that is not known before the command runs names nothing.
func (ln *commandLine) targets(words []command.Word, dirs []Path, access rules.Access) (out []*target) {
	for _, w := range words {
		if !w.Static && !w.Home || w.Text == "" || isStream(w.Text) {
			continue
		}
		for _, dir := range dirs {
			if p, err := ln.resolve(w, w.Text, dir); err == nil {
				out = append(out, newTarget(p, access, verbOf(access)))
			}
		}
	}
	return out
}

const (
	// maxGlob bounds how many files a wildcard of a command may name before it counts as naming
	// any.
	maxGlob = 1000
	// maxFiles bounds the files of a command that are examined, and the directory entries that
	// are examined to find them. Beyond, the command requires approval.
	maxFiles = 20_000
)

// expand returns the files a wildcard means, by absolute names, if they are at most so many.
// Commands of the line may set how its shell expands wildcards.
func (ln *commandLine) expand(w command.Word, dir Path, most int) ([]string, error) {
	g := pathname.Expansion{Entries: maxFiles, Most: most}
	for _, s := range ln.analysis.Commands {
		for _, w := range s.Args {
			g.Hidden = g.Hidden || w.Text == "dotglob"
			g.Deep = g.Deep || w.Text == "globstar"
			g.Fold = g.Fold || w.Text == "nocaseglob"
		}
	}
	g.Hidden = g.Hidden || strings.Contains(ln.text, "GLOBIGNORE") // sets it as well
	at, pattern := dir.given, w.Text
	switch {
	case w.Home:
		at, pattern = ln.data.home.Given, pattern[1:]
	case filepath.IsAbs(pattern):
		at = filepath.VolumeName(pattern)
		pattern = pattern[len(at):]
	}
	return g.Files(at, pattern)
}
