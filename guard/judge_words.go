package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// A wordFiles judges the files that the words and redirections of a line name.
type wordFiles struct {
	l    *commandJudge
	j    *judge
	line *line
}

// A check judges a file of the line, and reports whether it decided.
type check = func(*target) (Part, bool)

// words judges the files that the words of the commands name. If the kernel enforces the denies,
// the ask rules remain, and files that a command writes and that do not exist yet.
func (f *wordFiles) words() {
	unknown := f.line.analysis.Partial || slices.ContainsFunc(f.line.analysis.Writes, unnamed)
	for _, s := range f.line.analysis.Commands {
		reads, writes := s.Paths()
		named := reads
		if s.Vague() || len(reads)+len(writes) == 0 && !command.SearchesText(s) {
			named = slices.Concat(reads, s.Mentions())
		}
		dirs := f.line.standsIn(s.Places)
		for _, t := range f.files(named, dirs, rules.Reading) {
			f.read(t)
		}
		f.recursive(s, reads, dirs)
		checks := []check{f.j.denied, f.rerouting(s), f.j.selfProtection, f.j.deniedHardlink, f.deniedInside, f.j.asked, f.writesProtected, f.leavingBy(s)}
		if f.l.contained() {
			checks = []check{f.j.denied, f.j.selfProtection, f.j.asked, f.writesProtected}
		}
		for _, t := range f.known(slices.Concat(writes, s.Outputs()), dirs, writing) {
			f.through(t, checks...)
			if t.path.dir || f.makesDir(t) {
				f.copyTargets(s, reads, t, dirs)
			}
		}
		for _, t := range f.matched(writes, dirs, writing) { // rm * does not try to remove the target of a link
			if f.l.contained() {
				f.through(t, f.j.asked, f.writesProtected)
			} else {
				f.through(t, f.rerouting(s), f.j.denied, f.deniedInside, f.j.asked, f.writesProtected)
			}
		}
		if s.Name == "ln" { // later writes may go through the link
			for _, t := range f.files(reads, dirs, writing) {
				f.through(t, f.linkedRules(s), f.writesProtected)
			}
		}
		f.patches(s, dirs)
		unknown = unknown || slices.ContainsFunc(writes, unnamed)
	}
	if unknown { // it may be any file that the text names
		f.mayName()
	}
}

// unnamed reports whether the line does not determine the file that a word names.
func unnamed(w command.Word) bool { return !w.Named() }

