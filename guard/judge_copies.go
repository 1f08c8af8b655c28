package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// descends are the programs that walk the directories they are given.
var descends = []string{"grep", "egrep", "fgrep", "rg", "ag", "ack", "tar", "cp", "scp", "rsync", "diff", "zip", "mv", "ln"}

// recursive judges the files that a command reaches by itself in a directory: grep -r, tar, cp -r, what find or xargs pass to
// another program. Nothing else enforces the ask rules there.
func (f wordFiles) recursive(s command.Simple, files []command.Word, dirs []Path) {
	if f.j.data.ask.Read.Empty() {
		return
	}
	here := fixed(".")
	switch {
	case slices.ContainsFunc(s.Args[1:], isGiven) && !command.Talks(s) && s.Name != "rm":
		files = []command.Word{here}
	case !slices.Contains(descends, s.Name):
		return
	case len(files) == 0:
		files = append(s.Args[1:], here)
	}
	for _, t := range f.files(files, dirs, reading) {
		if found := f.askedBelow(s, t); found != "" {
			r, what := f.j.data.ask.Read.Match(pathname.Slashed(found), false), found
			if rest, err := filepath.Rel(f.line.dirs[0].real, found); err == nil && filepath.IsLocal(rest) {
				what = rest
			}
			f.j.add(Part{What: "run " + s.Text, Action: Ask, Rule: r.Text, Source: r.Source, Final: true,
				Reason: fmt.Sprintf("The command %s comes to %s, which requires approval by a rule.", clip(textOf(s)), what),
				Remedy: "Name other files or directories, or use Grep, which leaves it out."})
			return
		}
	}
}

// askedBelow returns a file below a directory that an ask rule matches. Denied files are out of reach of commands.
func (f wordFiles) askedBelow(s command.Simple, t *target) (found string) {
	if !t.path.dir {
		return ""
	}
	left := maxFiles
	_ = filepath.WalkDir(t.path.real, func(path string, d fs.DirEntry, err error) error { // what cannot be listed cannot be read either
		if left--; left < 0 {
			f.tooMuch("read "+t.given, "More files lie in "+t.given+" than are held against the rules on files.")
			return fs.SkipAll
		}
		name := pathname.Slashed(path)
		switch {
		case err != nil:
			return nil
		case d.Name() == ".git" || slices.ContainsFunc(s.Args, func(w command.Word) bool {
			return w.Text == "--exclude="+d.Name() || w.Text == "--exclude-dir="+d.Name()
		}) || f.j.data.deny.Read.Match(name, d.IsDir()) != nil:
			return skip(d.IsDir())
		case d.IsDir() || f.j.data.ask.Read.Match(name, false) == nil:
			return nil
		}
		found = path
		return fs.SkipAll
	})
	return found
}

// copyTargets judges the files that a command creates in an existing directory, under the names of the files it copies: cp
// x/.envrc . and cp -r x/. .
func (f wordFiles) copyTargets(s command.Simple, from []command.Word, into *target, dirs []Path) {
	if !slices.Contains([]string{"cp", "mv", "ln", "install", "rsync"}, s.Name) || !f.j.inside(into) {
		return
	}
	for _, name := range f.copiedNames(from, dirs) {
		if p, err := f.j.data.resolve(into.path, name); err == nil {
			f.file(s, newTarget(p, writing, "write "))
		}
	}
}

// makesDir reports whether the line creates a directory of that name.
func (f wordFiles) makesDir(t *target) bool {
	return slices.ContainsFunc(f.line.analysis.Commands, func(s command.Simple) bool {
		if s.Name != "mkdir" {
			return false
		}
		_, made := s.Paths()
		return slices.ContainsFunc(f.line.targets(made, f.line.runsIn(s.Places), writing), func(dir *target) bool { return dir.real == t.real })
	})
}

// copiedNames returns the names that copied files keep: for "x/." the names of the files in x.
func (f wordFiles) copiedNames(from []command.Word, dirs []Path) (names []string) {
	for _, t := range f.files(from, dirs, writing) {
		if base := filepath.Base(t.path.given); !t.path.dir || !slices.ContainsFunc(from, func(w command.Word) bool { return strings.HasSuffix(w.Text, ".") || strings.HasSuffix(w.Text, "/") }) {
			names = append(names, base)
			continue
		}
		found, err := pathname.List(t.path.real, maxFiles)
		if err != nil {
			f.tooMuch("copy "+t.path.given, "The directory "+t.path.given+" holds too many files to look at the names that they get.")
		}
		names = append(names, found...)
	}
	return names
}

// linkedRules keeps uncontained commands from linking the guard's own rules under another name, through which they could be
// written. A symbolic link is followed.
func (f wordFiles) linkedRules(s command.Simple) check {
	symbolic := slices.ContainsFunc(s.Args[1:], func(w command.Word) bool {
		return w.Text == "--symbolic" || isOption(w.Text) && w.Text[1] != '-' && strings.Contains(w.Text, "s")
	})
	return func(t *target) (Part, bool) {
		if symbolic || f.contained() || !f.j.isControl(t.path) {
			return Part{}, false
		}
		return f.j.selfProtection(t)
	}
}

