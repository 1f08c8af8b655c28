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
type hostLine struct {
	k    *policyData
	a    *command.Analysis
	dirs []Path // in which it starts
}

// texts returns the possible values of a word, as far as the text determines them.
func (t *hostLine) texts(w command.Word) []string {
	if w.Static || w.Home {
		return []string{w.Text}
	}
	return w.Guesses
}

// places returns the directories that a command may run in, or those of the line if they are not known.
func (t *hostLine) places(places []command.Place) []Path {
	var all []Path
	for _, place := range places {
		for _, dir := range t.dirs {
			for _, step := range place {
				next, err := t.resolve(step.Text, dir, step.Home)
				if err != nil {
					return t.dirs
				}
				dir = next
			}
			all = append(all, dir)
		}
	}
	if places == nil {
		return t.dirs
	}
	return all
}

// resolve returns the file that a text names in a directory; home says that "~" is the home directory.
func (t *hostLine) resolve(text string, dir Path, home bool) (Path, error) {
	if rest, ok := strings.CutPrefix(text, inProject); ok && (rest == "" || rest[0] == '/') {
		dir, text = pathOf(t.k.roots[0]), "./"+rest
	}
	if !home && isHome(text) {
		text = "./" + text
	}
	if err := realpath.Check(dir.real, text); err != nil {
		return Path{}, err
	}
	return t.k.resolve(dir, text)
}

// named returns the existing file that a text names in a directory, if any.
func (t *hostLine) named(text string, dir Path) (Path, bool) {
	path, err := t.resolve(text, dir, true)
	return path, err == nil && realpath.Exists(path.real)
}

// exposed reports whether tools or commands can write a file, by any of its names.
func (t *hostLine) exposed(path Path) bool {
	k := t.k
	return k.inside.Hold(pathname.Slashed(path.given)) || k.inside.Hold(pathname.Slashed(path.real)) ||
		withinAny(path.real, k.files.writable) || withinAny(path.given, k.files.writable)
}

// inWorkspace reports whether a path lies below a directory that commands can write. The directory itself does not
// count.
func (t *hostLine) inWorkspace(path Path) bool {
	return t.exposed(path) && !slices.ContainsFunc(t.k.bounds, func(b pathname.Place) bool { return b.Real == path.real })
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
