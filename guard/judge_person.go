package guard

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
)

// PersonCommands returns the commands of toolhost that change what a caller may do, or what it did. Only a person may
// run them. "rules" is one only with --remove. The program itself refuses them too if a call has started it, under
// any name.
func PersonCommands() []string {
	return []string{
		"allow", "allow-host", "ask", "credential add", "credential remove", "deny", "install", "keep", "mcp accept", "mcp add", "mcp allow-host", "mcp login", "mcp logout", "mcp remove", "mode", "rewind", "rules", "token add", "token revoke", "trust", "undo", "uninstall",
	}
}

// personCommands refuses commands of the host that only a person may run.
func (l *commandJudge) personCommands() {
	for _, s := range l.line.analysis.Commands {
		if name := personCommand(s); name != "" {
			part := Part{What: "run " + s.Text, Action: Deny, Rule: rulePersonOnly, Source: builtIn, Final: true,
				Reason: "toolhost " + name + " changes what a caller may do, or what it did, and no call can run it.",
				Remedy: "Tell the user the command; a person runs it in a terminal of their own."}
			l.j.add(part)
		}
	}
}

// helps reports whether the words after mcp ask for help. Later words may be the value of an option, or belong to the
// server that is added.
func helps(words []command.Word) bool {
	return len(words) > 0 && (words[0].Text == "--help" || len(words) > 1 && words[1].Text == "--help" && !isOption(words[0].Text))
}

// personCommand returns which of [PersonCommands] s runs, or "". A word after an option may be its value.
func personCommand(s command.Simple) string {
	if strings.TrimSuffix(s.Name, ".exe") != "toolhost" {
		return ""
	}
	named := func(text string) bool { // with =false it is not
		return slices.ContainsFunc(s.Args, func(w command.Word) bool { return w.Text == text })
	}
	remove := slices.ContainsFunc(s.Args, func(w command.Word) bool { return strings.HasPrefix(w.Text, "--remove") })
	for i, w := range s.Args[1:] {
		at := slices.IndexFunc(PersonCommands(), func(name string) bool {
			first, second, two := strings.Cut(name, " ")
			return w.Text == first && (!two || named(second))
		})
		switch {
		case isOption(w.Text):
		case at < 0:
			if !isOption(s.Args[i].Text) || strings.Contains(s.Args[i].Text, "=") { // the word before
				return ""
			}
		case w.Text == "mcp" && !helps(s.Args[i+2:]):
			return PersonCommands()[at]
		case named("--help"), w.Text == "rules" && !remove, named("--list") && (w.Text == "trust" || w.Text == "install" || w.Text == "keep"):
			return ""
		default:
			return PersonCommands()[at]
		}
	}
	return ""
}
