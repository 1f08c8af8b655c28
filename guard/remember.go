package guard

import (
	"slices"
	"strings"
)

// AllowRules are the narrowest rules that would allow what the verdict asks for: exactly these commands,
// exactly these files. There are none where no rule can: what an ask rule or a built-in rule keeps asking
// for, and texts that a rule would take for a wildcard.
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
	verb, what, _ := strings.Cut(p.What, " ")
	if p.Firm || p.Rule == RuleUndecidable || strings.ContainsAny(what, "\n\r") {
		return ""
	}
	switch verb {
	case "run":
		if strings.Contains(what, "*") || strings.HasSuffix(what, ":") {
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

// escapePattern makes a path stand for itself in a gitignore pattern.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, " ", `\ `).Replace(path)
}