// maxPatch is the size of the largest patch that is parsed, in bytes.
const maxPatch = 4 << 20

// patches judges the files that a patch in the line, or in a file that the line reads, would write.
func (f wordFiles) patches(s command.Simple, dirs []Path) {
	if !s.Patches() {
		return
	}
	lines := strings.NewReplacer(`\n`, "\n", "<<<", "\n") // $'…', printf, a here-string
	names := command.PatchedNames(lines.Replace(f.line.text))
	files := slices.Clone(f.line.analysis.Reads)
	for _, other := range f.line.analysis.Commands { // cat x.patch | git apply
		files = append(files, other.Args[1:]...)
	}
	for _, t := range f.line.targets(files, dirs, reading) {
		patch, err := realpath.ReadSmall(t.path.real, maxPatch)
		if errors.Is(err, realpath.ErrPart) {
			f.tooMuch("apply "+t.given, "The patch "+t.given+" is too large to be looked into.")
		}
		names = append(names, command.PatchedNames(string(patch))...)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxFiles {
		f.tooMuch("apply the patch", "The patch names more files than are held against the rules on files.")
	}
	for _, name := range names[:min(len(names), maxFiles)] {
		for _, t := range f.line.targets([]command.Word{fixed(name)}, dirs, writing) {
			f.through(t, f.j.denied, f.j.selfProtection, f.j.asked, f.writesProtected)
		}
	}
}

// emptied matches a removal of "/" or all of its children if the variable in it is empty.
var emptied = regexp.MustCompile(`^["']?\$(\{[^}]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*])["']?/+["']?[.*?]*["']?$`)

// removals requires approval before a critical directory is removed.
func (f wordFiles) removals() {
	for _, s := range f.line.analysis.Commands {
		if s.Name != "rm" && s.Name != "rmdir" {
			continue
		}
		for _, w := range s.Args[1:] {
			if f.removesCritical(w, f.line.runsIn(s.Places)) {
				f.ask("run "+s.Text, ruleCritical, clip(textOf(s))+" would remove, or could remove, a root, home or workspace directory.",
					"Name what is to be removed more closely; a person must agree to this in any mode.")
				break
			}
		}
	}
}

func (f wordFiles) removesCritical(w command.Word, dirs []Path) bool {
	if !w.Static && !w.Home && !w.Glob {
		return emptied.MatchString(w.Text) || slices.ContainsFunc(w.Guesses, func(text string) bool {
			return text != "" && f.removesCritical(fixed(text), dirs)
		})
	}
	if isOption(w.Text) {
		return false
	}
	text, children := w.Text, w.Glob
	if w.Glob {
		var last string
		if text, last = cutGlob(w.Text); last == "" {
			return false
		}
		if f.line.lost && text == "." {
			return true
		}
	}
	for _, dir := range dirs {
		p, err := f.line.resolve(w, text, dir)
		if err != nil {
			continue
		}
		for _, name := range []string{pathname.Slashed(p.given), pathname.Slashed(p.real)} {
			if children && name == "/" || f.j.data.isCritical(name) {
				return true
			}
		}
	}
	return false
}

// rerouting refuses to rename, remove or replace a link or directory on the way to a file that the host obeys. If commands are
// contained, the sandbox keeps it in place.
func (f wordFiles) rerouting(s command.Simple) func(*target) (Part, bool) {
	return func(t *target) (Part, bool) {
		if f.contained() || !replaces(s, t) {
			return Part{}, false
		}
		dir, _, err := realpath.Follow(filepath.Dir(t.path.given))
		name := filepath.Join(dir, filepath.Base(t.path.given))
		if err != nil || f.j.data.isCritical(pathname.Slashed(name)) || !f.j.controlled().isStep(name) {
			return Part{}, false // critical paths require approval elsewhere
		}
		return t.part(Deny, ruleSettingsFile, "The host comes to files that it obeys by this name, so no command can rename, remove or replace it: "+t.path.given+".",
			"Tell the user what to change; a person does this."), true
	}
}

// replaces reports whether a command renames, removes or replaces what it names as written. A directory into which files are
// moved or linked is not replaced, unless an option may say otherwise.
func replaces(s command.Simple, t *target) bool {
	switch s.Name {
	case "rm", "rmdir", "unlink", "shred":
		return true
	case "mv", "ln":
		into := strings.TrimRight(filepath.Base(s.Args[len(s.Args)-1].Text), "/")
		return !t.path.dir || into != filepath.Base(t.path.given) || slices.ContainsFunc(s.Args[1:], func(w command.Word) bool { return isOption(w.Text) && strings.ContainsAny(w.Text, "nTt") })
	}
	return false
}

// cutGlob splits a pattern that may match everything in its directory into the directory and the pattern for its children. For
// any other pattern last is empty.
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
