package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// Judge decides whether the caller may do what in says. It reads the disk only for files with several names, and
// changes nothing.
func (p *Policy) Judge(in Intent) Verdict {
	if v, broken := unreadable(p); broken {
		return v
	}
	j := &judge{policy: p, data: p.data, in: in}
	j.tool()
	silent := len(in.Effects) == 0
	for _, e := range in.Effects {
		before := len(j.parts)
		if e != nil {
			e.Judge(Judgment{j})
		}
		silent = silent || len(j.parts) == before
	}
	return j.verdict(silent)
}

// ToolEnabled reports whether any call of the tool can be allowed. A tool that is denied by name must not be listed.
// The verdict is the refusal.
func (p *Policy) ToolEnabled(name string) (bool, Verdict) {
	if v, broken := unreadable(p); broken {
		return false, v
	}
	j := &judge{policy: p, data: p.data, in: Intent{Tool: name}}
	if r := p.data.deny.Named(name); r != nil {
		j.add(byRule("call "+name, "The tool "+name, Deny, r))
		return false, j.verdict(false)
	}
	return true, Verdict{Action: Allow, Source: builtIn, Reason: "No rule denies the tool " + name + "."}
}

// IdleRules returns warnings about the rules on tools of other servers that match none of these tools. served are the
// servers of the host, and unsure reports those whose tools are not known.
func (p *Policy) IdleRules(tools, served []string, unsure func(server string) bool) (warnings []string) {
	for _, l := range []ruleList{p.data.deny, p.data.ask, p.data.allow} {
		warnings = append(warnings, l.Idle(tools, served, unsure)...)
	}
	return warnings
}

// unreadable refuses everything while a settings file cannot be parsed: deny rules may be missing.
func unreadable(p *Policy) (Verdict, bool) {
	if len(p.data.broken) == 0 && p.refused == nil {
		return Verdict{}, false
	}
	if p.refused != nil {
		return Verdict{
			Action: Deny, Rule: RuleSettings, Source: builtIn, Final: true, Reason: "Every call is refused: " +
				p.refused.Error() + ".",
			Remedy: "A person must correct that and start the host again.",
		}, true
	}
	var texts []string
	for _, err := range p.data.broken {
		texts = append(texts, err.Error())
	}
	return Verdict{
		Action: Deny, Rule: RuleSettings, Source: builtIn, Final: true,
		Reason: "Every call is refused because the permission rules cannot be read: " + strings.Join(texts, "; ") + ".",
		Remedy: "A person must correct the file; the host reloads it when it is saved.",
	}, true
}

// A judge judges one intent.
type judge struct {
	policy *Policy
	data   *policyData
	in     Intent
	parts  []Part

	heldLate     string   // see [Verdict.Held]
	controlPaths *control // see controlled
	exec         *Exec    // the command that is being judged, if any
}

// add adds a part. A part that offers a command to allow the effect for good gets the first root as the directory of
// that command.
func (j *judge) add(p Part) {
	if len(p.personCommand) > 0 && len(j.data.roots) > 0 {
		root := j.data.roots[0].Given
		if old := j.data.oldRoots.Names; len(old) > 0 { // in a worktree, which uses the settings of the old root
			root = pathname.Native(old[0])
		}
		p.person = Quote(append(p.personCommand, "--root", root)...)
	}
	p.Reason = OneLine(p.Reason) // names in it may have line breaks
	j.parts = append(j.parts, p)
}

// tool applies the rules on every call of the tool, and those on its arguments.
func (j *judge) tool() {
	strict := []ruleList{j.data.deny, j.data.ask}
	for _, l := range strict {
		if r := l.Named(j.in.Tool); r != nil {
			j.add(byRule("call "+j.in.Tool, "The tool "+j.in.Tool, l.action, r))
		}
	}
	for _, l := range strict {
		if r := l.Param(j.in.Tool, j.in.Args); r != nil {
			j.add(byRule("call "+j.in.Tool, "An argument of this call of "+j.in.Tool, l.action, r))
		}
	}
}

// byRule returns the part that a deny or ask rule decides. The subject begins the reason.
func byRule(what, subject string, a Action, r *rules.Rule) Part {
	p := Part{What: what, Action: a, Rule: r.Text, Source: r.Source, Final: true}
	if a == Ask {
		p.Reason, p.Remedy = subject+" requires approval by a rule.", stopAndAsk
	} else {
		p.Reason, p.Remedy = subject+" is denied by a rule.", "Do not look for a way around it. "+stopAndAsk
	}
	switch {
	case r.Own:
		p.personCommand = []string{"toolhost", "rules", "--remove", r.Text}
	case strings.HasPrefix(r.Source, "--"):
		p.person = "start the host without " + r.Source + " " + Quote(r.Text)
	default:
		p.person = "edit " + r.Source
	}
	return p
}

