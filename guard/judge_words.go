package guard

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/guard/settle"
)

// A wordFiles judges the files that the literal words and the redirections of a line name. With a containment, which
// enforces the rules on files whatever a command does, words are still judged for two reasons: a line that cannot
// succeed should not run in part, and no containment enforces a rule on files that do not exist yet. Without a
// containment, only literal words are judged.
type wordFiles struct{ *commandJudge }

// A check judges a file of the line, and reports whether it decided.
type check = func(*target) (Part, bool)

// words judges the files that the words of the commands name.
func (f wordFiles) words() {
	for _, s := range f.line.analysis.Commands {
		reads, writes := s.Files()
		dirs := f.line.runsIn(s.Led)
		if s.ShowsContent() {
			for _, t := range f.line.targets(reads, dirs, reading) {
				f.read(t)
			}
		}
		for _, t := range f.line.targets(writes, dirs, writing) {
			f.write(s, t)
			if t.path.dir && s.Copies() { // the copies have these names in the directory
				for _, from := range f.line.targets(reads, dirs, reading) {
					if p, err := f.j.data.resolve(t.path, filepath.Base(from.path.given)); err == nil {
						f.write(s, newTarget(p, writing, "write "))
					}
				}
			}
		}
	}
}

// read judges a file that a command reads.
func (f wordFiles) read(t *target) {
	if f.contained() {
		if !t.path.dir { // a directory may hold more than what is denied
			f.through(t, f.j.denied, f.askedHidden)
		}
		return
	}
	f.through(t, f.j.denied, f.j.selfProtection, f.j.deniedHardlink, f.j.asked, f.ruledInside)
}

// maxInside is how many files of a directory are held against the rules on reading.
const maxInside = 20_000

// ruledInside judges the reading of a directory in which a rule denies or asks about a file: grep -r shows it.
// Nothing hides the file from a command that no sandbox contains. In a directory of more than [maxInside] files, the
// first rule counts as one about them.
func (f wordFiles) ruledInside(t *target) (part Part, found bool) {
	k := f.j.data
	if !t.path.dir || k.deny.Read.Empty() && k.ask.Read.Empty() {
		return Part{}, false
	}
	looked := 0
	_ = filepath.WalkDir(t.path.real, func(path string, d fs.DirEntry, err error) error {
		if looked++; err != nil {
			return nil // what cannot be listed is not read either
		}
		for _, l := range []ruleList{k.deny, k.ask} {
			r := l.Read.Match(pathname.Slashed(path), d.IsDir())
			if r == nil && looked > maxInside && !l.Read.Empty() {
				r = l.Read.Rules()[0]
			}
			if r != nil && (!found || l.action < part.Action) {
				part, found = t.byRule(l.action, r), true
			}
		}
		if looked > maxInside || found && part.Action == Deny {
			return fs.SkipAll
		}
		return nil
	})
	return part, found
}

// write judges a file that a command writes.
func (f wordFiles) write(s command.Simple, t *target) {
	if f.contained() {
		f.through(t, f.j.denied, f.j.selfProtection, f.askedHidden, f.j.asked, f.writesProtected)
		return
	}
	protected := f.writesProtected
	if s.Name == "mkdir" { // no program obeys an empty directory
		protected = func(*target) (Part, bool) { return Part{}, false }
	}
	f.through(t, f.j.denied, f.rerouting(s), f.j.selfProtection, f.j.deniedHardlink, f.deniedInside, f.j.asked,
		protected, f.leaving(s))
}

// askedHidden refuses a file that commands cannot access because a rule asks before it is read.
func (f wordFiles) askedHidden(t *target) (Part, bool) {
	k := f.j.data
	if !f.contained() || k.ask.Read.Match(t.real, t.path.dir) == nil && k.ask.Read.Match(t.given, t.path.dir) == nil {
		return Part{}, false
	}
	part, ok := f.j.asked(t)
	tool := "Read"
	if t.access == writing {
		tool = "Edit or Write"
	}
	part.Action, part.personCommand, part.person = Deny, nil, ""
	part.Reason = "A rule asks before " + Quote(t.path.given) + " is read, so commands have no access to it."
	part.Remedy = "Use " + tool + ", which asks a person."
	return part, ok
}

// through applies checks to a file in order and keeps the objection of the first check that decides.
func (f wordFiles) through(t *target, checks ...check) {
	if t.access == writing && f.discarded() {
		checks = []check{f.j.denied, f.askedHidden}
	}
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
	return !k.isOwnOfHome(t.path.real) && (f.contained() || f.held() && k.isSettledPath(t.path.real))
}

