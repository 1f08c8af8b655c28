package guard

import (
	"iter"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// A hostLine is the analyzed command line of a [HostCommand].
type hostLine struct{ *commandLine }

// named returns the existing file that a text names in a directory, if any.
func (t *hostLine) named(text string, dir Path) (Path, bool) {
	path, err := t.resolve(command.Word{Home: true}, text, dir)
	return path, err == nil && realpath.Exists(path.real)
}

// exposed reports whether tools or commands can write a file, by any of its names.
func (t *hostLine) exposed(path Path) bool {
	k := t.data
	return k.inside.Hold(pathname.Slashed(path.given)) || k.inside.Hold(pathname.Slashed(path.real)) ||
		withinAny(path.real, k.files.writable) || withinAny(path.given, k.files.writable)
}

// inWorkspace reports whether a path lies below a directory that commands can write. The directory itself does not
// count.
func (t *hostLine) inWorkspace(path Path) bool {
	return t.exposed(path) &&
		!slices.ContainsFunc(t.data.bounds, func(b pathname.Place) bool { return b.Real == path.real })
}

// pieces returns the texts in a word that may be file names: it splits key=value, -Fvalue, lists and quoted text.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{"": true}
		give := func(piece string) bool {
			piece = strings.TrimPrefix(piece, "@")
			if seen[piece] || strings.ContainsRune(piece, 0) || len(piece) > maxPiece {
				return true
			}
			seen[piece] = true
			return yield(piece)
		}
		if !give(text) {
			return
		}
		if len(text) > 2 && text[0] == '-' && text[1] != '-' && !give(text[2:]) {
			return
		}
		for _, separators := range []string{"=", "=:", " \t\n=:;,|&()<>{}[]\"'`#"} {
			for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
				if !give(piece) {
					return
				}
			}
		}
	}
}

// maxPiece bounds a piece of a word that is looked up as a file.
const maxPiece = 4096
