package guard

import (
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// An Intent is what one call is about to do, as returned by a tool's Plan. An Intent without
// effects is refused.
type Intent struct {
	// Tool is the name the tool is listed under.
	Tool string
	// Args are the call's arguments by name, for Tool(parameter:value) rules. Strings, booleans
	// and numbers are compared, at any depth of []any and map[string]any. Nil for none.
	Args map[string]any
	// Effects are the effects of the call, in the order in which they are judged and shown.
	Effects []Effect
}

// An Effect is one thing that a call would do. Each kind of effect is one type in its own file. It
// defines which rules apply, what each mode decides, which permission the caller needs, and what
// the audit log, the console and traces show. No other code knows the kinds.
type Effect interface {
	// Judge adds parts to the verdict. An effect that adds none is refused.
	Judge(j Judgment)
	// Permission is what the caller must hold, whatever the rules say.
	Permission() Permission
	// Record returns the field of the audit record that shows the effect ("reads", "writes",
	// "command") and its value. A field that the record does not have is the verb of the effect:
	// "fetch". An effect without a field is not recorded. People who are asked for approval see the
	// same text, except for the kinds of this package, which describe themselves.
	Record() (field, value string)
}

// A Permission is what a caller must hold for a tool or an effect. The zero Permission is the
// strictest.
type Permission uint8

// The permissions.
const (
	ToExec  Permission = iota // runs or ends commands, or does not say what it does
	ToWrite                   // changes files and runs nothing
	ToRead                    // changes nothing
)

// String returns "exec", "write" or "read".
func (p Permission) String() string {
	switch p {
	case ToRead:
		return "read"
	case ToWrite:
		return "write"
	}
	return "exec"
}

// Files returns the files of the effects, in order.
func (in Intent) Files() (files []Path) {
	for _, e := range in.Effects {
		if f, ok := e.(interface{ file() Path }); ok {
			files = append(files, f.file())
		}
	}
	return files
}

// A Judgment is the judgment of one intent, as its effects see it.
type Judgment struct{ judge *judge }

// Tool returns the name of the tool that is called.
func (j Judgment) Tool() string { return j.judge.in.Tool }

// Add adds a part to the verdict. The verdict is the strictest of its parts.
func (j Judgment) Add(p Part) { j.judge.add(p) }

// A Subject is the object of a decision by a rule or the mode.
type Subject struct {
	// What is the effect in words, the verb first: "fetch https://example.org/".
	What string
	// Form is the name that its rules begin with, such as WebFetch. Empty means the name of the
	// tool.
	Form string
	// Matches reports whether the specifier of a rule, the text in its parentheses, applies. Nil
	// means that only rules without a specifier apply.
	Matches func(specifier string) bool
	// ReadOnly says that the effect changes nothing: plan mode decides as the default mode does.
	ReadOnly bool
	// Rule is the narrowest rule that would allow the effect. AlwaysAllow lets the person who is
	// asked add it.
	Rule        string
	AlwaysAllow bool

	loosely func(specifier string) bool // matches a deny or ask rule that Matches does not
}

// Decide adds the part on a subject. A deny rule, plan mode, an ask rule, an allow rule, or else
// the mode decides, in this order. Rules on all calls of the tool have been applied before.
func (j Judgment) Decide(s Subject) {
	if s.Form == "" {
		s.Form = j.judge.in.Tool
	}
	if r := j.strict(j.judge.data.deny, s); r != nil {
		j.judge.add(byRule(s.What, "To "+s.What, Deny, r))
		return
	}
	if j.judge.data.mode == settings.ModePlan && !s.ReadOnly {
		j.judge.add(j.judge.planPart(s.What))
		return
	}
	if r := j.strict(j.judge.data.ask, s); r != nil {
		j.judge.add(byRule(s.What, "To "+s.What, Ask, r))
		return
	}
	r := j.judge.data.allow.Named(s.Form)
	if r == nil {
		r = j.judge.data.allow.Specified(s.Form, s.Matches)
	}
	switch {
	case r != nil && r.Spec == "":
		j.judge.add(Part{What: s.What, Action: Allow, Rule: r.Text, Source: r.Source,
			Reason: "A rule allows the tool."})
	case r != nil:
		j.judge.add(Part{What: s.What, Action: Allow, Rule: r.Text, Source: r.Source, Reason: "A rule allows it."})
	case j.judge.data.mode == settings.ModeBypass:
		j.judge.add(j.judge.modePart(s.What, Allow, "This mode asks for nothing that no rule denies."))
	default:
		p := Part{What: s.What, Action: Ask, Rule: modeRule(j.judge.data.mode), Source: builtIn,
			Reason: "No rule allows to " + s.What + ".", Remedy: stopAndAsk, personCommand: allowCommand(s.Rule)}
		if s.Form == j.judge.in.Tool && s.Matches == nil {
			p.Reason = "No rule allows the tool " + s.Form + "."
		}
		if s.AlwaysAllow {
			p.allow = s.Rule
		}
		j.judge.add(p)
	}
}

// strict returns the rule of a deny or ask list that matches a subject, nil for none. It skips
// rules on all calls of the tool itself, which have been applied.
func (j Judgment) strict(l ruleList, s Subject) *rules.Rule {
	if s.Form != j.judge.in.Tool {
		if r := l.Named(s.Form); r != nil {
			return r
		}
	}
	if r := l.Specified(s.Form, s.Matches); r != nil {
		return r
	}
	return l.Specified(s.Form, s.loosely)
}