// deniedInside refuses to write a directory whose entire content is denied: a command that removes or moves it, or
// copies into it, writes its content.
func (f wordFiles) deniedInside(t *target) (Part, bool) {
	if !t.path.dir {
		return Part{}, false
	}
	inside := *t
	inside.given, inside.real, inside.path.dir = t.given+rules.AnyChild, t.real+rules.AnyChild, false
	return f.j.denied(&inside)
}

// rerouting refuses to rename, remove or replace a link or directory on the way to a file that the host obeys, where no
// sandbox keeps it in place.
func (f wordFiles) rerouting(s command.Simple) check {
	return func(t *target) (Part, bool) {
		if !replaces(s, t) {
			return Part{}, false
		}
		dir, _, err := realpath.Follow(filepath.Dir(t.path.given))
		name := filepath.Join(dir, filepath.Base(t.path.given))
		if err != nil || f.j.data.isCritical(pathname.Slashed(name)) || !f.j.controlled().isStep(name) {
			return Part{}, false // critical paths require approval elsewhere
		}
		return t.part(Deny, ruleSettingsFile, "The host comes to files that it obeys by this name, so no command can "+
			"rename, remove or replace it: "+t.path.given+".",
			"Tell the user what to change; a person does this."), true
	}
}

// replaces reports whether a command renames, removes or replaces what it names as written. A directory into which
// files are moved or linked is not replaced, unless an option may say otherwise.
func replaces(s command.Simple, t *target) bool {
	switch s.Name {
	case "rm", "rmdir", "unlink", "shred":
		return true
	case "mv", "ln":
		into := strings.TrimRight(filepath.Base(s.Args[len(s.Args)-1].Text), "/")
		return !t.path.dir || into != filepath.Base(t.path.given) ||
			slices.ContainsFunc(s.Args[1:],
				func(w command.Word) bool { return isOption(w.Text) && strings.ContainsAny(w.Text, "nTt") })
	}
	return false
}

// isSettledPath reports whether what commands write at a path is held until a person answers: see [Commands.Settled].
func (k *policyData) isSettledPath(path string) bool {
	name := pathname.Slashed(path)
	return settle.ClassOf(k.recursive(name)) == settle.Held && !k.hostFiles.Hold(name) &&
		slices.ContainsFunc(k.bounds, func(b pathname.Place) bool { return pathname.Within(name, pathname.Slashed(b.Real)) })
}

// leaving is outsideRoots for the writes of a command that would otherwise run without approval and without anything
// that keeps it in the boundary: a rule such as Bash(cp:*) allows the program, not every path on the disk. A rule
// without wildcards allows what it says.
func (f wordFiles) leaving(s command.Simple) check {
	k := f.j.data
	r := k.allow.Commands.Allows(s)
	wide := r != nil && isWide(r) && k.mode != settings.ModeBypass &&
		k.allow.Named("Bash") == nil &&
		k.allow.Commands.Line(f.line.text) == nil
	return func(t *target) (Part, bool) {
		if _, ok := f.j.allowRule(t); ok || f.held() || !wide && !f.autoAllowed() {
			return Part{}, false
		}
		return f.j.outsideRoots(t)
	}
}

func verbOf(access rules.Access) string {
	if access == writing {
		return "write "
	}
	return "read "
}

// redirects judges the targets of redirections: as the files of a command, and as Edit and Read do where the line needs
// a rule.
func (f wordFiles) redirects() {
	for _, w := range f.line.analysis.Reads {
		f.redirect(w, reading)
	}
	for _, w := range f.line.analysis.Writes {
		f.redirect(w, writing)
	}
}

func (f wordFiles) redirect(w command.Word, access rules.Access) {
	if w.Stream() && access == reading || w.Static && isStream(w.Text) {
		return
	}
	targets := f.line.targets([]command.Word{w}, f.line.runsIn(w.Led), access)
	named := (w.Static || w.Home) && (!f.line.lost || w.Home || filepath.IsAbs(w.Text))
	free := f.discarded() || f.autoAllowed() && (f.held() || access == reading && f.offByChoice())
	for _, t := range targets {
		temporary := access == writing && f.j.isScratch(t)
		f.temporary = f.temporary || temporary
		switch {
		case named && !free && !temporary && !(w.Obeyed && f.offByChoice()):
			f.j.add(f.j.decide(t))
		case access == reading:
			f.read(t)
		default:
			f.write(command.Simple{}, t)
		}
	}
	part := Part{What: verbOf(access) + w.Text, Action: Ask, Rule: ruleUndecidable, Source: builtIn,
		Reason: "Which file a redirection means is not known before the command runs: " + clip(w.Text) + ".",
		Remedy: "Write the absolute path out."}
	if named && len(targets) == 0 { // no file has such a name
		part.Action, part.Rule = Deny, RuleBoundary
	}
	if part.Action == Deny || !named && !f.autoAllowed() {
		f.j.add(part)
	}
}

