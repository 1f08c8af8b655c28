package guard

import (
	"fmt"
	"slices"
	"strings"
)

// AllowRules returns the narrowest rules that would allow what the verdict asks for: exactly these commands, exactly
// these files. It returns none if no rule can: for what an ask rule or a built-in rule always asks for, and for texts
// that a rule would match more widely than this command: wildcards, words that differ from run to run, and several
// commands once the quotes are removed. reason says why there are none.
func (v Verdict) AllowRules() (rules []string, reason string) {
	for _, p := range v.Parts {
		if p.Action != Ask {
			continue
		}
		rule := p.allowRule()
		if rule == "" {
			return nil, p.notRemembered()
		}
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	if rules == nil { // a hook asks about a call that the rules allow
		return nil, "the " + v.Rule + " asks each time"
	}
	return rules, ""
}

// notRemembered says why no rule allows the part in advance.
func (p Part) notRemembered() string {
	switch {
	case p.Final && p.Source == builtIn:
		return "what is asked for by " + p.Rule + " is asked for each time"
	case p.Final:
		return "the rule " + p.Rule + " asks each time"
	case p.Rule == ruleUndecidable:
		return "what it does is not known before it runs"
	}
	return "a rule would allow more than this call"
}

// NarrowRules returns the rules that a person wants in place of those offered. text has one rule a line, each either
// offered or for a path below that of an offered one. Empty text means those offered.
func NarrowRules(offered []string, text string) ([]string, error) {
	var rules []string
	for line := range strings.Lines(text) {
		rule := strings.TrimSpace(line)
		if rule == "" {
			continue
		}
		if !slices.ContainsFunc(offered, func(wide string) bool { return rule == wide || isBelow(rule, wide) }) {
			return nil, fmt.Errorf("the rule %q allows something else than the rules that were shown (%s)", rule,
				strings.Join(offered, ", "))
		}
		rules = append(rules, rule)
	}
	if rules == nil {
		return offered, nil
	}
	return rules, nil
}

// isBelow reports whether a rule names something below the path that another rule names.
func isBelow(rule, wide string) bool {
	dir, isRule := strings.CutSuffix(wide, ")")
	return isRule && (strings.HasPrefix(wide, "Read(/") || strings.HasPrefix(wide, "Edit(/")) &&
		strings.HasPrefix(rule, dir+"/") &&
		strings.HasSuffix(rule, ")") && !strings.Contains(rule, "..") && strings.Count(rule, ")") == 1
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
		if strings.HasSuffix(what, ":") || !standsForItself(what) {
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

// standsForItself reports whether the text of a command without its quotes, as a line of its own, is the same
// command: `make ';' reboot` is not, nor is `rm $f`, or the {} of xargs and find.
func standsForItself(text string) bool {
	first, _, _ := strings.Cut(text, " ")
	return text == strings.Join(strings.Fields(text), " ") && !strings.ContainsAny(first, "=!") &&
		!strings.ContainsAny(text, "|&;<>()$`\"'\\{}[]?*#")
}

// escapePattern returns a gitignore pattern that matches only the path.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, " ", `\ `).Replace(path)
}
