package guard

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/settings"
)

// A hookPlanner determines whether the command of a hook can run outside of the sandbox: each program must be known and lie
// where no command writes, or be a held file of the workspace. The text of a hook is the user's own, so it is read at face
// value. A hook that the planner does not understand is contained.
type hookPlanner struct {
	k       *policyData
	search  string // PATH without what commands can write
	dropped string // the rest of PATH

	loaded string // why a program that loads modules cannot run outside, "" if it can
	why    string // why it cannot run outside, "" so far
	held   []pathname.Place
	looked []lookedAt
	read   map[string]bool // scripts that were read, with the directory they run in
}

// contain records the first reason why the hook cannot run outside.
func (p *hookPlanner) contain(why string) {
	if p.why == "" {
		p.why = why
	}
}

// projectDir is the variable that holds the project's directory for hooks.
const projectDir = "CLAUDE_PROJECT_DIR"

// These stand in an analyzed text for the project's directory, the directory of the script that the text is from, the home
// directory, and a new temporary file. They are plain words, whatever the names of the directories are.
const (
	inProject = "/.hook-project"
	inScript  = "/.hook-script"
	inHome    = "/.hook-home"
	inTemp    = "/.hook-temp"
)

// regular returns an expression that is compiled on first use.
func regular(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// hook plans one hook.
func (p *hookPlanner) hook(h settings.Hook) {
	if h.Shell != "" && h.Shell != "bash" {
		p.contain("the text of " + h.Shell + " is not looked into")
		return
	}
	p.environment()
	text := h.Command
	if h.Args != nil {
		text = command.Quote(h.Command)
		for _, arg := range h.Args {
			text += " " + command.Quote(arg)
		}
	}
	project := pathOf(p.k.roots[0])
	p.text(text, []Path{project}, project)
}

// loaders are variables that make programs load files. A user may have set them to directories of the workspace.
var loaders = []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "NODE_PATH", "NODE_OPTIONS", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT"}

// environment checks the variables of the host that affect every hook, or the modules that its programs load.
func (p *hookPlanner) environment() {
	dirs := []Path{pathOf(p.k.roots[0])}
	for _, name := range loaders {
		for piece := range pieces(os.Getenv(name)) {
			switch path, ok := p.named(piece, dirs); {
			case !ok || !p.writable(path):
			case strings.HasPrefix(name, "LD_"):
				p.contain(name + " names a file or directory of the workspace")
			default:
				p.loaded = name + " names a file or directory of the workspace"
			}
		}
	}
}

var (
	// projectRef matches references to the project's directory in a text. pwdRef matches those to the working directory, which
	// is the same if no cd precedes.
	projectRef = regular(`\$` + projectDir + `\b|\$\{` + projectDir + `(:?[-?][^}$` + "`" + `"]*)?\}`)
	pwdRef     = regular("\\$PWD\\b|\\$\\{PWD\\}|\\$\\(pwd\\)|`pwd`")
	movesDir   = regular(`\b(cd|pushd|popd|chdir)\b`)
	// scriptRef matches how scripts find their own directory.
	scriptRef = regular(`\$\(cd (-- )?"?\$\(dirname (-- )?"?(\$0|\$\{0\}|\$BASH_SOURCE|\$\{BASH_SOURCE(\[0\])?\})"?\)"? (>/dev/null 2>&1 )?&& pwd( -P)?\)|` +
		`\$\(dirname (-- )?"?(\$0|\$\{0\}|\$BASH_SOURCE|\$\{BASH_SOURCE(\[0\])?\})"?\)|\$\{(0|BASH_SOURCE(\[0\])?)%/\*\}`)
	// tempRef matches a file name that mktemp returns.
	tempRef = regular(`\$\(mktemp( -d)?( -t [\w.-]+)?\)`)
	// homeRef matches the assignment of a file in the home directory to a variable.
	homeRef     = regular(`\b([A-Za-z_]\w*=)("?)(\$HOME\b|\$\{HOME\}|~)(/[^\s"]|")`)
	setsProject = regular(`\b` + projectDir + `=`)
)

// text checks what a shell would run in one of the directories. script is the directory of the file that the text is from.
func (p *hookPlanner) text(text string, dirs []Path, script Path) {
	if setsProject().MatchString(text) {
		p.contain("it sets " + projectDir)
	}
	text = projectRef().ReplaceAllLiteralString(text, inProject)
	text = scriptRef().ReplaceAllLiteralString(text, inScript)
	text = tempRef().ReplaceAllLiteralString(text, inTemp)
	text = homeRef().ReplaceAllStringFunc(text, func(found string) string {
		if m := homeRef().FindStringSubmatch(found); m[1] != "PATH=" && (m[2] == "" || m[3] != "~") {
			return m[1] + m[2] + inHome + m[4]
		}
		return found
	})
	if !movesDir().MatchString(text) && len(dirs) == 1 && dirs[0].given == p.k.roots[0].Given {
		text = pwdRef().ReplaceAllLiteralString(text, inProject)
	}
	t := &hookText{p: p, a: command.Analyze(text), source: text, dirs: dirs, from: script}
	t.doubts()
	t.path()
	t.assignments()
	for i, s := range t.a.Commands {
		t.command(i, s)
	}
	for _, w := range t.a.Reads {
		t.redirected(w)
	}
	for _, w := range t.a.Writes {
		t.written(w, "it writes a file of the workspace, which a command may have replaced by a link")
	}
}

// A hookText is one text to check.
type hookText struct {
	p      *hookPlanner
	a      *command.Analysis
	source string
	dirs   []Path
	from   Path // the directory of the file that it is from
	obeys  bool // an unknown program is among the commands
}

// doubts contains a text if it is not known what it runs.
func (t *hookText) doubts() {
	var accepted []string
	for _, s := range t.a.Commands {
		accepted = append(accepted, command.Accepted(s)...)
		if len(s.Args) > 0 && t.known(s.Args[0]) {
			accepted = append(accepted, command.UnknownProgram+s.Args[0].Text)
		}
	}
	for _, reason := range t.a.Undecidable {
		if t.a.Partial || !slices.Contains(accepted, reason) {
			t.p.contain(reason)
		}
	}
}

var pathSet = regular(`\bPATH\+?=("[^"]*"|'[^']*'|[^\s;&|]*)`)

// path contains a text that looks for programs in the workspace.
func (t *hookText) path() {
	for _, m := range pathSet().FindAllStringSubmatch(t.source, -1) {
		for entry := range strings.SplitSeq(strings.Trim(m[1], `"'`), ":") {
			if entry == "$PATH" || entry == "${PATH}" {
				continue
			}
			if rest, ok := strings.CutPrefix(entry, "$HOME"); ok {
				entry = "~" + rest
			}
			path, err := t.resolve(entry, t.dirs[0], true)
			if err != nil || strings.ContainsAny(entry, "$`") || !filepath.IsAbs(entry) && !isHome(entry) || t.p.writable(path) {
				t.p.contain("it has programs looked for in " + entry)
			}
		}
	}
}

// assignments contains a text that passes a program a variable that names a file of the workspace.
func (t *hookText) assignments() {
	var given []string
	for _, s := range t.a.Commands {
		given = append(given, s.Assigns...)
		if s.Name == "export" || s.Name == "declare" || s.Name == "typeset" {
			for _, w := range s.Args[1:] {
				name, _, _ := strings.Cut(w.Text, "=")
				given = append(given, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.a.Assigned)) {
		if _, set := os.LookupEnv(name); !set && !slices.Contains(given, name) {
			continue
		}
		for _, value := range t.a.Assigned[name] {
			for piece := range pieces(value) {
				if path, ok := t.p.named(piece, t.dirs); ok && t.p.inWorkspace(path) {
					t.p.contain(name + " names " + path.given + ", which commands can write")
				}
			}
		}
	}
}

// written contains a text that writes a file where commands write, or an unknown file.
func (t *hookText) written(w command.Word, why string) {
	dirs, ok := t.places(w.Places)
	for _, text := range t.texts(w) {
		for _, dir := range dirs {
			path, err := t.resolve(text, dir, w.Home || !w.Static)
			if err != nil || t.p.writable(path) && !t.p.holdProtected(path) {
				t.p.contain(why + ": " + w.Text)
			}
		}
	}
	if !w.Named() || !ok && !filepath.IsAbs(w.Text) && !w.Home {
		t.p.contain("it writes a file whose name is not known: " + w.Text)
	}
}

// redirected holds a file of the workspace that a program may read as its input.
func (t *hookText) redirected(w command.Word) {
	dirs, _ := t.places(w.Places)
	for _, text := range t.texts(w) {
		if path, ok := t.p.named(text, dirs); ok && t.obeys && t.p.inWorkspace(path) {
			t.obeyed(path)
		}
	}
}

// texts returns the possible values of a word, as far as the text determines them.
func (t *hookText) texts(w command.Word) []string {
	if w.Static || w.Home {
		return []string{w.Text}
	}
	return w.Guesses
}

// known reports whether the text determines the single file that a word names.
func (t *hookText) known(w command.Word) bool { return !w.Glob && !w.Wild && w.Named() }

// places returns the directories that a command may run in, and false if they are not known.
func (t *hookText) places(places []command.Place) ([]Path, bool) {
	if places == nil {
		return t.dirs, false
	}
	var all []Path
	for _, place := range places {
		for _, dir := range t.dirs {
			for _, step := range place {
				next, err := t.resolve(step.Text, dir, step.Home)
				if err != nil {
					return t.dirs, false
				}
				dir = next
			}
			all = append(all, dir)
		}
	}
	return all, true
}

// resolve returns the file that a text names in a directory; home says that "~" is the home directory.
func (t *hookText) resolve(text string, dir Path, home bool) (Path, error) {
	for token, at := range map[string]Path{inProject: pathOf(t.p.k.roots[0]), inScript: t.from, inHome: pathOf(t.p.k.home)} {
		if rest, ok := strings.CutPrefix(text, token); ok && (rest == "" || rest[0] == '/') {
			dir, text = at, "./"+rest
		}
	}
	if !home && isHome(text) {
		text = "./" + text
	}
	if err := realpath.Check(dir.real, text); err != nil {
		return Path{}, err
	}
	return t.p.k.resolve(dir, text)
}

// named returns the existing file that a piece of a word names in one of the directories, if any.
func (p *hookPlanner) named(piece string, dirs []Path) (Path, bool) {
	t := &hookText{p: p, from: dirs[0]}
	for _, dir := range dirs {
		if path, err := t.resolve(piece, dir, true); err == nil && realpath.Exists(path.real) {
			return path, true
		}
	}
	return Path{}, false
}

// writable reports whether tools or commands can write a file, by any of its names.
func (p *hookPlanner) writable(path Path) bool {
	return p.k.inside.Hold(pathname.Slashed(path.given)) || p.k.inside.Hold(pathname.Slashed(path.real)) ||
		withinAny(path.real, p.k.files.writable) || withinAny(path.given, p.k.files.writable)
}

// inWorkspace reports whether a path lies below a directory that commands can write. The directory itself does not count: a
// hook knows the project's directory anyway.
func (p *hookPlanner) inWorkspace(path Path) bool {
	return p.writable(path) && !slices.ContainsFunc(p.k.bounds, func(b pathname.Place) bool { return b.Real == path.real })
}

// find returns the path of a program in PATH, "" if there is none.
func find(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	return ""
}