// isStream reports whether a redirection target is not a file on disk.
func isStream(name string) bool {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/random",
		"/dev/urandom":
		return true
	}
	return strings.HasPrefix(name, "/dev/fd/") && strings.Trim(name[len("/dev/fd/"):], "0123456789") == ""
}

// emptied matches a removal of "/" or all of its children if the variable in it is empty, and braces that may become a
// critical directory.
var emptied = regexp.MustCompile(`^["']?\$(\{[^}]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*])["']?/+["']?[.*?]*["']?$` +
	`|^(/|~/|"?\$HOME"?/)\{|[{,](~|\.|\.\.|/)/?[,}]`)

// removals requires approval before a critical directory is removed.
func (f wordFiles) removals() {
	for _, s := range f.line.analysis.Commands {
		dirs := f.line.runsIn(s.Led)
		if slices.ContainsFunc(removed(s), func(w command.Word) bool { return f.removesCritical(w, dirs) }) {
			f.ask("run "+s.Text, ruleCritical, clip(textOf(s))+
				" would remove, or could remove, a root, home or workspace directory.",
				"Name what is to be removed more closely, or stop and ask the user.")
		}
	}
}

// removed returns the words after rm or rmdir, also where a runner such as npx may start it.
func removed(s command.Simple) (words []command.Word) {
	for _, spelling := range s.Spellings() {
		if name := filepath.Base(spelling[0].Text); name == "rm" || name == "rmdir" {
			words = append(words, spelling[1:]...)
		}
	}
	return words
}

// writesUnread reports whether a command that nothing contains writes or removes a file that the text does not name, so
// that no check of its words can find where: rm -rf "${D%x}". What find and xargs supply is named, and so is what rm
// removes below a variable. A command may also run a text that was not read.
func (l *commandJudge) writesUnread(s command.Simple) bool {
	runs := l.line.analysis.Partial && len(s.Undecidable) > 0
	return !l.held() && (runs || slices.ContainsFunc(s.Spellings(), func(words []command.Word) bool {
		one := command.Simple{Name: filepath.Base(words[0].Text), Args: words}
		_, writes := one.Files()
		return slices.ContainsFunc(writes, func(w command.Word) bool {
			return !w.Static && !w.Home && strings.ContainsAny(w.Text, "$`") &&
				!(strings.HasPrefix(one.Name, "rm") && namedBelow.MatchString(w.Text))
		})
	}))
}

// isWide reports whether an allow rule means more than one command.
func isWide(r *rules.Rule) bool { return r.Spec == "" || strings.Contains(r.Spec, "*") }

// namedBelow matches a word that ends in a literal name below what is not known: "$D"/build.
var namedBelow = regexp.MustCompile("/[^/$`*?{}().\"]*[^/$`*?{}()\"][^/$`*?{}().\"]*\"?$")

func (f wordFiles) removesCritical(w command.Word, dirs []Path) bool {
	if !w.Static && !w.Home && !w.Glob {
		return emptied.MatchString(w.Text) ||
			slices.ContainsFunc(f.line.may(w), func(w command.Word) bool { return f.removesCritical(w, dirs) })
	}
	if isOption(w.Text) {
		return false
	}
	text, children := w.Text, w.Glob
	if w.Glob {
		parts := wholeContent.FindStringSubmatch(w.Text)
		if parts == nil {
			return false
		}
		if text = cmp.Or(parts[1], parts[2], "."); f.line.lost && text == "." {
			return true
		}
	}
	return slices.ContainsFunc(dirs, func(dir Path) bool {
		p, err := f.line.resolve(w, text, dir)
		return err == nil && slices.ContainsFunc([]string{pathname.Slashed(p.given), pathname.Slashed(p.real)},
			func(name string) bool {
				return children && name == "/" || f.j.data.isCritical(name)
			})
	})
}

// wholeContent matches a pattern that may match everything in a directory, and any pattern for the children of "/".
var wholeContent = regexp.MustCompile(`^(/)[^/]+$|^([^*?[]*/)?[.*?!\]\[^]+$`)

// reads reports whether a command only reads, and only files that Read may read.
func (l *commandJudge) reads(s command.Simple) bool {
	files, written := s.Files()
	dirs := l.line.runsIn(s.Led)
	readable := func(p Path) bool { return l.j.decide(newTarget(p, reading, "read ")).Action == Allow }
	return !l.temporary && s.ReadOnly() && len(written) == 0 && !l.line.lost && every(dirs, readable) &&
		every(files, func(w command.Word) bool {
			return (w.Static || w.Home) && every(dirs, func(dir Path) bool {
				p, err := l.line.resolve(w, w.Text, dir)
				return err == nil && (w.Static && isStream(w.Text) || readable(p))
			})
		})
}

// every reports whether f holds for all of a list.
func every[T any](list []T, f func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !f(x) })
}
