package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/pathname"
	"toolhost/guard/internal/protected"
	"toolhost/guard/internal/realpath"
	"toolhost/guard/internal/rulebook"
	"toolhost/guard/settings"
)

// words judges the files that the arguments name, so that a refusal says why;
// what is not seen here the containment holds.
func (l *line) words() {
	unknown := l.analysis.Partial || slices.ContainsFunc(l.analysis.Writes, l.unknownFile)
	for _, s := range l.analysis.Commands {
		reads, writes := s.Paths()
		if s.Vague() || len(reads)+len(writes) == 0 && !searchesText(s.Name) {
			reads = append(reads, s.Mentions()...)
		}
		dirs := l.standsIn(s.Places)
		for _, t := range l.targets(reads, dirs, reading) {
			l.through(t, l.denied, l.guarded, l.asked)
		}
		leaving, rerouting := l.leavingBy(s), l.rerouting(s)
		for _, t := range l.targets(writes, dirs, writing) {
			l.through(t, l.denied, rerouting, l.guarded, l.linkDenied, l.deniedInside, l.asked, l.exposed, leaving)
			if t.path.dir || l.makesDir(t) {
				l.copied(s, reads, t, dirs)
			}
		}
		for _, t := range l.targets(s.Outputs(), dirs, writing) {
			l.through(t, leaving)
		}
		l.made(s)
		l.patches(s, dirs)
		if s.Name == "ln" { // what is written through the link
			for _, t := range l.targets(reads, dirs, writing) {
				l.through(t, l.linkedRules(s), l.exposed)
			}
		}
		l.likely(reads, dirs, reading)
		l.programs(s, dirs)
		l.likely(writes, dirs, writing)
		for _, w := range writes {
			for _, t := range l.guesses(w, dirs, writing) {
				l.through(t, rerouting)
			}
		}
		unknown = unknown || s.Feeds() || slices.ContainsFunc(writes, l.unknownFile)
		if !s.ReadOnly() && !s.Precise() {
			l.mayWrite(s, reads, dirs)
		}
	}
	if unknown { // it may be any that the text names
		l.mayName(command.Pieces(l.text), l.dirs)
	}
}

