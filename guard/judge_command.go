package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// A commandJudge judges a command line.
type commandJudge struct {
	j        *judge
	line     *commandLine
	excluded bool // the settings want the command outside of the containment
	// temporary says that a redirection writes a temporary file: then a command that only reads needs an allow rule too.
	temporary bool
}

// command judges a Bash command. It runs checks as for a file, but all of them count: the verdict
// on a line is that on its worst part.
func (j *judge) command(c Exec) {
	if c.Dir.real == "" {
		j.add(Part{What: "run " + c.Text, Action: Deny, Rule: RuleBoundary, Source: builtIn,
			Reason: "The directory of the command was never resolved."})
		return
	}
	l := &commandJudge{j: j, line: j.data.lineOf(c)}
	l.excluded = j.data.excludes(l.line.analysis)
	j.data = l.line.data
	l.denials()
	files := wordFiles{l}
	files.words()
	if !l.discarded() {
		files.removals()
	}
	files.redirects()
	l.hiding()
	l.unread()
	l.containable()
	l.optOut()
	l.permission()
}

func (l *commandJudge) part(a Action, rule, reason, remedy string) Part {
	return Part{What: "run " + l.line.text, Action: a, Rule: rule, Source: builtIn, Reason: reason, Remedy: remedy}
}

// denials applies the deny and ask rules on commands. A match on any simple command counts.
func (l *commandJudge) denials() {
	for _, list := range []ruleList{l.j.data.deny, l.j.data.ask} {
		add := func(text, shown string, r *rules.Rule) {
			l.j.add(byRule("run "+text, "The command "+clip(shown), list.action, r))
		}
		if r := list.Commands.Line(l.line.text); r != nil {
			add(l.line.text, l.line.text, r)
		}
		for _, s := range l.line.analysis.Commands {
			r, maybe := list.Commands.Denies(s)
			switch {
			case r != nil:
				add(s.Text, textOf(s), r)
			// The word that is not known may be the one that the rule names.
			case maybe != nil && l.j.data.execGate() != nil:
				l.j.add(Part{
					What: "run " + s.Text, Action: Ask, Rule: maybe.Text, Source: maybe.Source, Final: true,
					Reason: fmt.Sprintf("Whether the rule %s applies to %s is known only when it runs.", maybe.Text,
						clip(textOf(s))),
					Remedy: "Write out the words that the rule speaks of.",
				})
			}
		}
	}
}

// textOf returns a command as it is shown: as it was written, or with its words quoted.
func textOf(s command.Simple) string {
	known := func(w command.Word) bool { return w.Static && !w.Home }
	switch {
	case s.Source != s.Text && s.Source != "":
		return s.Source
	case slices.ContainsFunc(s.Args, func(w command.Word) bool { return !known(w) }):
		return s.Text
	}
	return Quote(wordsOf(s)...)
}

// clip returns a command for a message.
func clip(text string) string {
	const most = 300
	return `"` + strings.ReplaceAll(OneLine(Shorten(text, most)), `"`, `\"`) + `"`
}

// hiding judges a line whose text does not name every program, if there are rules on commands. The exec gate judges
// such programs when they start; without a gate the line requires approval. So does a part that was not read, if a
// rule is about a builtin, which no gate sees.
func (l *commandJudge) hiding() {
	a, k := l.line.analysis, l.j.data
	named := append(k.deny.Commands.Programs(), k.ask.Commands.Programs()...)
	if !a.Hiding || k.deny.Commands.Empty() && k.ask.Commands.Empty() {
		return
	}
	if k.execGate() == nil {
		l.j.heldLate = heldLate
		if !a.Partial || !slices.ContainsFunc(named, command.IsBuiltin) {
			return
		}
	}
	l.ask("run "+l.line.text, ruleUndecidable, "What the command would run cannot be known before ("+
		strings.Join(a.Undecidable, "; ")+"), and rules deny some commands or ask for them.",
		"Write the program's name out and run it directly.")
}

// ask asks for something in every mode, whatever rules allow.
func (l *commandJudge) ask(what, rule, reason, remedy string) {
	l.j.add(Part{What: what, Action: Ask, Rule: rule, Source: builtIn, Final: true, Reason: reason, Remedy: remedy})
}

// offByChoice reports whether the user, not the workspace, turned the sandbox off, and did not ask
// for commands to be refused without it.
func (l *commandJudge) offByChoice() bool {
	return l.j.data.sandbox.OffByChoice && !l.j.data.containment().Writes &&
		l.j.data.sandbox.OnUnavailable != settings.OnFailureDeny
}

