package guard

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
)

// command checks one command of the text: its program, and the words that the program may run or obey.
func (t *hookText) command(index int, s command.Simple) {
	if len(s.Args) == 0 {
		return
	}
	program := s.Args[0]
	if !program.Static && !program.Home {
		if !t.known(program) {
			t.p.contain("the program is not known before it runs: " + program.Text)
		}
		for _, text := range t.texts(program) {
			if command.Known(text) {
				t.p.contain("the program is not known before it runs: " + program.Text)
			}
			s.Name, s.Args = filepath.Base(text), append([]command.Word{{Text: text, Static: true}}, s.Args[1:]...)
			t.command(index, s)
		}
		return
	}
	dirs, known := t.places(s.Places)
	if !known && !command.Talks(s) {
		t.p.contain("the directory that " + s.Name + " runs in is not known")
	}
	t.program(s, dirs, known && !strings.Contains(s.Via, "find") && !strings.Contains(s.Via, "fd")) // -execdir
	t.operands(index, s, dirs)
}

// program checks where the program of a command lies. known says that the directories it runs in are known.
func (t *hookText) program(s command.Simple, dirs []Path, known bool) {
	program := s.Args[0]
	if strings.Contains(program.Text, "/") {
		if !known && !filepath.IsAbs(program.Text) && !program.Home {
			t.p.contain("the directory that " + program.Text + " is started in is not known")
		}
		t.script(program, dirs, "")
	} else if found := find(s.Name, t.p.search); found != "" {
		if path, err := t.resolve(found, dirs[0], false); err != nil || t.p.writable(path) {
			t.p.contain(found + " leads into the workspace")
		}
	} else if found := find(s.Name, t.p.dropped); found != "" {
		t.p.contain(found + " lies where commands can write")
	}
}

// operands checks the arguments of a command, depending on its program.
func (t *hookText) operands(index int, s command.Simple, dirs []Path) {
	switch {
	case s.Local:
	case command.ObeysWorkspace(s.Name):
		t.p.contain(s.Name + " runs or obeys files of the workspace, or writes them")
	case command.IsShell(s):
		for _, w := range command.Scripts(s) {
			t.script(w, dirs, shellScript)
		}
	case s.Name == "osascript" && len(s.Args) > 2 && s.Args[1].Text == "-e": // it shows a notification
		t.words(s, dirs, func(path Path) { t.p.contain("osascript is given " + path.given + ", which commands can write") })
	case command.IsInterpreter(s.Name):
		t.interpreter(s, dirs)
	case t.wraps(index):
		t.lead(s, dirs)
	case command.Writes(s):
		_, files := s.Files()
		for _, w := range files {
			if w.Text != "-" { // standard output
				t.written(w, s.Name+" changes a file of the workspace")
			}
		}
		t.words(s, dirs, func(path Path) { t.p.contain(s.Name + " is given " + path.given + ", which commands can write") })
	case !command.Talks(s) && !s.ReadOnly():
		if t.obeys = true; t.p.loaded != "" {
			t.p.contain(t.p.loaded)
		}
		if name, ok := command.Starts(s); ok {
			t.p.contain(s.Name + " may start " + name)
		}
		t.words(s, dirs, t.obeyed)
	}
}

// wraps reports whether the command runs another one that is part of its words.
func (t *hookText) wraps(index int) bool {
	return slices.ContainsFunc(t.a.Commands, func(s command.Simple) bool { return s.Outer == index })
}

// lead contains a text that passes a program a variable, by env, that names a file of the workspace.
func (t *hookText) lead(s command.Simple, dirs []Path) {
	for _, w := range s.Args[1:] {
		if _, value, ok := strings.Cut(w.Text, "="); ok && s.Name != "xargs" {
			t.words(command.Simple{Args: []command.Word{s.Args[0], {Text: value, Static: true}}}, dirs, func(path Path) {
				t.p.contain(w.Text + " names a file or directory that commands can write")
			})
		}
	}
}

// obeyed holds a file that a program may run or obey.
func (t *hookText) obeyed(path Path) {
	if t.p.holdProtected(path) {
		return
	}
	if path.dir {
		t.p.contain("a program is given the directory " + path.given + ", in which commands can write")
		return
	}
	t.p.hold(path)
}

// words calls found for each file of the workspace that a word of the command, or a part of it, may name.
func (t *hookText) words(s command.Simple, dirs []Path, found func(Path)) {
	for _, w := range s.Args[1:] {
		if (w.Glob || w.Wild) && !t.elsewhere(w.Text) {
			t.p.contain(s.Name + " is given files by a pattern: " + w.Text)
		}
		for _, text := range t.texts(w) {
			for piece := range pieces(text) {
				for _, dir := range dirs {
					if path, ok := t.p.named(piece, []Path{dir}); ok && t.p.inWorkspace(path) {
						found(path)
					}
				}
			}
		}
	}
}

// elsewhere reports whether a pattern matches only files outside of the workspace.
func (t *hookText) elsewhere(pattern string) bool {
	base, _, _ := strings.Cut(pattern, "*")
	if i := strings.LastIndexByte(base, '/'); i > 0 && (filepath.IsAbs(base) || isHome(base)) && !strings.ContainsAny(base[:i], "?[$`") {
		path, err := t.resolve(base[:i], t.dirs[0], true)
		return err == nil && !t.p.writable(path)
	}
	return false
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