// programs judges the files that stand in a program that an interpreter is given as text:
// python3 -c 'print(open(".env").read())'. What is denied the containment holds.
func (l *line) programs(s command.Simple, dirs []Path) {
	if !s.Interpreted() || l.k.ask.Read.Empty() && (l.contained() || l.k.deny.Read.Empty()) {
		return
	}
	for w := range s.Quoted() {
		for _, t := range l.targets([]command.Word{w}, dirs, reading) {
			if t.path.file == (realpath.ID{}) {
				continue
			}
			if l.contained() {
				l.through(t, l.asked)
			} else {
				l.through(t, l.denied, l.asked)
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

// through takes a file through stations and keeps what the first that knows has
// to object.
func (l *line) through(t *target, stations ...func(*target) (Part, bool)) {
	for _, station := range stations {
		if part, ok := station(t); ok {
			if part.Action != Allow {
				l.add(part)
			}
			return
		}
	}
}

// exposed is protected for what the containment does not hold.
func (l *line) exposed(t *target) (Part, bool) {
	if l.contained() && l.k.pinned(t.path.real) {
		return Part{}, false
	}
	return l.protected(t)
}

// likely judges the files that words name which are not known before the command
// runs: those that a wildcard means now, and those that the values mean which the
// line itself gives its variables. What the containment holds is left to it, since
// it knows the file.
func (l *line) likely(words []command.Word, dirs []Path, access rulebook.Access) {
	for _, w := range words {
		if w.Static {
			continue
		}
		for _, t := range l.guesses(w, dirs, access) {
			switch {
			case l.contained() && access == reading:
				l.through(t, l.asked)
			case l.contained():
				l.through(t, l.absentDenied, l.asked, l.exposed)
			case w.Glob: // rm * is no attempt on what a link in it leads to
				l.through(t, l.denied, l.deniedInside, l.asked, l.exposed)
			default:
				l.through(t, l.denied, l.guarded, l.deniedInside, l.asked, l.exposed, l.leaving)
			}
		}
	}
}

// guesses returns the files that a word may mean.
func (l *line) guesses(w command.Word, dirs []Path, access rulebook.Access) []*target {
	var out []*target
	add := func(text string, dir Path) {
		guess := command.Word{Text: text, Static: true}
		if t, err := l.target(guess, dir, access); text != "" && !isStream(text) && err == nil {
			out = append(out, t)
		}
	}
	for _, dir := range dirs {
		for _, text := range w.Guesses() {
			add(text, dir)
		}
		if !w.Glob {
			continue
		}
		for _, name := range l.meant(w, dir, access) {
			add(name, dir)
		}
	}
	return out
}

// absentDenied is denied for files that are not there yet: what does not exist the
// containment cannot hold by its name, unless it keeps all as it is.
func (l *line) absentDenied(t *target) (Part, bool) {
	if t.path.file != (realpath.ID{}) || l.contained() && l.k.keepsNew(t.real) {
		return Part{}, false
	}
	return l.denied(t)
}

// keepsNew reports whether the containment keeps a file from being made: the directory is
// there, and no edit of what is in it is allowed.
func (k *core) keepsNew(name string) bool {
	dir := filepath.Dir(pathname.Native(name))
	if k.scratch != "" && pathname.Within(name, pathname.Slashed(k.scratch)) || !k.inside.Hold(pathname.Slashed(dir)) || !k.frozen(dir) {
		return false
	}
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// deniedInside is denied for a directory all of whose content is: who removes or
// moves it, or copies into it, writes that. The containment holds it file by file.
func (l *line) deniedInside(t *target) (Part, bool) {
	if !t.path.dir || t.access != writing || l.contained() {
		return Part{}, false
	}
	inside := *t
	inside.given, inside.real, inside.path.dir = t.given+rulebook.AnyChild, t.real+rulebook.AnyChild, false
	return l.denied(&inside)
}

// pinned reports whether the containment keeps a protected path as it is: one
// that exists and is a directory or lies right in a root (see
// [Policy.SandboxPaths]), or one in .git, where commands must be able to write.
func (k *core) pinned(path string) bool {
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
		if !protected.Is(name) {
			continue
		}
		if info, err := os.Lstat(at); err == nil && (info.IsDir() || isRoot(filepath.Dir(at))) {
			return true
		}
	}
	return false
}

// leaving is bounded for commands that would otherwise run unasked with nothing
// to keep them in the boundary.
func (l *line) leaving(t *target) (Part, bool) {
	if t.access != writing || l.held() || !l.autoAllowed() {
		return Part{}, false
	}
	if _, ok := l.ruledIn(t); ok {
		return Part{}, false
	}
	return l.bounded(t)
}

// leavingBy is leaving for what one command writes: a rule such as Bash(cp:*) allows the
// program, not every place on the disk. One without wildcards allows what it says, and
// one for git the worktrees beside the repository.
func (l *line) leavingBy(s command.Simple) func(*target) (Part, bool) {
	k := l.k
	if l.held() || k.mode == settings.ModeBypass || k.allow.Named("Bash") != nil || k.allow.Commands.Line(l.text) != nil {
		return l.leaving
	}
	if r := k.allow.Commands.Allows(s); r == nil || !strings.HasSuffix(r.Spec, "*") {
		return l.leaving
	}
	return func(t *target) (Part, bool) {
		if _, ok := l.ruledIn(t); ok || makesRepository(s) && k.beside(t.real) {
			return Part{}, false
		}
		return l.bounded(t)
	}
}

// beside reports whether a path lies in the directory that a root lies in.
func (k *core) beside(name string) bool {
	return slices.ContainsFunc(k.roots, func(root pathname.Place) bool { return filepath.Dir(root.Real) == filepath.Dir(name) })
}

// makesRepository reports whether git makes a work tree or a repository, beside the one
// that it stands in as a rule.
func makesRepository(s command.Simple) bool {
	return s.Name == "git" && slices.ContainsFunc(s.Args[1:], func(w command.Word) bool {
		return w.Text == "worktree" || w.Text == "clone" || w.Text == "init" || w.Text == "submodule"
	})
}

// targets resolves words in each directory the line may be in when it comes to
// them. A word that is not known before the command runs names nothing.
func (l *line) targets(words []command.Word, dirs []Path, access rulebook.Access) []*target {
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

func (l *line) target(w command.Word, dir Path, access rulebook.Access) (*target, error) {
	if len(w.Text) > realpath.MaxLength || strings.ContainsRune(w.Text, 0) {
		return nil, fmt.Errorf("no file has such a name: %s", clip(w.Text))
	}
	p, err := l.resolve(w, w.Text, dir)
	if err != nil {
		return nil, err
	}
	verb := "read "
	if access == writing {
		verb = "write "
	}
	return newTarget(p, access, verb), nil
}

// redirects judges the targets of redirections as Edit and Read do.
func (l *line) redirects() {
	for _, w := range l.analysis.Reads {
		l.redirect(w, reading)
	}
	for _, w := range l.analysis.Writes {
		l.redirect(w, writing)
	}
}

func (l *line) redirect(w command.Word, access rulebook.Access) {
	if w.Stream && access == reading || w.Static && isStream(w.Text) {
		return
	}
	verb := "read "
	if access == writing {
		verb = "write "
	}
	dirs := l.standsIn(w.Places())
	l.likely([]command.Word{w}, dirs, access)
	if !w.Static && !w.Home || l.lost && !w.Home && !filepath.IsAbs(w.Text) {
		for _, t := range l.targets([]command.Word{w}, dirs, access) { // it may stay where it is
			l.through(t, l.denied, l.guarded, l.linkDenied, l.asked, l.exposed)
		}
		if !l.autoAllowed() {
			l.add(Part{What: verb + w.Text, Action: Ask, Rule: RuleUndecidable, Source: builtIn,
				Reason: "Which file a redirection means is not known before the command runs: " + w.Text + ".", Remedy: "Write the absolute path out."})
		}
		return
	}
	for _, dir := range dirs {
		t, err := l.target(w, dir, access)
		if err != nil {
			l.add(Part{What: verb + w.Text, Action: Deny, Rule: RuleBoundary, Source: builtIn, Reason: err.Error(), Remedy: "Name another file."})
			continue
		}
		part := l.decide(t)
		if part.Action == Ask && !part.Firm && part.Rule != RuleHardLink && l.held() && l.autoAllowed() {
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
