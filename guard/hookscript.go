package guard

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/settle"
)

// The languages of scripts that the planner reads.
const (
	shellScript  = "sh"
	pythonScript = "python"
)

// interpreter checks a program that runs a text or file. Only shell and Python scripts are read; what other
// interpreters load is not known.
func (t *hookText) interpreter(s command.Simple, dirs []Path) {
	language, isolated := s.Name, false
	if t.p.loaded != "" {
		t.p.contain(t.p.loaded)
	}
	if !command.RunsAlone(s) {
		t.p.contain(s.Name + " loads what lies in the directory it works in, or is not looked into")
	}
	if strings.HasPrefix(s.Name, "python") {
		language = pythonScript
	}
	for i := 1; i < len(s.Args); i++ {
		w := s.Args[i]
		switch {
		case !w.Static && !w.Home:
			t.p.contain(s.Name + " runs a file whose name is not known")
			return
		case len(w.Text) > 1 && w.Text[0] == '-' && language == pythonScript && strings.Trim(w.Text[1:], "bBdEiIOPqRsSuv") == "":
			isolated = isolated || strings.ContainsAny(w.Text, "IP")
		case w.Text == "" || w.Text[0] == '-':
			t.p.contain(s.Name + " " + w.Text + " may load modules from the workspace")
			return
		default:
			if language == pythonScript && isolated {
				language = isolatedPython
			}
			t.script(w, dirs, language)
			t.words(command.Simple{Args: s.Args[i:]}, dirs, t.obeyed)
			return
		}
	}
	t.p.contain(s.Name + " runs what it reads from its standard input")
}

// isolatedPython does not look for modules next to the script.
const isolatedPython = "python -I"

// managed are directories that package managers write. Files in them are not held.
var managed = []string{"node_modules", ".venv", "venv", "vendor", "target", "__pypackages__", ".tox", ".nox"}

// script checks a program or script that a word names. An empty language means that of its first line.
func (t *hookText) script(w command.Word, dirs []Path, language string) {
	if !t.known(w) {
		t.p.contain("it runs a file whose name is not known: " + w.Text)
	}
	for _, text := range t.texts(w) {
		t.file(text, w.Home, dirs, language)
	}
}

// file checks a program or script by its name.
func (t *hookText) file(name string, home bool, dirs []Path, language string) {
	for _, dir := range dirs {
		path, err := t.resolve(name, dir, home)
		if err != nil {
			t.p.contain("it runs a file that cannot be found: " + name)
			continue
		}
		switch {
		case !t.p.writable(path):
			if withinAny(path.real, []string{"/dev", "/proc"}) || t.writes(path) {
				t.p.contain("it runs what it reads or writes itself: " + name)
			}
		case t.p.hold(path):
			t.p.look(path.real)
			t.follow(path, language, dir)
		}
	}
}

// writes reports whether the text writes a file.
func (t *hookText) writes(path Path) bool {
	return slices.ContainsFunc(t.a.Writes, func(w command.Word) bool {
		return slices.ContainsFunc(t.texts(w), func(text string) bool {
			to, err := t.resolve(text, t.dirs[0], true)
			return err == nil && to.real == path.real
		})
	})
}

// holdProtected holds a directory in a protected one, or that of a file there, and reports whether it does. Commands change
// nothing in it, so programs may load other files from it.
func (p *hookPlanner) holdProtected(path Path) bool {
	place := pathname.Place{Given: path.given, Real: path.real}
	if !path.dir {
		place = pathname.Place{Given: filepath.Dir(path.given), Real: filepath.Dir(path.real)}
	}
	dir := pathname.Slashed(place.Real)
	if !p.k.inside.Hold(dir) || withinAny(path.real, p.k.files.writable) || p.linked(path.given) ||
		settle.ClassOf(p.k.recursive(dir)) != settle.Held {
		return false
	}
	p.holdPlace(place)
	return true
}

// hold holds a file. If commands can replace the file anyway, it contains the hook and returns false.
func (p *hookPlanner) hold(path Path) bool {
	for element := range strings.SplitSeq(p.k.recursive(pathname.Slashed(path.real)), "/") {
		if slices.Contains(managed, element) {
			p.contain(path.given + " lies where package managers write")
			return false
		}
	}
	if path.dir {
		p.contain(path.given + " is a directory")
		return false
	}
	p.holdPlace(pathname.Place{Given: path.given, Real: path.real})
	switch {
	case path.links > 1:
		p.contain(path.given + " has other names, by which it can be written")
	case p.linked(path.given):
		p.contain(path.given + " is reached by a link that commands can replace")
	}
	return true
}

func (p *hookPlanner) holdPlace(place pathname.Place) {
	if !slices.Contains(p.held, place) {
		p.held = append(p.held, place)
	}
}

