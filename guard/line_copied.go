package guard

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// copyTargets judges what a command puts into a directory that is there, under the names of
// what it copies: cp x/.envrc . and cp -r x/. .
func (l *commandJudge) copyTargets(s command.Simple, from []command.Word, into *target, dirs []Path) {
	if !slices.Contains([]string{"cp", "mv", "ln", "install", "rsync"}, s.Name) || !l.inside(into) {
		return
	}
	names := l.notable("what is copied", l.copiedNames(from, dirs), into.path, l.data.ask.HasPaths() || l.data.deny.HasPaths())
	for _, name := range names {
		if p, err := l.data.resolve(into.path, name); err == nil {
			l.through(newTarget(p, writing, "write "), l.denied, l.selfProtection, l.deniedHardlink, l.asked, l.writesProtected)
		}
	}
}

// makesDir reports whether the line makes a directory of that name.
func (l *commandJudge) makesDir(t *target) bool {
	return slices.ContainsFunc(l.analysis.Commands, func(s command.Simple) bool {
		if s.Name != "mkdir" {
			return false
		}
		_, made := s.Paths()
		return slices.ContainsFunc(l.targets(made, l.standsIn(s.Places), writing), func(dir *target) bool { return dir.real == t.real })
	})
}

// copiedNames returns the names that files keep which are copied: of "x/." those in x.
func (l *commandJudge) copiedNames(from []command.Word, dirs []Path) (names []string) {
	for _, t := range l.files(from, dirs, writing) {
		if base := filepath.Base(t.path.given); !t.path.dir || !slices.ContainsFunc(from, func(w command.Word) bool { return strings.HasSuffix(w.Text, ".") || strings.HasSuffix(w.Text, "/") }) {
			names = append(names, base)
			continue
		}
		found, err := pathname.List(t.path.real, maxJudged)
		if err != nil {
			l.tooMuch("copy "+t.path.given, "The directory "+t.path.given+" holds too many files to look at the names that they get.")
		}
		names = append(names, found...)
	}
	return names
}

// linkedRules keeps commands that nothing contains from giving the guard's own rules another name, by which they could be
// written. A symbolic link is followed.
func (l *commandJudge) linkedRules(s command.Simple) check {
	symbolic := slices.ContainsFunc(s.Args[1:], func(w command.Word) bool {
		return w.Text == "--symbolic" || isOption(w.Text) && w.Text[1] != '-' && strings.Contains(w.Text, "s")
	})
	return func(t *target) (Part, bool) {
		if symbolic || l.contained() || !l.isControl(t.path) {
			return Part{}, false
		}
		return l.selfProtection(t)
	}
}

// maxPatch is the size of the largest patch that is looked into, in bytes.
const maxPatch = 4 << 20

// patches judges the files that a patch in the line, or in a file that the line reads,
// says it writes.
func (l *commandJudge) patches(s command.Simple, dirs []Path) {
	if !s.Patches() {
		return
	}
	lines := strings.NewReplacer(`\n`, "\n", "<<<", "\n") // $'…', printf, a here-string
	names := command.PatchedNames(lines.Replace(l.text))
	files := slices.Clone(l.analysis.Reads)
	for _, other := range l.analysis.Commands { // cat x.patch | git apply
		files = append(files, other.Args[1:]...)
	}
	for _, t := range l.targets(files, dirs, reading) {
		patch, err := realpath.ReadSmall(t.path.real, maxPatch)
		if errors.Is(err, realpath.ErrPart) {
			l.tooMuch("apply "+t.given, "The patch "+t.given+" is too large to be looked into.")
		}
		names = append(names, command.PatchedNames(string(patch))...)
	}
	slices.Sort(names)
	names = l.notable("the patch", slices.Compact(names), dirs[0], l.data.ask.HasPaths() || l.data.deny.HasPaths())
	for _, name := range names {
		for _, t := range l.targets([]command.Word{{Text: name, Static: true}}, dirs, writing) {
			l.through(t, l.denied, l.selfProtection, l.asked, l.writesProtected)
		}
	}
}