// allowedBy returns the part that an allow rule decides.
func allowedBy(what string, r *rules.Rule, reason string) Part {
	return Part{What: what, Action: Allow, Rule: r.Text, Source: r.Source, Reason: reason}
}

// file judges one file of the intent.
func (j *judge) file(p Path, access rules.Access, verb string) {
	j.add(j.decide(newTarget(p, access, verb)))
}

// The ways in which a call accesses a file.
const (
	reading = rules.Reading
	writing = rules.Writing
)

// A target is one file, with its names in the form rules are compared in.
type target struct {
	path        Path
	given, real string
	access      rules.Access
	what        string
}

func newTarget(p Path, access rules.Access, verb string) *target {
	return &target{path: p, given: pathname.Slashed(p.given), real: pathname.Slashed(p.real), access: access,
		what: verb + p.given}
}

// decide runs the checks on one file in order; the first that applies decides.
func (j *judge) decide(t *target) Part {
	if t.real == "" {
		return t.part(Deny, RuleBoundary, "The path was never resolved, so it cannot be judged.",
			"This is a defect of the tool; report it.")
	}
	for _, check := range [...]func(*judge, *target) (Part, bool){
		(*judge).denied, (*judge).selfProtection, (*judge).ofOthers, (*judge).deniedHardlink, (*judge).original,
		(*judge).planMode, (*judge).asked, (*judge).protected,
		(*judge).sharedHardlink, (*judge).privateDirOfHost, (*judge).bypassMode, (*judge).allowRule,
		(*judge).outsideRoots,
	} {
		if part, ok := check(j, t); ok {
			return part
		}
	}
	return j.byMode(t)
}

func (t *target) part(a Action, rule, reason, remedy string) Part {
	return Part{What: t.what, Action: a, Rule: rule, Source: builtIn, Reason: reason, Remedy: remedy}
}

// byRule names only the path that the caller named: the caller may not be allowed to know where a link leads.
func (t *target) byRule(a Action, r *rules.Rule) Part {
	verb := "Reading"
	if t.access == writing {
		verb = "Writing"
	}
	return byRule(t.what, verb+" "+Quote(t.path.given), a, r)
}

func (j *judge) denied(t *target) (Part, bool) {
	if r := j.data.deny.File(j.in.Tool, t.access, t.given, t.real, t.path.dir); r != nil {
		return t.byRule(Deny, r), true
	}
	if r := j.data.deny.Every; r != nil && j.editedBy(t) {
		return t.byRule(Deny, r), true
	}
	return Part{}, false
}

// editedBy reports whether a command would write a file inside the boundary: a rule on every Edit applies to such
// files too.
func (j *judge) editedBy(t *target) bool {
	return t.access == writing && j.exec != nil && j.inside(t) && !t.path.Own() &&
		!(j.data.scratch != "" && pathname.Within(t.real, pathname.Slashed(j.data.scratch)))
}

// selfProtection keeps tools from the guard's own rules, the host's state and secrets.
func (j *judge) selfProtection(t *target) (Part, bool) {
	k := j.data
	if state := k.isState(t.given) || k.isState(t.real); t.access == writing && !state && j.isControl(t.path) {
		return t.part(Deny, ruleSettingsFile, "Permission settings, and other files that the host obeys, can never be "+
			"written by a tool: "+Quote(t.path.given)+".",
			"Tell the user what to change; a person edits this file."), true
	} else if state {
		if t.access == writing || !j.policy.hidden.own.Hold(t.real) {
			return t.part(Deny, ruleState, "The host's own state cannot be touched by a tool: "+Quote(t.path.given)+".",
				"Work in the workspace instead."), true
		}
		return t.part(Allow, ruleState, "It is a stored result of this caller.", ""), true
	}
	if k.secrets.Hold(t.given) || k.secrets.Hold(t.real) {
		if r := k.allow.File(j.in.Tool, t.access, t.given, t.real, t.path.dir); r == nil {
			tool := "Read"
			if t.access == writing {
				tool = "Edit"
			}
			return t.part(Deny, ruleSecret, "Tools cannot use files with keys and credentials: "+
				Quote(t.path.given)+".",
				fmt.Sprintf("A person can open it with an allow rule such as %s(/%s).", tool, t.given)), true
		}
	}
	return Part{}, false
}

// ofOthers keeps tools from the files of other callers.
func (j *judge) ofOthers(t *target) (Part, bool) {
	k := j.data
	if j.inside(t) || !k.ofOthers.Hold(t.given) && !k.ofOthers.Hold(t.real) {
		return Part{}, false
	}
	return t.part(Deny, RuleBoundary, "The path belongs to other callers of this host: "+Quote(t.path.given)+".",
		"Stay within "+strings.Join(j.policy.Roots(), ", ")+"."), true
}

