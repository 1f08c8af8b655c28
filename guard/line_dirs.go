package guard

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// follow finds the directories that the line changes to. Where it is not understood
// which of its commands run in which, each is judged as if it ran in all of them.
func (l *commandJudge) follow() {
	entered := false
	for _, s := range l.analysis.Commands {
		switch s.Name {
		case "cd", "pushd":
			l.enter(s)
			entered = true
		case "env", "genv", "sudo", "doas":
			l.lost = l.lost || l.analysis.ChangesDir && len(s.Args) > 1 && isOption(s.Args[1].Text)
		}
	}
	l.lost = l.lost || l.analysis.ChangesDir && !entered
}

// maxDirs bounds the directories that one line is followed into.
const maxDirs = 8

func (l *commandJudge) enter(s command.Simple) {
	w := command.Word{Text: "~", Static: true, Home: true}
	if len(s.Args) > 1 {
		w = s.Args[len(s.Args)-1]
	}
	if !w.Static && !w.Home || w.Text == "-" || len(l.dirs) > maxDirs {
		l.lost = true
		return
	}
	for _, dir := range slices.Clone(l.dirs) {
		if p, err := l.resolve(w, w.Text, dir); err == nil && !slices.Contains(l.dirs, p) {
			l.dirs = append(l.dirs, p)
		}
	}
}

// standsIn returns the directories that a command or redirection may run in. Bash takes
// ".." back along the names it came by, the kernel along the directories: both are
// looked at.
func (l *commandJudge) standsIn(places []command.Place) []Path {
	var all []Path
	for _, place := range places {
		dirs, known := l.places[place.Key()]
		if !known {
			if dirs = l.walk(place); l.places == nil {
				l.places = map[string][]Path{}
			}
			l.places[place.Key()] = dirs
		}
		if len(dirs) == 0 {
			return l.dirs
		}
		for _, dir := range dirs {
			if !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	if len(all) == 0 {
		return l.dirs
	}
	return all
}

// walk returns where the steps of a place lead, nothing if that is not known.
func (l *commandJudge) walk(place command.Place) []Path {
	dirs := l.dirs[:1]
	for _, step := range place {
		var next []Path
		for _, dir := range dirs {
			p, err := l.resolve(step, step.Text, dir)
			if err != nil {
				return nil
			}
			next = append(next, p)
			if !strings.Contains(step.Text, "..") {
				continue
			}
			if p, err = l.data.resolve(dir, p.given); err != nil {
				return nil
			}
			if !slices.Contains(next, p) {
				next = append(next, p)
			}
		}
		if dirs = next; len(dirs) > maxDirs {
			return nil
		}
	}
	return dirs
}

// resolve resolves a word, or a part of it. "~" is the home directory only where
// the shell takes it so, and a command's own directory in /proc is not ours.
func (l *commandJudge) resolve(w command.Word, text string, dir Path) (Path, error) {
	if !w.Home && strings.HasPrefix(text, "~") {
		text = "./" + text
	}
	for _, own := range []string{"/proc/self/cwd", "/proc/thread-self/cwd"} {
		if pathname.Within(text, own) {
			text = "." + text[len(own):]
		}
	}
	return l.data.resolve(dir, text)
}