// linked reports whether a link on the way to a file lies where commands write.
func (p *hookPlanner) linked(name string) bool {
	for range maxLinks {
		at, rest := "", ""
		for dir := name; dir != filepath.Dir(dir); dir = filepath.Dir(dir) { // the outermost link
			if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
				at, rest = dir, strings.TrimPrefix(name, dir)
			}
		}
		if at == "" {
			return false
		}
		if dir := filepath.Dir(at); p.writable(Path{given: dir, real: dir}) {
			return true
		}
		to, err := os.Readlink(at)
		if err != nil {
			return true
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		name = filepath.Clean(to + rest)
	}
	return true
}

const (
	maxLinks      = 40       // as the kernel counts them
	maxHookScript = 64 << 10 // bytes of a script that is read
)

// shebang matches the program in the first line of a script, if it is a program of the system or found in PATH.
var shebang = regular(`^#![ \t]*(?:(?:/usr)?/bin/env[ \t]+|(?:/usr(?:/local)?|/opt/homebrew)?/bin/)([\w.+-]+)([ \t][^\n]*)?\n`)

// follow checks a file that the hook runs in a directory.
func (t *hookText) follow(path Path, language string, dir Path) {
	key := path.real + "\x00" + dir.real + "\x00" + language
	if t.p.read[key] {
		return
	}
	if t.p.read == nil {
		t.p.read = map[string]bool{}
	}
	t.p.read[key] = true
	f, err := path.Open()
	if t.p.k.absent.late(path.real, err != nil && !realpath.Exists(path.real)) {
		t.p.contain(path.given + " did not exist when the host started")
	}
	if err != nil {
		t.p.contain(path.given + " cannot be read: it may not exist yet")
		return
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHookScript+1))
	if err != nil {
		t.p.contain(path.given + " cannot be read")
		return
	}
	if language == "" {
		if language = languageOf(text); language == "" {
			return // a binary
		}
	}
	if len(text) > maxHookScript {
		t.p.contain(path.given + " is too long to be looked into")
		return
	}
	switch language {
	case shellScript:
		t.p.text(string(text), []Path{dir}, pathOf(pathname.Place{Given: filepath.Dir(path.given), Real: filepath.Dir(path.real)}))
	case pythonScript, isolatedPython:
		t.python(path, string(text), language == isolatedPython)
	default:
		t.p.contain("what " + path.given + " loads is not known: " + language)
	}
}

// languageOf returns the language of an executable file, "" if it is not a script.
func languageOf(text []byte) string {
	if m := shebang().FindSubmatch(text); m != nil {
		name, rest := string(m[1]), strings.TrimSpace(string(m[2]))
		plain := rest == "" || rest[0] == '-' && !strings.Contains(rest, " ")
		switch {
		case plain && slices.Contains([]string{"sh", "bash", "dash", "ash"}, name):
			return shellScript
		case plain && strings.HasPrefix(name, "python"):
			return pythonScript
		}
		return name
	}
	if bytes.HasPrefix(text, []byte("#!")) {
		return "a program that its first line names"
	}
	if bytes.IndexByte(text[:min(len(text), 512)], 0) >= 0 {
		return ""
	}
	return shellScript
}

// pythonStarts matches Python code that starts other programs, or loads modules from elsewhere, as people usually
// write it.
var pythonStarts = regular(`\bsubprocess\b|\bos\s*\.\s*(system|popen|exec\w*|spawn\w*|posix_spawn\w*|startfile|chdir)\b|\bpopen\b|\bpty\b|\brunpy\b|\bimportlib\b|__import__|` +
	`(^|[^.\w])(exec|eval|compile)\s*\(|\bsys\s*\.\s*path\b|\bsite\b|\b(pexpect|plumbum|invoke|fabric|sarge|delegator|ctypes|cffi)\b|\bimport\s+sh\b|\bcreate_subprocess`)

// python checks a Python script. Python looks for modules in the directory of the script first.
func (t *hookText) python(path Path, text string, isolated bool) {
	dir := filepath.Dir(path.real)
	switch found := pythonStarts().FindString(text); {
	case found != "":
		t.p.contain(path.given + " may start other programs: " + strings.TrimSpace(found))
	case !isolated && !t.p.holdProtected(path):
		t.p.contain(path.given + " loads modules from its directory, in which commands can write")
	case !isolated && siblings(dir, text):
		t.p.contain(path.given + " loads modules that are not looked into")
	}
}

var pythonImport = regular(`(?m)^\s*(?:from\s+\.*(\w+)|import\s+([\w., \t]+))`)

// siblings reports whether a script imports modules from its own directory.
func siblings(dir, text string) bool {
	for _, m := range pythonImport().FindAllStringSubmatch(text, -1) {
		for name := range strings.FieldsFuncSeq(m[1]+m[2], func(r rune) bool { return strings.ContainsRune(", \t", r) }) {
			name, _, _ = strings.Cut(name, ".")
			for _, file := range []string{name, name + ".py"} {
				if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
					return true
				}
			}
		}
	}
	return false
}
