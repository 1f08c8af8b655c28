package guard

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/settings"
)

// A line is a command line while it is judged.
type line struct {
	*judge
	text     string
	analysis *command.Analysis
	dirs     []Path // where its words may be relative to: its directory and what it changes to
	lost     bool   // it changes to a directory that is not known
	excluded bool   // the settings want it outside of the containment
	placed   bool   // it stays where Read may look
	readOnly bool   // every command of it only reads, and only what Read may
}

// command judges a Bash command. Like a file it goes through stations, but all
// of them have their say: a line is as bad as its worst part.
func (j *judge) command(c Command) {
	if c.Dir.real == "" {
		j.add(Part{What: "run " + c.Text, Action: Deny, Rule: RuleBoundary, Source: builtIn, Reason: "The directory of the command was never resolved."})
		return
	}
	l := &line{judge: j, text: c.Text, analysis: command.Analyze(c.Text), dirs: []Path{c.Dir}}
	l.excluded = l.k.excludes(l.analysis)
	l.follow()
	l.denials()
	l.words()
	l.removals()
	l.placed = l.inReadable()
	l.readOnly = l.onlyReads()
	l.redirects()
	l.hiding()
	l.containable()
	l.optOut()
	l.permission()
}

func (l *line) part(a Action, rule, reason, remedy string) Part {
	return Part{What: "run " + l.text, Action: a, Rule: rule, Source: builtIn, Reason: reason, Remedy: remedy}
}

// follow finds the directories that the line changes to. A line with cd in it is
// judged as if each of its commands ran in each of them.
func (l *line) follow() {
	for _, s := range l.analysis.Commands {
		switch s.Name {
		case "cd", "pushd":
			l.enter(s)
		case "env", "genv", "sudo", "doas":
			l.lost = l.lost || l.analysis.ChangesDir && len(s.Args) > 1 && isOption(s.Args[1].Text)
		}
	}
	l.lost = l.lost || l.analysis.ChangesDir && len(l.dirs) == 1
}

// maxDirs bounds the directories that one line is followed into.
const maxDirs = 8

func (l *line) enter(s command.Simple) {
	w := command.Word{Text: "~", Static: true, Home: true}
	if len(s.Args) > 1 {
		w = s.Args[len(s.Args)-1]
	}
	if !w.Static && !w.Home || w.Text == "-" || len(l.dirs) > maxDirs {
		l.lost = true
		return
	}
	for _, dir := range slices.Clone(l.dirs) {
		if p, err := l.resolve(w, w.Text, dir); err == nil && !slices.Contains(l.dirs, p) {
			l.dirs = append(l.dirs, p)
		}
	}
}

// resolve resolves a word, or a part of it. "~" is the home directory only where
// the shell takes it so, and a command's own directory in /proc is not ours.
func (l *line) resolve(w command.Word, text string, dir Path) (Path, error) {
	if !w.Home && strings.HasPrefix(text, "~") {
		text = "./" + text
	}
	for _, own := range []string{"/proc/self/cwd", "/proc/thread-self/cwd"} {
		if within(text, own) {
			text = "." + text[len(own):]
		}
	}
	return l.k.resolve(dir, text)
}

// denials applies the deny and ask rules on commands: any simple command counts.
func (l *line) denials() {
	for _, list := range []*list{l.k.deny, l.k.ask} {
		if r := list.commands.line(l.text); r != nil {
			l.add(l.rulePart(l.text, r, list.action))
		}
		for _, s := range l.analysis.Commands {
			if r := list.commands.denies(s); r != nil {
				l.add(l.rulePart(s.Text, r, list.action))
			}
		}
	}
}

func (l *line) rulePart(text string, r *rule, a Action) Part {
	return Part{
		What: "run " + text, Action: a, Rule: r.text, Source: r.source, Firm: true,
		Reason: fmt.Sprintf("The command %s is %s by a rule.", clip(text), ruled(a)), Remedy: ruleRemedy(a),
	}
}

// clip shortens a command for a message.
func clip(text string) string {
	const most = 120
	if r := []rune(text); len(r) > most {
		return "\"" + string(r[:most]) + "…\""
	}
	return "\"" + text + "\""
}

