package guard

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// emptied matches a removal that is one of "/" or all of its children when the
// variable in it is empty.
var emptied = regexp.MustCompile(`^["']?\$(\{[^}]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*])["']?/+["']?[.*?]*["']?$`)

// removals asks before a directory is removed that no one means to remove.
func (l *commandJudge) removals() {
	for _, s := range l.analysis.Commands {
		if s.Name != "rm" && s.Name != "rmdir" {
			continue
		}
		for _, w := range s.Args[1:] {
			if l.removesCritical(w, l.standsIn(s.Places)) {
				part := Part{What: "run " + s.Text, Action: Ask, Rule: ruleCritical, Source: builtIn, Final: true,
					Reason: fmt.Sprintf("%s would remove, or could remove, a root, home or workspace directory.", clip(s.Text)),
					Remedy: "Name what is to be removed more closely; a person must agree to this in any mode."}
				l.add(part)
				break
			}
		}
	}
}

func (l *commandJudge) removesCritical(w command.Word, dirs []Path) bool {
	if !w.Static && !w.Home && !w.Glob {
		return emptied.MatchString(w.Text) || slices.ContainsFunc(w.Guesses(), func(text string) bool {
			return text != "" && l.removesCritical(command.Word{Text: text, Static: true}, dirs)
		})
	}
	if isOption(w.Text) {
		return false
	}
	text, children := w.Text, false
	if w.Glob {
		var last string
		text, last = cutGlob(w.Text)
		if last == "" {
			return false
		}
		children = true
		if l.lost && text == "." {
			return true
		}
	}
	for _, dir := range dirs {
		p, err := l.resolve(w, text, dir)
		if err != nil {
			continue
		}
		for _, name := range []string{pathname.Slashed(p.given), pathname.Slashed(p.real)} {
			if children && name == "/" || l.data.isCritical(name) {
				return true
			}
		}
	}
	return false
}

// rerouting refuses to rename, remove or replace a link or a directory by which the host comes to a file that it obeys or writes.
// Where commands are contained the sandbox keeps it in its place.
func (l *commandJudge) rerouting(s command.Simple) func(*target) (Part, bool) {
	return func(t *target) (Part, bool) {
		if l.contained() || !replaces(s, t) {
			return Part{}, false
		}
		dir, _, err := realpath.Follow(filepath.Dir(t.path.given))
		name := filepath.Join(dir, filepath.Base(t.path.given))
		if err != nil || l.data.isCritical(pathname.Slashed(name)) || !l.controlled().isStep(name) {
			return Part{}, false // what is critical is asked for
		}
		return t.part(Deny, ruleSettingsFile, "The host comes to files that it obeys by this name, so no command can rename, remove or replace it: "+t.path.given+".",
			"Tell the user what to change; a person does this."), true
	}
}

// replaces reports whether a command renames or removes what it names as written, or puts something in its place: not where that
// is a directory into which files are moved or linked.
func replaces(s command.Simple, t *target) bool {
	switch s.Name {
	case "rm", "rmdir", "unlink", "shred":
		return true
	case "mv", "ln":
	default:
		return false
	}
	named := s.Args[len(s.Args)-1].Text
	into, itself := t.path.dir && strings.TrimRight(filepath.Base(named), "/") == filepath.Base(t.path.given), false
	for _, w := range s.Args[1:] {
		long, short := strings.HasPrefix(w.Text, "--"), isOption(w.Text) && !strings.HasPrefix(w.Text, "--")
		itself = itself || short && strings.ContainsAny(w.Text, "nT") || long && (strings.HasPrefix(w.Text, "--no-") || strings.HasPrefix(w.Text, "--t"))
		into = into && !(short && strings.Contains(w.Text, "t"))
	}
	return !into || itself
}

// cutGlob splits a pattern of which all that its directory holds may be meant
// into the directory and the pattern for its children. Any other pattern has no
// second part.
func cutGlob(glob string) (dir, last string) {
	dir, last = ".", glob
	if i := strings.LastIndexByte(glob, '/'); i >= 0 {
		dir, last = glob[:i+1], glob[i+1:]
	}
	if strings.ContainsAny(dir, "*?[") {
		return glob, ""
	}
	if dir != "/" && strings.Trim(last, ".*?!]["+"^") != "" {
		return dir, "" // rm -r build*
	}
	return dir, last
}
