package guard

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
)

// AllowRules returns the narrowest rules that would allow what the verdict asks for: exactly these commands,
// exactly these files. There are none where no rule can: for what an ask rule or a built-in rule always asks
// for, and for texts that a rule would match more widely than this command: wildcards, words
// that differ from run to run, and several commands once the quotes are removed.
func (v Verdict) AllowRules() []string {
	var rules []string
	for _, p := range v.Parts {
		if p.Action != Ask {
			continue
		}
		rule := p.allowRule()
		if rule == "" {
			return nil
		}
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return rules
}

func (p Part) allowRule() string {
	if p.allow != "" {
		return p.allow
	}
	verb, what, _ := strings.Cut(p.What, " ")
	if p.Final || p.Rule == ruleUndecidable || strings.ContainsAny(what, "\n\r") {
		return ""
	}
	switch verb {
	case "run":
		if strings.Contains(what, "*") || strings.HasSuffix(what, ":") || !standsForItself(what) {
			return ""
		}
		return "Bash(" + what + ")"
	case "read", "search":
		return "Read(/" + escapePattern(what) + ")"
	case "write":
		return "Edit(/" + escapePattern(what) + ")"
	}
	return ""
}

// standsForItself reports whether the text of a command without its quotes is the same
// command when it is a line of its own: `make ';' reboot` is not, nor is `rm $f`, or the {}
// of xargs and find.
func standsForItself(text string) bool {
	a := command.Analyze(text)
	if strings.Contains(text, "{}") || len(a.Commands) == 0 || len(a.Reads)+len(a.Writes) > 0 {
		return false
	}
	for _, s := range a.Commands[1:] {
		if s.Outer < 0 {
			return false
		}
	}
	return a.Commands[0].Text == text && !a.Commands[0].Dynamic()
}

// escapePattern returns a gitignore pattern that matches exactly the path.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, " ", `\ `).Replace(path)
}