// deniedHardlink refuses files that are denied under another name.
func (j *judge) deniedHardlink(t *target) (Part, bool) {
	if t.path.links < 2 || t.path.dir || !j.data.deny.HasPaths() && len(j.data.secrets.Names) == 0 {
		return Part{}, false
	}
	s := j.data.namesOf(t.path)
	r := s.Reads[t.path.file]
	if r == nil && t.access == writing {
		r = s.Edits[t.path.file]
	}
	if r != nil {
		part := t.byRule(Deny, r)
		part.Reason = "The file has another name, which is denied by a rule: " + t.path.given + "."
		return part, true
	}
	if !s.Complete && j.data.deny.HasPaths() {
		return t.maybeDenied("The file has other names, and the workspace is too large to find them: " +
			t.path.given + "."), true
	}
	if !s.Outside && uint64(s.Inside[t.path.file]) < t.path.links {
		return t.maybeDenied("The file has names outside of the workspace, and too much is denied there to find them: " +
			t.path.given + "."), true
	}
	return Part{}, false
}

// maybeDenied requires approval each time: a rule may deny the file under another name.
func (t *target) maybeDenied(reason string) Part {
	part := t.part(Ask, ruleHardLink, reason, "Copy the file and work on the copy.")
	part.Final = true
	return part
}

func (j *judge) planMode(t *target) (Part, bool) {
	if t.access == writing && j.data.mode == settings.ModePlan {
		return j.planPart(t.what), true
	}
	return Part{}, false
}

func (j *judge) asked(t *target) (Part, bool) {
	if r := j.data.ask.File(j.in.Tool, t.access, t.given, t.real, t.path.dir); r != nil {
		return t.byRule(Ask, r), true
	}
	if r := j.data.ask.Every; r != nil && j.editedBy(t) {
		return t.byRule(Ask, r), true
	}
	return Part{}, false
}

func (j *judge) protected(t *target) (Part, bool) {
	if t.access != writing || !j.data.isProtected(t.given) && !j.data.isProtected(t.real) {
		return Part{}, false
	}
	why := "Other programs run or obey this file"
	if j.data.hostFiles.Hold(t.given) || j.data.hostFiles.Hold(t.real) {
		why = "A hook or the host runs this file"
	}
	part := t.part(Ask, RuleProtected, why+", so writing it always requires approval: "+Quote(t.path.given)+".",
		"A person must agree to each such write; no allow rule can.")
	part.Final = true
	return part, true
}

// sharedHardlink requires approval to write a file that has names outside of the boundary, such as in a package
// manager's store.
func (j *judge) sharedHardlink(t *target) (Part, bool) {
	if t.access != writing || t.path.links < 2 || t.path.dir || j.data.mode == settings.ModeBypass || !j.inside(t) {
		return Part{}, false
	}
	if s := j.data.namesOf(t.path); uint64(s.Inside[t.path.file]) >= t.path.links {
		return Part{}, false
	}
	return t.part(Ask, ruleHardLink, "The file has names outside the workspace too, which would change with it: "+
		Quote(t.path.given)+".",
		"Replace it by a copy of itself first (cp and mv), or let a person agree."), true
}

// privateDirOfHost keeps the file tools from writing host files that commands see in a private directory: they are
// read-only to commands.
func (j *judge) privateDirOfHost(t *target) (Part, bool) {
	if t.access != writing || j.exec != nil || j.inside(t) || !j.data.inPrivate(t.path.real) {
		return Part{}, false
	}
	if _, ok := j.allowRule(t); ok {
		return Part{}, false
	}
	return t.part(Deny, RuleBoundary, "The file belongs to other programs of this machine, and commands can only "+
		"read it: "+Quote(t.path.given)+".",
		"Choose a name that no other program has there: such a file is the caller's own."), true
}

func (j *judge) bypassMode(t *target) (Part, bool) {
	if j.data.mode == settings.ModeBypass {
		return j.modePart(t.what, Allow, "This mode asks for nothing that no rule denies."), true
	}
	return Part{}, false
}

func (j *judge) allowRule(t *target) (Part, bool) {
	if r := j.data.allow.File(j.in.Tool, t.access, t.given, t.real, t.path.dir); r != nil {
		return allowedBy(t.what, r, "A rule allows it."), true
	}
	return Part{}, false
}

// inside reports whether the file itself, not only its name, is in the boundary.
func (j *judge) inside(t *target) bool { return t.path.Own() || j.data.inside.Hold(t.real) }

