package guard

import (
	"errors"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/realpath"
)

// maxPatch is the size of the largest patch that is looked into, in bytes.
const maxPatch = 4 << 20

// patches judges the files that a patch in the line, or in a file that the line reads,
// says it writes.
func (l *line) patches(s command.Simple, dirs []Path) {
	files, ok := s.Patch()
	if !ok {
		return
	}
	lines := strings.NewReplacer(`\n`, "\n", "<<<", "\n") // $'…', printf, a here-string
	names := command.PatchedNames(lines.Replace(l.text))
	files = append(files, l.analysis.Reads...)
	for _, other := range l.analysis.Commands { // cat x.patch | git apply
		reads, _ := other.Paths()
		files = append(files, reads...)
	}
	for _, t := range l.targets(files, dirs, reading) {
		patch, err := realpath.ReadSmall(t.path.real, maxPatch)
		if errors.Is(err, realpath.ErrPart) {
			l.tooMuch("apply "+t.given, "The patch "+t.given+" is too large to be looked into.")
		}
		names = append(names, command.PatchedNames(string(patch))...)
	}
	slices.Sort(names)
	names = l.notable("the patch", slices.Compact(names), dirs[0], l.k.ask.HasPaths() || l.k.deny.HasPaths())
	for _, name := range names {
		for _, t := range l.targets([]command.Word{{Text: name, Static: true}}, dirs, writing) {
			l.through(t, l.denied, l.guarded, l.asked, l.exposed)
		}
	}
}