// words judges the files that the arguments name, so that a refusal says why;
// what is not seen here the containment holds.
func (l *line) words() {
	for _, s := range l.analysis.Commands {
		reads, writes := s.Paths()
		if len(reads)+len(writes) == 0 && !searchesText(s.Name) {
			reads = s.Mentions()
		}
		for _, t := range l.targets(reads, reading) {
			l.through(t, l.denied, l.guarded, l.asked)
		}
		for _, t := range l.targets(writes, writing) {
			l.through(t, l.denied, l.guarded, l.linkDenied, l.asked, l.exposed, l.leaving)
		}
		if len(writes) == 0 && !l.contained() && s.Name != "git" && !s.ReadOnly() {
			for _, t := range l.targets(reads, writing) {
				l.through(t, l.protected)
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
func (l *line) through(t target, stations ...func(target) (Part, bool)) {
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
func (l *line) exposed(t target) (Part, bool) {
	if l.contained() {
		return Part{}, false
	}
	return l.protected(t)
}

// leaving is bounded for commands that would otherwise run unasked with nothing
// to keep them in the boundary.
func (l *line) leaving(t target) (Part, bool) {
	if l.held() || !l.autoAllowed() {
		return Part{}, false
	}
	if _, ok := l.ruledIn(t); ok {
		return Part{}, false
	}
	return l.bounded(t)
}

// targets resolves words in each directory the line may be in when it comes to
// them. A word that is not known before the command runs names nothing.
func (l *line) targets(words []command.Word, access fileAccess) []target {
	var out []target
	for _, w := range words {
		if !w.Static && !w.Home || w.Text == "" || isStream(w.Text) {
			continue
		}
		for _, dir := range l.dirs {
			if t, err := l.target(w, dir, access); err == nil {
				out = append(out, t)
			}
		}
	}
	return out
}

func (l *line) target(w command.Word, dir Path, access fileAccess) (target, error) {
	if len(w.Text) > MaxPathLength || strings.ContainsRune(w.Text, 0) {
		return target{}, fmt.Errorf("no file has such a name: %s", clip(w.Text))
	}
	p, err := l.resolve(w, w.Text, dir)
	if err != nil {
		return target{}, err
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

func (l *line) redirect(w command.Word, access fileAccess) {
	if w.Static && isStream(w.Text) {
		return
	}
	verb := "read "
	if access == writing {
		verb = "write "
	}
	if !w.Static && !w.Home || l.lost && !w.Home && !filepath.IsAbs(w.Text) {
		if !l.autoAllowed() {
			l.add(Part{What: verb + w.Text, Action: Ask, Rule: RuleUndecidable, Source: builtIn,
				Reason: "Which file a redirection means is not known before the command runs: " + w.Text + ".", Remedy: "Write the absolute path out."})
		}
		return
	}
	for _, dir := range l.dirs {
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

// emptied matches a removal that is one of "/" or all of its children when the
// variable in it is empty.
var emptied = regexp.MustCompile(`^["']?\$(\{[^}]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*])["']?/+["']?[.*?]*["']?$`)

// removals asks before a directory is removed that nobody means to remove.
func (l *line) removals() {
	for _, s := range l.analysis.Commands {
		if s.Name != "rm" && s.Name != "rmdir" {
			continue
		}
		for _, w := range s.Args[1:] {
			if l.removesCritical(w) {
				part := Part{What: "run " + s.Text, Action: Ask, Rule: RuleCritical, Source: builtIn, Firm: true,
					Reason: fmt.Sprintf("%s would remove, or could remove, a root, home or workspace directory.", clip(s.Text)),
					Remedy: "Name what is to be removed more closely; a person must agree to this in any mode."}
				l.add(part)
				break
			}
		}
	}
}

func (l *line) removesCritical(w command.Word) bool {
	if !w.Static && !w.Home && !w.Glob {
		return emptied.MatchString(w.Text)
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
	for _, dir := range l.dirs {
		p, err := l.resolve(w, text, dir)
		if err != nil {
			continue
		}
		for _, name := range []string{slashed(p.given), slashed(p.real)} {
			if children && name == "/" || l.k.critical(name) {
				return true
			}
		}
	}
	return false
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

// hiding asks where a deny or ask rule on commands exists that a form of the
// line could get around.
func (l *line) hiding() {
	if l.analysis.Hiding && l.k.deny.commands.count+l.k.ask.commands.count > 0 {
		part := l.part(Ask, RuleUndecidable, fmt.Sprintf("What the command would run cannot be known before (%s), and rules deny some commands or ask for them.",
			strings.Join(l.analysis.Undecidable, "; ")), "Write the program's name out and run it directly.")
		part.Firm = true
		l.add(part)
	}
}

// contained reports whether what rules deny is out of the command's reach.
func (l *line) contained() bool { return l.held() && l.k.containment.Denies }

// held reports whether the kernel keeps the command's writes in the boundary.
func (l *line) held() bool { return l.k.containment.Writes && !l.in.Unsandboxed && !l.excluded }

// containable refuses what rules on files forbid but nothing would hold.
func (l *line) containable() {
	k := l.k
	if k.sandbox.FailIfUnavailable && !k.containment.Writes {
		l.add(l.part(Deny, RuleContainment, "Commands are only run in a sandbox, and there is none"+because(k.containment.Why)+".",
			"A person makes a sandbox available or turns sandbox.failIfUnavailable off."))
	}
	if k.containment.Denies && !l.excluded || !k.deny.hasPaths() || k.sandbox.OnUnavailable == settings.OnFailureAllow {
		return
	}
	why := k.containment.Why
	if l.excluded {
		why = "sandbox.excludedCommands takes it out of the sandbox"
	}
	part := l.part(Deny, RuleContainment, "Rules deny files, and nothing keeps this command from them"+because(why)+".",
		"Use Read, Edit, Grep and Glob, which obey the rules; a person can make a sandbox available, or set sandbox.onUnavailable in the user settings.")
	part.Firm = true
	if k.sandbox.OnUnavailable == settings.OnFailureAsk {
		part.Action = Ask
	}
	l.add(part)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// optOut asks before a command leaves the containment.
func (l *line) optOut() {
	if !l.in.Unsandboxed {
		return
	}
	part := l.part(Ask, RuleUnsandboxed, "The call asks to run outside the sandbox.", "Leave dangerouslyDisableSandbox out, or let a person agree.")
	part.Firm = true
	if !l.k.sandbox.AllowUnsandboxedCommands {
		part.Action, part.Remedy = Deny, "Leave dangerouslyDisableSandbox out; sandbox.allowUnsandboxedCommands forbids it."
	}
	l.add(part)
}

// permission decides by mode and allow rules what no other station refused.
func (l *line) permission() {
	switch {
	case l.readOnly:
		l.add(l.part(Allow, RuleReadOnly, "Every command of it only reads, and only what may be read.", ""))
	case l.k.mode == settings.ModePlan:
		l.add(l.planPart("run a command that may change something"))
	case l.k.mode == settings.ModeBypass:
		l.add(l.modePart("run "+l.text, Allow, "This mode asks for nothing that no rule denies."))
	case l.allowedByRules():
	case l.autoAllowed():
		l.add(l.modePart("run "+l.text, Allow, l.autoReason()))
	default:
		l.unallowed()
	}
}

// allowedByRules adds the allowing parts if a rule allows Bash, this line, or
// every single command of it.
func (l *line) allowedByRules() bool {
	if r := l.k.allow.named("Bash"); r != nil {
		l.add(Part{What: "run " + l.text, Action: Allow, Rule: r.text, Source: r.source, Reason: "A rule allows every command."})
		return true
	}
	if r := l.k.allow.commands.line(l.text); r != nil {
		l.add(Part{What: "run " + l.text, Action: Allow, Rule: r.text, Source: r.source, Reason: "A rule allows exactly this."})
		return true
	}
	var parts []Part
	for _, s := range l.analysis.Commands {
		part, ok := l.allowedCommand(s)
		if !ok {
			return false
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 || l.undecidedElsewhere() {
		return false
	}
	l.parts = append(l.parts, parts...)
	return true
}

func (l *line) allowedCommand(s command.Simple) (Part, bool) {
	if r := l.k.allow.commands.allows(s); r != nil {
		return Part{What: "run " + s.Text, Action: Allow, Rule: r.text, Source: r.source, Reason: "A rule allows it."}, true
	}
	if l.reads(s) {
		return Part{What: "run " + s.Text, Action: Allow, Rule: RuleReadOnly, Source: builtIn, Reason: "It only reads."}, true
	}
	return Part{}, false
}

// undecidedElsewhere reports whether the line is undecidable for a reason that
// comes from no single command.
func (l *line) undecidedElsewhere() bool {
	own := map[string]bool{}
	for _, s := range l.analysis.Commands {
		for _, reason := range s.Undecidable {
			own[reason] = true
		}
	}
	for _, reason := range l.analysis.Undecidable {
		if !own[reason] {
			return true
		}
	}
	return false
}

// autoAllowed reports whether commands run unasked: contained, or on a machine
// whose user sits at it and chose to accept edits.
func (l *line) autoAllowed() bool {
	k := l.k
	if !k.sandbox.AutoAllowBashIfSandboxed || l.in.Unsandboxed || l.excluded {
		return false
	}
	switch k.mode {
	case settings.ModeAcceptEdits:
		return k.containment.Writes || !l.caller.Remote
	case settings.ModeDefault:
		return k.containment.Writes
	}
	return false
}

func (l *line) autoReason() string {
	if l.k.containment.Writes {
		return "The sandbox (" + l.k.containment.Name + ") keeps it in the workspace."
	}
	return "This mode runs commands of a local user, uncontained" + because(l.k.containment.Why) + "."
}

// unallowed asks for each command that nothing allows.
func (l *line) unallowed() {
	found := false
	for _, s := range l.analysis.Commands {
		if _, ok := l.allowedCommand(s); ok {
			continue
		}
		found = true
		reason := "No rule allows the command " + clip(s.Text) + "."
		if len(s.Undecidable) > 0 {
			reason = fmt.Sprintf("What %s would do cannot be known before it runs: %s.", clip(s.Text), strings.Join(s.Undecidable, "; "))
		}
		l.add(Part{What: "run " + s.Text, Action: Ask, Rule: modeRule(l.k.mode), Source: builtIn, Reason: reason,
			Remedy: allowRemedy("Bash(" + firstWords(s) + ")")})
	}
	if !found {
		l.add(l.part(Ask, RuleUndecidable, "What the command would do cannot be known before it runs: "+strings.Join(l.analysis.Undecidable, "; ")+".",
			"Write it in a simpler form, or let a person agree."))
	}
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