func (j *judge) outsideRoots(t *target) (Part, bool) {
	if j.inside(t) || t.access == reading && j.data.oldRoots.Hold(t.real) || j.isScratch(t) {
		return Part{}, false
	}
	tool := "Read"
	if t.access == writing {
		tool = "Edit"
	}
	if j.data.inside.Hold(t.given) {
		return t.part(Ask, RuleBoundary, "The path leads out of the workspace by a symbolic link: "+
			Quote(t.path.given)+".",
			"A person adds the directory that it leads to, by its own name, to permissions.additionalDirectories or an allow rule."), true
	}
	return t.part(Ask, RuleBoundary, "The path is outside the workspace: "+Quote(t.path.given)+".",
		fmt.Sprintf("Stay within %s, or a person adds the directory to permissions.additionalDirectories or an allow rule "+
			"such as %s(/%s).",
			strings.Join(j.policy.Roots(), ", "), tool, t.given)), true
}

// isScratch reports whether a command names a temporary file where the user has turned the sandbox off: in the
// sandbox it would have a private /tmp. Where a root lies in a directory of temporary files, others there may be
// projects too.
func (j *judge) isScratch(t *target) bool {
	k := j.data
	if !k.sandbox.OffByChoice || k.containment().Writes || j.in.Command() == nil {
		return false
	}
	return slices.ContainsFunc(tempDirs(), func(dir string) bool {
		holdsRoot := slices.ContainsFunc(k.roots, func(root pathname.Place) bool {
			return pathname.Within(pathname.Slashed(root.Real), dir)
		})
		return !holdsRoot && t.real != dir && pathname.Within(t.real, dir)
	})
}

// tempDirs are the directories of temporary files, without links.
var tempDirs = sync.OnceValue(func() (dirs []string) {
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dirs = append(dirs, pathname.Slashed(real))
		}
	}
	return dirs
})

// byMode decides on a file inside the boundary to which no rule applies.
func (j *judge) byMode(t *target) Part {
	if t.access == reading {
		return t.part(Allow, RuleBoundary, "It is inside the workspace.", "")
	}
	tools := []string{j.in.Tool}
	if j.exec != nil { // what a command writes counts as an edit
		tools = append(tools, "Edit")
	}
	for _, tool := range tools {
		if r := j.data.allow.Named(tool); r != nil {
			return allowedBy(t.what, r, "A rule allows the tool "+tool+".")
		}
	}
	if j.data.mode == settings.ModeAcceptEdits || j.data.mode == settings.ModeAuto { // an edit can be undone
		return j.modePart(t.what, Allow, "This mode accepts edits inside the workspace.")
	}
	return Part{
		What: t.what, Action: Ask, Rule: modeRule(j.data.mode), Source: builtIn,
		Reason: "No rule allows writing " + Quote(t.path.given) + ".", Remedy: stopAndAsk,
		personCommand: allowCommand("Edit(/" + t.given + ")"),
	}
}

func (j *judge) planPart(what string) Part {
	return j.modePart(what, Deny, "Plan mode changes nothing: cannot "+what+".")
}

func (j *judge) modePart(what string, a Action, reason string) Part {
	part := Part{What: what, Action: a, Rule: modeRule(j.data.mode), Source: builtIn, Reason: reason}
	if a == Deny {
		part.Remedy = "Describe the change instead, or a person leaves this mode."
	}
	return part
}

// verdict returns the strictest of the parts. A mode that never asks refuses instead of asking. An intent with a
// silent effect, one that added no part, is refused.
func (j *judge) verdict(silent bool) Verdict {
	v := Verdict{Action: Allow, Parts: j.parts, Held: j.heldLate}
	for i, p := range j.parts {
		if i == 0 || p.Action < v.Action || p.Action == v.Action && p.Final && !v.Final {
			v.Action, v.Rule, v.Source, v.Final, v.Reason, v.Remedy = p.Action, p.Rule, p.Source, p.Final, p.Reason, p.Remedy
			v.Person = p.person
		}
	}
	if v.Action == Deny {
		v.Held = ""
	}
	if silent && v.Action != Deny || len(j.parts) == 0 {
		return Verdict{
			Source: builtIn, Final: true, Parts: j.parts,
			Reason: "Refused: the tool " + j.in.Tool + " does not say what the call would do.",
			Remedy: "This is a defect of the tool; report it.",
		}
	}
	if v.Action == Ask && j.data.mode == settings.ModeDontAsk {
		v.Action = Deny
		v.Reason += " The mode dontAsk refuses what would require approval."
	}
	return v
}

// stopAndAsk ends the refusals that only a person can lift. How a person lifts them is in [Verdict.Person]: an agent
// that reads it would try it.
const stopAndAsk = "Stop and ask the user."

func allowCommand(rule string) []string { return []string{"toolhost", "allow", rule} }
