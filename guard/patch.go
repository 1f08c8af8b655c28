package guard

import (
	"io"
	"os"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
)

// maxPatch is how much of a patch is looked into, in bytes.
const maxPatch = 4 << 20

// patches judges the files that a patch in the line, or in a file that the line reads,
// says it writes.
func (l *line) patches(s command.Simple, dirs []Path) {
	files, text, ok := s.Patch()
	if !ok {
		return
	}
	names := command.PatchedNames(strings.ReplaceAll(text, `\n`, "\n")) // $'…'
	files = append(files, l.analysis.Reads...)
	for _, other := range l.analysis.Commands { // cat x.patch | git apply
		reads, _ := other.Paths()
		files = append(files, reads...)
	}
	for _, t := range l.targets(files, dirs, reading) {
		if f, err := openFile(t.path.real, os.O_RDONLY); err == nil {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				patch, _ := io.ReadAll(io.LimitReader(f, maxPatch))
				names = append(names, command.PatchedNames(string(patch))...)
			}
			f.Close()
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		for _, t := range l.targets([]command.Word{{Text: name, Static: true}}, dirs, writing) {
			l.through(t, l.denied, l.guarded, l.asked, l.exposed)
		}
	}
}