// unread requires approval if a part of the line was not analyzed, and rules on files that the containment does not
// enforce may apply to that part: rules on files that require approval, or on denied files that do not exist yet.
func (l *commandJudge) unread() {
	k := l.j.data
	if l.line.analysis.Partial && (!l.contained() && k.ask.HasPaths() || !k.ask.Edit.Empty() || !k.deny.Edit.Empty()) {
		l.ask("run "+l.line.text, ruleUndecidable, "A part of the command was not looked at ("+
			strings.Join(l.line.analysis.Undecidable, "; ")+"), and rules speak of files that it may name.",
			"Name fewer files at once, or let a person agree.")
	}
}

// contained reports whether the containment keeps the command from denied and protected files.
func (l *commandJudge) contained() bool { return l.held() && l.j.data.containment().Denies }

// held reports whether the kernel keeps the command's writes in the boundary.
func (l *commandJudge) held() bool {
	return l.j.data.containment().Writes && !l.j.exec.Unsandboxed && !l.excluded
}

// discarded reports whether nothing that the command changes reaches the disk.
func (l *commandJudge) discarded() bool { return l.held() && l.j.data.discards() }

// containable refuses a command if rules on files apply that nothing would enforce.
func (l *commandJudge) containable() {
	k := l.j.data
	if k.sandbox.FailIfUnavailable && !k.containment().Writes {
		l.j.add(l.part(Deny, ruleContainment, "Commands are only run in a sandbox, and there is none.",
			stopAndAsk))
	}
	// The settings of the sandbox deny files only to commands that run in it.
	denies := k.deny.HasPaths() || k.ownFilesWritable || k.files.any() && !l.excluded
	if k.containment().Denies && !l.excluded || !denies || l.offByChoice() ||
		k.sandbox.OnUnavailable == settings.OnFailureAllow {
		return
	}
	open := "nothing keeps this command from them"
	if l.excluded {
		open += " (sandbox.excludedCommands takes it out of the sandbox)"
	}
	what := "Rules deny files"
	if !k.deny.HasPaths() && !k.files.any() {
		what = "Files of the host's own, such as the audit log, lie where commands write"
	}
	part := l.part(Deny, ruleContainment, what+", and "+open+".",
		"Use Read, Edit, Grep and Glob, which obey the rules, or stop and ask the user.")
	part.person = "get a sandbox, as toolhost doctor says, or set sandbox.onUnavailable in your own settings"
	part.Final = true
	if k.sandbox.OnUnavailable == settings.OnFailureAsk {
		part.Action = Ask
	}
	l.j.add(part)
}

// optOut requires approval before a command leaves the containment.
func (l *commandJudge) optOut() {
	if !l.j.exec.Unsandboxed {
		return
	}
	part := l.part(Ask, ruleUnsandboxed, "The call asks to run outside the sandbox.",
		"Leave dangerouslyDisableSandbox out, or let a person agree.")
	part.Final = true
	if !l.j.data.sandbox.AllowUnsandboxedCommands {
		part.Action, part.Remedy = Deny, "Leave dangerouslyDisableSandbox out; sandbox.allowUnsandboxedCommands forbids it."
	}
	l.j.add(part)
}

// permission decides by mode and allow rules on commands that no other check refused.
func (l *commandJudge) permission() {
	switch {
	case !l.discarded() && l.onlyReads():
		l.j.add(l.part(Allow, ruleReadOnly, "Every command of it only reads, and only what may be read.", ""))
	case l.discarded():
		l.j.add(l.j.modePart("run "+l.line.text, Allow, "What it changes is dropped when the plan ends."))
	case l.j.data.mode == settings.ModePlan:
		part := l.j.planPart("run " + l.line.text)
		part.Reason = "Plan mode changes nothing, and no sandbox drops what this command may change."
		l.j.add(part)
	case l.j.data.mode == settings.ModeBypass:
		l.j.add(l.j.modePart("run "+l.line.text, Allow, "This mode asks for nothing that no rule denies."))
	default:
		l.byRules()
	}
}

// onlyReads reports whether every command of the line only reads what Read may read, so that it needs no rule in any
// mode.
func (l *commandJudge) onlyReads() bool {
	a := l.line.analysis
	return len(a.Undecidable) == 0 && len(a.Commands) > 0 && every(a.Commands, l.reads)
}

