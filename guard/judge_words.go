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
	"github.com/toolhost/toolhost/guard/settle"
)

// A wordFiles judges the files that the words and redirections of a line name.
type wordFiles struct{ *commandJudge }

// A check judges a file of the line, and reports whether it decided.
type check = func(*target) (Part, bool)

// words judges the files that the words of the commands name.
func (f wordFiles) words() {
	unknown := f.line.analysis.Partial || slices.ContainsFunc(f.line.analysis.Writes, unnamed)
	for _, s := range f.line.analysis.Commands {
		reads, writes := s.Paths()
		named := reads
		if s.OperandsUnknown() || len(reads)+len(writes) == 0 && !command.SearchesText(s) {
			named = slices.Concat(reads, s.Mentions())
		}
		dirs := f.line.runsIn(s.Places)
		for _, t := range f.files(named, dirs, reading) {
			f.file(s, t)
		}
		f.literal(s, reads, dirs)
		f.recursive(s, reads, dirs)
		for _, t := range f.known(slices.Concat(writes, s.Outputs()), dirs, writing) {
			f.file(s, t)
			if t.path.dir || f.makesDir(t) {
				f.copyTargets(s, reads, t, dirs)
			}
		}
		for _, t := range f.matched(writes, dirs, writing) { // rm * does not try to remove the target of a link
			f.through(t, f.rerouting(s), f.unenforced(f.j.denied), f.deniedInside, f.j.asked, f.writesProtected)
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

// literal refuses a line that reads a denied file by a word that is known from the text, so that no other part of it runs. The kernel
// enforces the rule for whatever else the line reads.
func (f wordFiles) literal(s command.Simple, reads []command.Word, dirs []Path) {
	if !f.contained() || len(dirs) != 1 || s.Local || command.Talks(s) || s.Name == "file" {
		return
	}
	static := slices.DeleteFunc(slices.Clone(reads), func(w command.Word) bool { return !w.Static })
	for _, t := range f.line.targets(static, dirs, reading) {
		if !t.path.dir {
			f.through(t, f.j.denied)
		}
	}
}

// file judges a file that a command reads or writes. If the kernel enforces the denies, the ask
// rules remain, and files that a command writes and that do not exist yet.
func (f wordFiles) file(s command.Simple, t *target) {
	if t.access == reading {
		f.through(t, f.unenforced(f.j.denied), f.unenforced(f.j.selfProtection), f.j.asked)
	} else {
		f.through(t, f.j.denied, f.rerouting(s), f.j.selfProtection, f.unenforced(f.j.deniedHardlink), f.deniedInside, f.j.asked, f.writesProtected, f.leaving(s))
	}
}

// unenforced returns a check that passes what the containment enforces.
func (f wordFiles) unenforced(c check) check {
	if f.contained() {
		return func(*target) (Part, bool) { return Part{}, false }
	}
	return c
}

// unnamed reports whether the line does not determine the file that a word names.
func unnamed(w command.Word) bool { return !w.Named() }

// mayName requires approval if a file that the line writes is not known and the text names a
// protected file somewhere.
func (f wordFiles) mayName() {
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
func (f wordFiles) through(t *target, checks ...check) {
	for _, check := range checks {
		if part, ok := check(t); ok {
			if part.Action != Allow {
				f.j.add(part)
			}
			return
		}
	}
}

// writesProtected is the check protected, for paths that nothing else protects from the command.
func (f wordFiles) writesProtected(t *target) (Part, bool) {
	if f.protects(t) {
		return Part{}, false
	}
	return f.j.protected(t)
}

// protects reports whether the containment, or the settlement after the command, protects a path from the command.
func (f wordFiles) protects(t *target) bool {
	k := f.j.data
	return f.contained() && k.kernelProtected(t.path.real) || f.held() && k.isSettledPath(t.path.real)
}

// files resolves words: those that are known, and the current matches of a wildcard.
func (f wordFiles) files(words []command.Word, dirs []Path, access rules.Access) []*target {
	return append(f.known(words, dirs, access), f.matched(words, dirs, access)...)
}

// known resolves words that are known, and those that the line itself assigns to variables.
func (f wordFiles) known(words []command.Word, dirs []Path, access rules.Access) []*target {
	words = slices.Clone(words)
	for _, w := range words {
		for _, text := range w.Guesses {
			words = append(words, fixed(text))
		}
	}
	return f.line.targets(words, dirs, access)
}

// matched resolves wildcards, those of reads only if there are rules on files that nothing else
// enforces.
func (f wordFiles) matched(words []command.Word, dirs []Path, access rules.Access) (out []*target) {
	if access == reading && !f.j.data.ask.HasPaths() && (f.contained() || !f.j.data.deny.HasPaths()) {
		return nil
	}
	for _, w := range words {
		if !w.Glob {
			continue
		}
		for _, dir := range dirs {
			names, err := f.line.expand(w, dir, maxFiles)
			if err != nil {
				f.tooMuch("use "+w.Text, "The wildcard "+w.Text+" names too many files to hold them against the rules on files.")
			}
			for _, name := range names {
				out = append(out, f.line.targets([]command.Word{fixed(name)}, []Path{dir}, access)...)
			}
		}
	}
	return out
}

// deniedInside refuses to write a directory whose entire content is denied: a command that removes
// or moves it, or copies into it, writes its content.
func (f wordFiles) deniedInside(t *target) (Part, bool) {
	if !t.path.dir || f.contained() {
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

// isSettledPath reports whether what commands write at a path is held until a person answers: see [Commands.Settled].
func (k *policyData) isSettledPath(path string) bool {
	name := pathname.Slashed(path)
	return settle.ClassOf(k.recursive(name)) == settle.Held && !k.hooks.files.Hold(name) && !k.writesHome() &&
		slices.ContainsFunc(k.bounds, func(b pathname.Place) bool { return pathname.Within(name, pathname.Slashed(b.Real)) })
}

// leaving is outsideRoots for the writes of a command that would otherwise run without approval and
// without anything that keeps it in the boundary: a rule such as Bash(cp:*) allows the program, not
// every path on the disk. A rule without wildcards allows what it says, and one for git the worktrees
// next to the repository.
func (f wordFiles) leaving(s command.Simple) check {
	k := f.j.data
	r := k.allow.Commands.Allows(s)
	wide := r != nil && strings.HasSuffix(r.Spec, "*") && k.mode != settings.ModeBypass && k.allow.Named("Bash") == nil && k.allow.Commands.Line(f.line.text) == nil
	return func(t *target) (Part, bool) {
		next := func(root pathname.Place) bool { return filepath.Dir(root.Real) == filepath.Dir(t.real) }
		if _, ok := f.j.allowRule(t); ok || f.held() || !wide && !f.autoAllowed() || wide && makesRepository(s) && slices.ContainsFunc(k.roots, next) {
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
func (f wordFiles) redirects() {
	for _, w := range f.line.analysis.Reads {
		f.redirect(w, reading)
	}
	for _, w := range f.line.analysis.Writes {
		f.redirect(w, writing)
	}
}

func (f wordFiles) redirect(w command.Word, access rules.Access) {
	if w.Stream && access == reading || w.Static && isStream(w.Text) {
		return
	}
	dirs := f.line.runsIn(w.Places)
	if !w.Static && !w.Home || f.line.lost && !w.Home && !filepath.IsAbs(w.Text) {
		for _, t := range f.files([]command.Word{w}, dirs, access) { // the file may stay where it is
			f.file(command.Simple{}, t)
		}
		if !f.autoAllowed() {
			f.j.add(Part{What: verbOf(access) + w.Text, Action: Ask, Rule: ruleUndecidable, Source: builtIn,
				Reason: "Which file a redirection means is not known before the command runs: " + w.Text + ".", Remedy: "Write the absolute path out."})
		}
		return
	}
	for _, dir := range dirs {
		p, err := f.line.resolve(w, w.Text, dir)
		if err != nil {
			f.j.add(Part{What: verbOf(access) + w.Text, Action: Deny, Rule: RuleBoundary, Source: builtIn, Reason: err.Error(), Remedy: "Name another file."})
			continue
		}
		t := newTarget(p, access, verbOf(access))
		if access == reading && w.Static {
			f.literal(command.Simple{}, []command.Word{w}, []Path{dir})
		}
		if access == reading && f.autoAllowed() && (f.contained() || f.offByChoice()) {
			f.file(command.Simple{}, t)
			continue
		}
		part := f.j.decide(t)
		if part.Action == Ask && f.held() && f.autoAllowed() &&
			(!part.Final && part.Rule != ruleHardLink || part.Rule == RuleProtected && f.protects(t)) {
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
