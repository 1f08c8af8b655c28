package guard

import (
	"fmt"
	"slices"
	"strings"
)

// Unusual returns what a person should know before anything else, a sentence each: that a command leaves the sandbox,
// that a file changes which other programs run or obey, that lines, files or work of others are lost, that a new host
// is reached, that a program gets other rights. What a rule allows is not unusual.
func (d Description) Unusual() (all []string) {
	if slices.Contains(d.Notes, outsideSandbox) {
		all = append(all, "It would run outside the sandbox, with your rights.")
	}
	for _, i := range d.ByDanger() {
		if i.Action != Ask {
			continue
		}
		if text := i.unusual(); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// unusual returns the sentence about an item, or "".
func (i Item) unusual() string {
	text := i.What
	if i.judged != "" && strings.HasPrefix(text, i.judged) { // a note follows
		text = i.judged
	}
	verb, what, _ := strings.Cut(text, " ")
	switch {
	case i.Rule == RuleProtected:
		return "Other programs run or obey this file: " + what
	case verb == "connect" || verb == "fetch":
		return "No rule allows this host yet: " + strings.TrimPrefix(what, "to ")
	case i.danger == writes && i.lost() > 0:
		return fmt.Sprintf("It overwrites %s: %d lines are lost", what, i.lost())
	case i.danger == escalates:
		return "It runs with other rights: " + what
	case isForcePush(i.What):
		return "It overwrites a branch that others may have: " + what
	case i.danger == deletes:
		return "It deletes files or ends programs: " + what
	}
	return ""
}

// lost returns how many lines a write of a whole file takes away.
func (i Item) lost() (n int) {
	if i.Removed != "" { // an edit, whose old text is shown
		return 0
	}
	_, hunks, _ := strings.Cut(i.Diff, "\n@@")
	return strings.Count(hunks, "\n-")
}

// isForcePush reports whether the text of a command pushes over what a branch has.
func isForcePush(text string) bool {
	words := strings.Fields(text)
	return slices.Contains(words, "push") && slices.ContainsFunc(words, func(w string) bool {
		return w == "-f" || strings.HasPrefix(w, "--force") || len(w) > 1 && w[0] == '+'
	})
}