// byRules decides by the allow rules on Bash, on this line and on each command of it, and asks for
// the commands that nothing allows unless the mode allows them.
func (l *commandJudge) byRules() {
	what, commands := "run "+l.line.text, l.line.analysis.Commands
	unread := !l.held() && l.line.analysis.Partial || slices.ContainsFunc(commands, l.writesUnread)
	if r := l.j.data.allow.Named("Bash"); r != nil && !unread {
		l.j.add(allowedBy(what, r, "A rule allows every command."))
		return
	}
	if r := l.j.data.allow.Commands.Line(l.line.text); r != nil {
		l.j.add(allowedBy(what, r, "A rule allows exactly this."))
		return
	}
	var allowed, open []Part
	for _, s := range commands {
		part := l.commandPart(s)
		// Bash(timeout 30 pytest:*) names the inner one too.
		if part.Action != Allow && s.Outer >= 0 && len(s.Undecidable) == 0 && !l.writesUnread(s) {
			if r := l.j.data.allow.Commands.Allows(commands[s.Outer]); r != nil && r.NamesInner(s.Name) {
				part = allowedBy("run "+s.Text, r, "A rule allows it.")
			}
		}
		if part.Action == Allow {
			allowed = append(allowed, part)
		} else {
			open = append(open, part)
		}
	}
	switch {
	case len(allowed) > 0 && len(open) == 0 && !l.elsewhere():
		l.j.parts = append(l.j.parts, allowed...)
	case l.autoAllowed():
		l.j.add(l.j.modePart(what, Allow, l.autoReason()))
	case len(open) > 0:
		for _, part := range open {
			l.j.add(part)
		}
	default:
		l.j.add(l.part(Ask, ruleUndecidable, "What the command would do cannot be known before it runs: "+
			strings.Join(l.line.analysis.Undecidable, "; ")+".",
			"Write it in a simpler form, or let a person agree."))
	}
}

// commandPart decides on one command by the allow rules; it is allowed as well if it only reads.
func (l *commandJudge) commandPart(s command.Simple) Part {
	what := "run " + s.Text
	r := l.j.data.allow.Named("Bash")
	if r == nil {
		r = l.j.data.allow.Commands.Allows(s)
	}
	unread := r != nil && isWide(r) && l.writesUnread(s)
	if r != nil && !unread {
		return allowedBy(what, r, "A rule allows it.")
	}
	if l.reads(s) {
		return Part{What: what, Action: Allow, Rule: ruleReadOnly, Source: builtIn, Reason: "It only reads."}
	}
	reason := "No rule allows the command " + clip(textOf(s)) + "."
	switch {
	case unread:
		reason = "Which file " + clip(textOf(s)) +
			" writes or removes is not known before it runs, and no sandbox contains it."
	case len(s.Undecidable) > 0:
		reason = fmt.Sprintf("What %s would do cannot be known before it runs: %s.", clip(textOf(s)),
			strings.Join(s.Undecidable, "; "))
	}
	return Part{What: what, Action: Ask, Rule: modeRule(l.j.data.mode), Source: builtIn, Reason: reason,
		Remedy: stopAndAsk, personCommand: allowCommand("Bash(" + firstWords(s) + ")")}
}

// elsewhere reports whether the line is undecidable for a reason that comes from no single
// command.
func (l *commandJudge) elsewhere() bool {
	return slices.ContainsFunc(l.line.analysis.Undecidable, func(reason string) bool {
		of := func(s command.Simple) bool { return slices.Contains(s.Undecidable, reason) }
		return !slices.ContainsFunc(l.line.analysis.Commands, of)
	})
}

// autoAllowed reports whether commands run without approval: they are contained, or the caller sits
// at the machine and chose to accept edits.
func (l *commandJudge) autoAllowed() bool {
	k := l.j.data
	if l.discarded() {
		return true
	}
	if !k.sandbox.AutoAllowBashIfSandboxed || l.j.exec.Unsandboxed || l.excluded {
		return false
	}
	switch k.mode {
	case settings.ModeAcceptEdits:
		return l.contained() || !l.j.policy.caller.Remote && !l.line.analysis.Downloaded
	case settings.ModeDefault, settings.ModeAuto:
		return l.contained()
	}
	return false
}

func (l *commandJudge) autoReason() string {
	if l.held() {
		return "The sandbox (" + l.j.data.containment().Name + ") keeps it in the workspace."
	}
	return "This mode runs commands of a local user, uncontained."
}

// firstWords proposes a rule for a command.
func firstWords(s command.Simple) string {
	if s.Name == "" || len(s.Undecidable) > 0 {
		return s.Text
	}
	if len(s.Args) > 2 && s.Args[1].Static && !isOption(s.Args[1].Text) && !strings.ContainsAny(s.Args[1].Text, "/. ") {
		return s.Name + " " + s.Args[1].Text + " *"
	}
	return s.Name + " *"
}

func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }
