package guard

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/settings"
)

// heldLate says that the exec gate enforces a rule.
const heldLate = "when programs start"

// Holds returns what enforces a deny or ask rule on this machine: "host", "kernel", "text" (the text of a command),
// "when programs start" (the exec gate), or "host" with a remark on commands. It returns "" for allow rules.
func (p *Policy) Holds(action, rule string) string {
	if action != "deny" && action != "ask" {
		return ""
	}
	k := p.data
	tool, spec, narrow := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	switch {
	case !narrow:
		return "host"
	case tool == "Bash":
		name := strings.TrimSuffix(strings.Fields(spec + " *")[0], ":*")
		if command.IsBuiltin(name) && !command.HasProgram(name) || k.execGate() != nil {
			return "text"
		}
		return heldLate
	case tool == "WebFetch":
		if k.containment().Denies {
			return "kernel"
		}
		if k.sandbox.OffByChoice || k.sandbox.OnUnavailable == settings.OnFailureAllow {
			return "host; not for commands"
		}
		return "host; commands are refused"
	case tool == "Read", tool == "Edit", tool == "Write", tool == "Grep", tool == "Glob":
		if k.containment().Denies && (action == "deny" || tool == "Read" || tool == "Grep" || tool == "Glob") {
			return "kernel"
		}
		if action == "ask" || k.sandbox.OffByChoice || k.sandbox.OnUnavailable == settings.OnFailureAllow {
			return "text"
		}
		return "host; commands are refused"
	}
	return "host"
}

// BuiltinRules returns warnings about deny and ask rules on shell builtins, which no exec gate sees.
func BuiltinRules(set *settings.Settings) (warnings []string) {
	for _, e := range slices.Concat(set.Deny, set.Ask) {
		spec, ok := strings.CutPrefix(e.Text, "Bash(")
		words := strings.FieldsFunc(spec, func(r rune) bool { return strings.ContainsRune(" :*)", r) })
		if ok && len(words) > 0 && command.IsBuiltin(words[0]) {
			warnings = append(warnings, e.Where()+": the rule "+e.Text+
				" is about a builtin of the shell: it holds for the text of a command, and for a program of that name, not for a name in a variable")
		}
	}
	return warnings
}

// ExecGate returns why the programs that commands start are not judged when they start, nil if they are.
func (c Commands) ExecGate() error { return c.p.data.execGate() }
