package guard

import (
	"path"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/settings"
)

// JudgesExecs reports whether rules apply to single commands and the settings do not turn exec judging off. Each
// program that a command starts must then be judged by [Commands.JudgeExec] when it starts.
func (c Commands) JudgesExecs() bool {
	return c.p.data.execs && (!c.p.data.deny.Commands.Empty() || !c.p.data.ask.Commands.Empty())
}

// An ExecFinding is the result of the deny and ask rules for a program that is about to start. The zero ExecFinding
// refuses it.
type ExecFinding struct {
	// Action is Allow if no rule applies.
	Action Action
	// Words are the program and its arguments in the form that the rule matched.
	Words []string
	// Rule and Source are those of the [Verdict].
	Rule, Source string
	// Reason says why the program is refused, if the rule alone does not.
	Reason string
	// Confirm says that a rule applies to the program with other arguments.
	Confirm bool
}

// JudgeExec decides whether a program that a command of the caller starts may run. It applies deny and ask rules
// only: the command has been judged before.
func (c Commands) JudgeExec(e *execgate.Exec) ExecFinding {
	if v, broken := unreadable(c.p); broken {
		return ExecFinding{Rule: v.Rule, Source: v.Source, Words: e.Args, Reason: v.Reason}
	}
	k := c.p.data
	deny, ask := k.deny.Commands, k.ask.Commands
	id := identify(e, c.p.Roots(), deny, ask)
	all := id.spoken
	if e.Unreadable != nil {
		words := e.Args
		if len(words) == 0 {
			words = []string{e.Path}
		}
		return ExecFinding{Words: words, Source: builtIn, Rule: RuleUnreadable,
			Reason: "it cannot be looked at before it starts: " + e.Unreadable.Error()}
	}
	for _, list := range []ruleList{k.deny, k.ask} {
		var undecided *ExecFinding
		undecide := func(words []string, r *rules.Rule, reason string) {
			if undecided == nil {
				undecided = &ExecFinding{Action: unasked(k.mode, Ask), Words: words, Rule: r.Text, Source: r.Source,
					Reason: reason}
			}
		}
		for _, s := range id.commands() {
			words := wordsOf(s.Simple)
			r, maybe := list.Commands.Denies(s.Simple)
			if r != nil {
				return ExecFinding{Action: unasked(k.mode, list.action), Words: words, Rule: r.Text, Source: r.Source}
			}
			if maybe != nil && (s.in == nil || holds(*s.in, s.Name+"\x00")) {
				undecide(words, maybe, undecidedSubcommand)
			}
		}
		if name := id.hides(list.Commands.Programs()); name != "" {
			undecide(e.Args, list.Commands.About(name), "it can start its own "+name+
				", and its arguments do not tell whether it does")
		}
		if undecided != nil {
			return *undecided
		}
	}
	if e.Cut {
		for _, words := range all {
			if deny.Further(words) || ask.Further(words) {
				return ExecFinding{Words: words, Source: builtIn, Rule: RuleUnreadable,
					Reason: "it has more arguments than are read, and a rule may match them: give it fewer, as by xargs -n"}
			}
		}
	}
	return ExecFinding{Action: Allow, Words: e.Args, Confirm: len(all)+len(id.inside) > 0}
}

// undecidedSubcommand says why a rule on another subcommand applies.
const undecidedSubcommand = "its settings or its correction of mistakes may make this the subcommand of the rule: " +
	"write out the subcommand's own name"

// unasked returns the action that replaces a in a mode that asks no person.
func unasked(mode string, a Action) Action {
	if a == Ask && mode == settings.ModeDontAsk {
		return Deny
	}
	return a
}

// RuleUnreadable is the built-in rule on a program that cannot be judged when it starts.
const RuleUnreadable = "unreadable program"

// An ExecGrant is a command that a person has allowed as the text of a call shows it: an ask rule does not ask again
// when its program starts.
type ExecGrant struct {
	rule  string
	words []command.Word
}

// ExecGrants returns the commands of a text that ask rules match, for a text that a person has allowed.
func (c Commands) ExecGrants(e Exec) (grants []ExecGrant) {
	for _, s := range e.analysis().Commands {
		if r, _ := c.p.data.ask.Commands.Denies(s); r != nil && s.Name != "" {
			grants = append(grants, ExecGrant{r.Text, s.Args})
		}
	}
	return grants
}

// Covers reports whether a started program is the granted command. Words that the text does not determine match any
// arguments.
func (g ExecGrant) Covers(f ExecFinding, args []string) bool {
	if g.rule != f.Rule || len(args) == 0 || len(g.words) == 0 || path.Base(args[0]) != path.Base(g.words[0].Text) {
		return false
	}
	return coversWords(g.words[1:], args[1:])
}

// coversWords matches arguments as a wildcard does: a word that the text does not determine stands for any number of
// arguments.
func coversWords(granted []command.Word, args []string) bool {
	known := func(i int) bool { return granted[i].Static && !granted[i].Home }
	i, at, star, from := 0, 0, -1, 0
	for at < len(args) {
		switch {
		case i < len(granted) && !known(i):
			star, from = i, at
			i++
		case i < len(granted) && granted[i].Text == args[at]:
			i, at = i+1, at+1
		case star >= 0:
			from++
			i, at = star+1, from
		default:
			return false
		}
	}
	for i < len(granted) && !known(i) {
		i++
	}
	return i == len(granted)
}