// mayName requires approval if a file that the line writes is not known and the text names a
// protected file somewhere.
func (f *wordFiles) mayName() {
	apart := func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`()<>,;|&=[]{}", r) }
	for piece := range strings.FieldsFuncSeq(f.line.text, apart) {
		if inProtected(pathname.Slashed(piece)) || len(f.j.data.hooks.files.Names) > 0 && strings.Contains(piece, ".") {
			w := command.Word{Text: piece, Static: true, Home: strings.HasPrefix(piece, "~/")}
			for _, t := range f.line.targets([]command.Word{w}, f.line.dirs, writing) {
				f.through(t, f.writesProtected)
			}
		}
	}
}

// through takes a file through checks and keeps what the first that knows has
// to object.
func (f *wordFiles) through(t *target, checks ...check) {
	for _, check := range checks {
		if part, ok := check(t); ok {
			if part.Action != Allow {
				f.j.add(part)
			}
			return
		}
	}
}

// read judges a file that a command reads. The containment enforces denies.
func (f *wordFiles) read(t *target) {
	if f.l.contained() {
		f.through(t, f.j.asked)
	} else {
		f.through(t, f.j.denied, f.j.selfProtection, f.j.asked)
	}
}

// writesProtected is protected for paths that the containment does not protect.
func (f *wordFiles) writesProtected(t *target) (Part, bool) {
	if f.l.contained() && f.j.data.kernelProtected(t.path.real) {
		return Part{}, false
	}
	return f.j.protected(t)
}

// files resolves words: those that are known, and the current matches of a wildcard.
func (f *wordFiles) files(words []command.Word, dirs []Path, access rules.Access) []*target {
	return append(f.known(words, dirs, access), f.matched(words, dirs, access)...)
}

// known resolves words that are known, and those that the line itself assigns to variables.
func (f *wordFiles) known(words []command.Word, dirs []Path, access rules.Access) []*target {
	words = slices.Clone(words)
	for _, w := range words {
		for _, text := range w.Guesses {
			words = append(words, command.Word{Text: text, Static: true})
		}
	}
	return f.line.targets(words, dirs, access)
}

// matched resolves wildcards.
func (f *wordFiles) matched(words []command.Word, dirs []Path, access rules.Access) (out []*target) {
	for _, w := range words {
		if !w.Glob {
			continue
		}
		for _, dir := range dirs {
			for _, name := range f.meant(w, dir, access) {
				out = append(out, f.line.targets([]command.Word{{Text: name, Static: true}}, []Path{dir}, access)...)
			}
		}
	}
	return out
}

// deniedInside refuses to write a directory whose entire content is denied: a command that removes
// or moves it, or copies into it, writes its content.
func (f *wordFiles) deniedInside(t *target) (Part, bool) {
	if !t.path.dir || f.l.contained() {
		return Part{}, false
	}
	inside := *t
	inside.given, inside.real, inside.path.dir = t.given+rules.AnyChild, t.real+rules.AnyChild, false
	return f.j.denied(&inside)
}

// kernelProtected reports whether the containment keeps a protected path unchanged: one that exists
// and is a directory or lies directly in a root (see [Commands.SandboxPaths]), or one in .git,
// where commands must be able to write.
func (k *policyData) kernelProtected(path string) bool {
	isRoot := func(dir string) bool {
		return slices.ContainsFunc(k.bounds, func(b pathname.Place) bool { return b.Real == dir })
	}
	if k.hooks.files.Hold(pathname.Slashed(path)) && realpath.Exists(path) {
		return true
	}
	for at := path; at != filepath.Dir(at) && !isRoot(at); at = filepath.Dir(at) {
		name := filepath.Base(at)
		if pathname.Folded.Of(name) == ".git" {
			return true
		}
		if !isProtectedName(name) {
			continue
		}
		if info, err := os.Lstat(at); err == nil && (info.IsDir() || isRoot(filepath.Dir(at))) {
			return true
		}
	}
	return false
}

// leavesRoots is outsideRoots for commands that would otherwise run without approval and without
// anything that keeps them in the boundary.
func (f *wordFiles) leavesRoots(t *target) (Part, bool) {
	if _, ok := f.j.allowRule(t); ok || f.l.held() || !f.l.autoAllowed() {
		return Part{}, false
	}
	return f.j.outsideRoots(t)
}

// leavingBy is leavesRoots for the writes of one command: a rule such as Bash(cp:*) allows the
// program, not every path on the disk. A rule without wildcards allows what it says, and one for
// git the worktrees next to the repository.
func (f *wordFiles) leavingBy(s command.Simple) check {
	k := f.j.data
	if f.l.held() || k.mode == settings.ModeBypass || k.allow.Named("Bash") != nil || k.allow.Commands.Line(f.line.text) != nil {
		return f.leavesRoots
	}
	if r := k.allow.Commands.Allows(s); r == nil || !strings.HasSuffix(r.Spec, "*") {
		return f.leavesRoots
	}
	return func(t *target) (Part, bool) {
		next := func(root pathname.Place) bool { return filepath.Dir(root.Real) == filepath.Dir(t.real) }
		if _, ok := f.j.allowRule(t); ok || makesRepository(s) && slices.ContainsFunc(k.roots, next) {
			return Part{}, false
		}
		return f.j.outsideRoots(t)
	}
}

// makesRepository reports whether git creates a work tree or a repository, usually next to the
// current one.
func makesRepository(s command.Simple) bool {
	return s.Name == "git" && slices.ContainsFunc(s.Args[1:], func(w command.Word) bool {
		return w.Text == "worktree" || w.Text == "clone" || w.Text == "init" || w.Text == "submodule"
	})
}

func verbOf(access rules.Access) string {
	if access == writing {
		return "write "
	}
	return "read "
}

// redirects judges the targets of redirections as Edit and Read do.
func (f *wordFiles) redirects() {
	for _, w := range f.line.analysis.Reads {
		f.redirect(w, reading)
	}
	for _, w := range f.line.analysis.Writes {
		f.redirect(w, writing)
	}
}

func (f *wordFiles) redirect(w command.Word, access rules.Access) {
	if w.Stream && access == reading || w.Static && isStream(w.Text) {
		return
	}
	dirs := f.line.standsIn(w.Places)
	if !w.Static && !w.Home || f.line.lost && !w.Home && !filepath.IsAbs(w.Text) {
		for _, t := range f.files([]command.Word{w}, dirs, access) { // the file may stay where it is
			if access == reading {
				f.read(t)
			} else {
				f.through(t, f.j.denied, f.j.selfProtection, f.j.deniedHardlink, f.j.asked, f.writesProtected, f.leavesRoots)
			}
		}
		if !f.l.autoAllowed() {
			f.j.add(Part{What: verbOf(access) + w.Text, Action: Ask, Rule: ruleUndecidable, Source: builtIn,
				Reason: "Which file a redirection means is not known before the command runs: " + w.Text + ".", Remedy: "Write the absolute path out."})
		}
		return
	}
	for _, dir := range dirs {
		t, err := f.line.target(w, dir, access)
		if err != nil {
			f.j.add(Part{What: verbOf(access) + w.Text, Action: Deny, Rule: RuleBoundary, Source: builtIn, Reason: err.Error(), Remedy: "Name another file."})
			continue
		}
		if access == reading && f.l.autoAllowed() && (f.l.contained() || f.l.offByChoice()) {
			f.read(t)
			continue
		}
		part := f.j.decide(t)
		if part.Action == Ask && !part.Final && part.Rule != ruleHardLink && f.l.held() && f.l.autoAllowed() {
			continue // the containment keeps it in the workspace
		}
		f.j.add(part)
	}
}

// isStream reports whether a redirection target is not a file on disk.
func isStream(name string) bool {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/random", "/dev/urandom":
		return true
	}
	return strings.HasPrefix(name, "/dev/fd/") && strings.Trim(name[len("/dev/fd/"):], "0123456789") == ""
}

// meant returns the files that a wildcard matches and that must be judged. If every rule on files
// is enforced otherwise, only writes must be judged.
func (f *wordFiles) meant(w command.Word, dir Path, access rules.Access) []string {
	speaks := f.j.data.ask.HasPaths() || !f.l.contained() && f.j.data.deny.HasPaths()
	if !speaks && access == reading {
		return nil
	}
	names, err := f.line.expand(w, dir, maxJudged, maxJudged)
	if err != nil {
		f.l.tooMuch("use "+w.Text, "The wildcard "+w.Text+" names too many files to hold them against the rules on files.")
	}
	return f.notable("the wildcard "+w.Text, names, dir, speaks)
}

// notable returns the names, which may be relative to dir, that must be judged. If there are very
// many names and every rule on files is enforced otherwise, these are the protected ones.
func (f *wordFiles) notable(of string, names []string, dir Path, speaks bool) []string {
	switch {
	case len(names) <= maxGlob:
		return names
	case !speaks:
		parents := map[string]bool{} // whether they are protected, by any name
		return slices.DeleteFunc(names, func(name string) bool {
			if inProtected(pathname.Slashed(name)) {
				return false
			}
			parent := filepath.Dir(name)
			isProtected, known := parents[parent]
			if !known {
				p, err := f.j.data.resolve(dir, parent)
				isProtected = err == nil && f.j.data.isProtected(pathname.Slashed(p.real))
				parents[parent] = isProtected
			}
			return !isProtected
		})
	case len(names) > maxJudged:
		f.l.tooMuch("use "+of, "More files are named by "+of+" than are held against the rules on files.")
	}
	return names[:min(len(names), maxJudged)]
}
