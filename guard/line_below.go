package guard

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// descends are the programs that go through the directories they are given.
var descends = []string{"grep", "egrep", "fgrep", "rg", "ag", "ack", "tar", "cp", "scp", "rsync", "diff", "zip", "mv", "ln"}

// recursive judges what a command comes to by itself in a directory: grep -r, tar, cp -r, what find or
// xargs hand to another program. Nothing else holds the ask rules there.
func (l *commandJudge) recursive(s command.Simple, files []command.Word, dirs []Path) {
	if l.data.ask.Read.Empty() {
		return
	}
	here := command.Word{Text: ".", Static: true}
	switch {
	case slices.ContainsFunc(s.Args[1:], command.Word.Given) && !command.Talks(s) && s.Name != "rm":
		files = []command.Word{here}
	case !slices.Contains(descends, s.Name):
		return
	case len(files) == 0:
		files = append(s.Args[1:], here)
	}
	for _, t := range l.files(files, dirs, reading) {
		if found := l.askedBelow(s, t); found != "" {
			r, what := l.data.ask.Read.Match(pathname.Slashed(found), false), found
			if rest, err := filepath.Rel(l.dirs[0].real, found); err == nil && filepath.IsLocal(rest) {
				what = rest
			}
			l.add(Part{What: "run " + s.Text, Action: Ask, Rule: r.Text, Source: r.Source, Final: true,
				Reason: fmt.Sprintf("The command %s comes to %s, which requires approval by a rule.", clip(s.Text), what),
				Remedy: "Name other files or directories, or use Grep, which leaves it out."})
			return
		}
	}
}

// askedBelow returns a file below a directory that an ask rule speaks of. What is denied no command
// comes to.
func (l *commandJudge) askedBelow(s command.Simple, t *target) (found string) {
	if !t.path.dir {
		return ""
	}
	left := maxFollowed
	_ = filepath.WalkDir(t.path.real, func(path string, d fs.DirEntry, err error) error { // what cannot be listed is not read either
		if left--; left < 0 {
			l.tooMuch("read "+t.given, "More files lie in "+t.given+" than are held against the rules on files.")
			return fs.SkipAll
		}
		name := pathname.Slashed(path)
		switch {
		case err != nil:
			return nil
		case d.Name() == ".git" || slices.ContainsFunc(s.Args, func(w command.Word) bool {
			return w.Text == "--exclude="+d.Name() || w.Text == "--exclude-dir="+d.Name()
		}) || l.data.deny.Read.Match(name, d.IsDir()) != nil:
			return skip(d.IsDir())
		case d.IsDir() || l.data.ask.Read.Match(name, false) == nil:
			return nil
		}
		found = path
		return fs.SkipAll
	})
	return found
}
