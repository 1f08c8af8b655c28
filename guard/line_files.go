package guard

import (
	"fmt"
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

// A check judges a file of the line; it reports whether it has decided.
type check = func(*target) (Part, bool)

// words judges the files that the words of the commands name. Where the kernel holds the
// denies these are left to it: what remains are the ask rules, and what a command writes
// that is not there yet.
func (l *commandJudge) words() {
	unknown := l.analysis.Partial || slices.ContainsFunc(l.analysis.Writes, unnamed)
	for _, s := range l.analysis.Commands {
		reads, writes := s.Paths()
		named := reads
		if s.Vague() || len(reads)+len(writes) == 0 && !searchesText(s.Name) {
			named = slices.Concat(reads, s.Mentions())
		}
		dirs := l.standsIn(s.Places)
		for _, t := range l.files(named, dirs, rules.Reading) {
			l.read(t)
		}
		l.recursive(s, reads, dirs)
		checks := []check{l.denied, l.rerouting(s), l.selfProtection, l.deniedHardlink, l.deniedInside, l.asked, l.writesProtected, l.leavingBy(s)}
		if l.contained() {
			checks = []check{l.denied, l.selfProtection, l.asked, l.writesProtected}
		}
		for _, t := range l.known(slices.Concat(writes, s.Outputs()), dirs, writing) {
			l.through(t, checks...)
			if t.path.dir || l.makesDir(t) {
				l.copyTargets(s, reads, t, dirs)
			}
		}
		for _, t := range l.matched(writes, dirs, writing) { // rm * is no attempt on what a link in it leads to
			if l.contained() {
				l.through(t, l.asked, l.writesProtected)
			} else {
				l.through(t, l.rerouting(s), l.denied, l.deniedInside, l.asked, l.writesProtected)
			}
		}
		if s.Name == "ln" { // what is written through the link
			for _, t := range l.files(reads, dirs, writing) {
				l.through(t, l.linkedRules(s), l.writesProtected)
			}
		}
		l.patches(s, dirs)
		unknown = unknown || slices.ContainsFunc(writes, unnamed)
	}
	if unknown { // it may be any that the text names
		l.mayName()
	}
}

// unnamed reports whether the line does not say which file a word names.
func unnamed(w command.Word) bool { return !w.Named() }

// mayName asks before a protected file may be written that the text names somewhere, where a
// file that it writes is not known.
func (l *commandJudge) mayName() {
	apart := func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`()<>,;|&=[]{}", r) }
	for piece := range strings.FieldsFuncSeq(l.text, apart) {
		if inProtected(pathname.Slashed(piece)) || len(l.data.hooks.files.Names) > 0 && strings.Contains(piece, ".") {
			w := command.Word{Text: piece, Static: true, Home: strings.HasPrefix(piece, "~/")}
			for _, t := range l.targets([]command.Word{w}, l.dirs, writing) {
				l.through(t, l.writesProtected)
			}
		}
	}
}

// searchesText reports whether the first operand of a program is no file: what
// such a program is given without one, it reads from its input.
func searchesText(name string) bool {
	switch name {
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq":
		return true
	}
	return false
}

// through takes a file through checks and keeps what the first that knows has
// to object.
func (l *commandJudge) through(t *target, checks ...check) {
	for _, check := range checks {
		if part, ok := check(t); ok {
			if part.Action != Allow {
				l.add(part)
			}
			return
		}
	}
}

// read judges a file that a command reads. What is denied the containment holds.
func (l *commandJudge) read(t *target) {
	if l.contained() {
		l.through(t, l.asked)
	} else {
		l.through(t, l.denied, l.selfProtection, l.asked)
	}
}

// writesProtected is protected for what the containment does not hold.
func (l *commandJudge) writesProtected(t *target) (Part, bool) {
	if l.contained() && l.data.kernelProtected(t.path.real) {
		return Part{}, false
	}
	return l.protected(t)
}

// files resolves words: those that are known, and what a wildcard means now.
func (l *commandJudge) files(words []command.Word, dirs []Path, access rules.Access) []*target {
	return append(l.known(words, dirs, access), l.matched(words, dirs, access)...)
}

// known resolves words that are known, and those that the line itself gives variables.
func (l *commandJudge) known(words []command.Word, dirs []Path, access rules.Access) []*target {
	words = slices.Clone(words)
	for _, w := range words {
		for _, text := range w.Guesses() {
			words = append(words, command.Word{Text: text, Static: true})
		}
	}
	return l.targets(words, dirs, access)
}

// matched resolves wildcards.
func (l *commandJudge) matched(words []command.Word, dirs []Path, access rules.Access) (out []*target) {
	for _, w := range words {
		if !w.Glob {
			continue
		}
		for _, dir := range dirs {
			for _, name := range l.meant(w, dir, access) {
				out = append(out, l.targets([]command.Word{{Text: name, Static: true}}, []Path{dir}, access)...)
			}
		}
	}
	return out
}

// deniedInside is denied for a directory all of whose content is: a command that removes or
// moves it, or copies into it, writes that.
func (l *commandJudge) deniedInside(t *target) (Part, bool) {
	if !t.path.dir || l.contained() {
		return Part{}, false
	}
	inside := *t
	inside.given, inside.real, inside.path.dir = t.given+rules.AnyChild, t.real+rules.AnyChild, false
	return l.denied(&inside)
}

// kernelProtected reports whether the containment keeps a protected path as it is: one
// that exists and is a directory or lies right in a root (see
// [Policy.SandboxPaths]), or one in .git, where commands must be able to write.
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

// leavesRoots is outsideRoots for commands that would otherwise run unasked with nothing
// to keep them in the boundary.
func (l *commandJudge) leavesRoots(t *target) (Part, bool) {
	if _, ok := l.allowRule(t); ok || l.held() || !l.autoAllowed() {
		return Part{}, false
	}
	return l.outsideRoots(t)
}

// leavingBy is leaving for what one command writes: a rule such as Bash(cp:*) allows the
// program, not every place on the disk. One without wildcards allows what it says, and
// one for git the worktrees next to the repository.
func (l *commandJudge) leavingBy(s command.Simple) check {
	k := l.data
	if l.held() || k.mode == settings.ModeBypass || k.allow.Named("Bash") != nil || k.allow.Commands.Line(l.text) != nil {
		return l.leavesRoots
	}
	if r := k.allow.Commands.Allows(s); r == nil || !strings.HasSuffix(r.Spec, "*") {
		return l.leavesRoots
	}
	return func(t *target) (Part, bool) {
		next := func(root pathname.Place) bool { return filepath.Dir(root.Real) == filepath.Dir(t.real) }
		if _, ok := l.allowRule(t); ok || makesRepository(s) && slices.ContainsFunc(k.roots, next) {
			return Part{}, false
		}
		return l.outsideRoots(t)
	}
}

// makesRepository reports whether git makes a work tree or a repository, next to the one
// that it stands in as a rule.
func makesRepository(s command.Simple) bool {
	return s.Name == "git" && slices.ContainsFunc(s.Args[1:], func(w command.Word) bool {
		return w.Text == "worktree" || w.Text == "clone" || w.Text == "init" || w.Text == "submodule"
	})
}

// targets resolves words in each directory the line may be in when it comes to
// them. A word that is not known before the command runs names nothing.
func (l *commandJudge) targets(words []command.Word, dirs []Path, access rules.Access) []*target {
	var out []*target
	for _, w := range words {
		if !w.Static && !w.Home || w.Text == "" || isStream(w.Text) {
			continue
		}
		for _, dir := range dirs {
			if t, err := l.target(w, dir, access); err == nil {
				out = append(out, t)
			}
		}
	}
	return out
}

func (l *commandJudge) target(w command.Word, dir Path, access rules.Access) (*target, error) {
	if len(w.Text) > realpath.MaxLength || strings.ContainsRune(w.Text, 0) {
		return nil, fmt.Errorf("no file has such a name: %s", clip(w.Text))
	}
	p, err := l.resolve(w, w.Text, dir)
	if err != nil {
		return nil, err
	}
	return newTarget(p, access, verbOf(access)), nil
}

func verbOf(access rules.Access) string {
	if access == writing {
		return "write "
	}
	return "read "
}

// redirects judges the targets of redirections as Edit and Read do.
func (l *commandJudge) redirects() {
	for _, w := range l.analysis.Reads {
		l.redirect(w, reading)
	}
	for _, w := range l.analysis.Writes {
		l.redirect(w, writing)
	}
}

func (l *commandJudge) redirect(w command.Word, access rules.Access) {
	if w.Stream && access == reading || w.Static && isStream(w.Text) {
		return
	}
	dirs := l.standsIn(w.Places())
	if !w.Static && !w.Home || l.lost && !w.Home && !filepath.IsAbs(w.Text) {
		for _, t := range l.files([]command.Word{w}, dirs, access) { // it may stay where it is
			if access == reading {
				l.read(t)
			} else {
				l.through(t, l.denied, l.selfProtection, l.deniedHardlink, l.asked, l.writesProtected, l.leavesRoots)
			}
		}
		if !l.autoAllowed() {
			l.add(Part{What: verbOf(access) + w.Text, Action: Ask, Rule: ruleUndecidable, Source: builtIn,
				Reason: "Which file a redirection means is not known before the command runs: " + w.Text + ".", Remedy: "Write the absolute path out."})
		}
		return
	}
	for _, dir := range dirs {
		t, err := l.target(w, dir, access)
		if err != nil {
			l.add(Part{What: verbOf(access) + w.Text, Action: Deny, Rule: RuleBoundary, Source: builtIn, Reason: err.Error(), Remedy: "Name another file."})
			continue
		}
		if access == reading && l.autoAllowed() && (l.contained() || l.offByChoice()) {
			l.read(t)
			continue
		}
		part := l.decide(t)
		if part.Action == Ask && !part.Final && part.Rule != ruleHardLink && l.held() && l.autoAllowed() {
			continue // the containment keeps it in the workspace
		}
		l.add(part)
	}
}

// isStream reports whether a redirection target is no file on disk.
func isStream(name string) bool {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/random", "/dev/urandom":
		return true
	}
	return strings.HasPrefix(name, "/dev/fd/") && strings.Trim(name[len("/dev/fd/"):], "0123456789") == ""
}
