package rulebook

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"toolhost/guard/internal/realpath"
	"toolhost/guard/internal/wildcard"
)

// maxAlternatives bounds how many patterns the braces of one may stand for.
const maxAlternatives = 1024

// maxSpread bounds what the patterns take that the braces of one file of settings stand for, in bytes: a file of 1 MiB could stand for
// a gigabyte of them. Each file has its own, so that none takes from what another guards.
const maxSpread = 4 << 20

// perPattern is about what a pattern takes beside its text.
const perPattern = 64

// alternatives returns what a pattern with {a,b} in it means to those who write
// it. Patterns as in .gitignore have no braces, so a deny would guard a file of that
// very name; the pattern as it stands comes first. There are not all of them if they
// would be too many, or take more than room.
func alternatives(text string, room *int) (all []string, whole bool) {
	all = []string{text}
	for i := 0; i < len(all); i++ {
		before, choices, after, ok := firstBraces(all[i])
		if !ok {
			continue
		}
		if len(all)+len(choices) > maxAlternatives {
			return all, false
		}
		for _, choice := range choices {
			if *room -= perPattern + len(before) + len(choice) + len(after); *room < 0 {
				return all, false
			}
			all = append(all, before+choice+after)
		}
	}
	return all, true
}

// firstBraces takes a text apart at its first braces that hold no others.
func firstBraces(text string) (before string, choices []string, after string, ok bool) {
	end := strings.IndexByte(text, '}')
	if end < 0 {
		return "", nil, "", false
	}
	start := strings.LastIndexByte(text[:end], '{')
	if start < 0 {
		return "", nil, "", false
	}
	choices = strings.Split(text[start+1:end], ",")
	return text[:start], choices, text[end+1:], len(choices) > 1
}

// doubtful says why a file pattern that can be used probably misses what is meant,
// nil if nothing speaks for that, and what the specifier should be if that can be told.
func (c *Compiler) doubtful(r *Rule) (meant string, err error) {
	spec := strings.TrimPrefix(r.Spec, "!")
	if spec != r.Spec {
		return "", nil // it takes back what another pattern guards
	}
	switch quote := spec[:1]; {
	case strings.Contains(`"'`+"`", quote) && len(spec) > 2 && strings.HasSuffix(spec, quote):
		return spec[1 : len(spec)-1], fmt.Errorf("the rule %q: the quotes are taken for a part of the name; leave them out", r.Text)
	case strings.HasPrefix(spec, "$"), strings.Contains(spec, "://"):
		for _, home := range []string{"$HOME/", "${HOME}/"} {
			if rest, ok := strings.CutPrefix(spec, home); ok {
				meant = "~/" + rest
			}
		}
		if _, name, ok := strings.Cut(spec, "file://"); ok {
			meant = "/" + name
		}
		return meant, fmt.Errorf("the rule %q: variables and addresses are not understood; write //path for an absolute path, ~/path for one in the home directory", r.Text)
	}
	if name, ok := strings.CutSuffix(spec, ":*"); ok && name != "" {
		return name, fmt.Errorf("the rule %q: \":*\" is for commands, and a part of the name here; write %s, or %s/** for all that is in a directory", r.Text, name, name)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(spec, "/"), "/")
	if spec[0] != '/' || first == "" || wildcard.HasMeta(first) || !realpath.Exists("/"+first) {
		return "", nil
	}
	dirs := []string{r.root}
	if r.root == "" {
		dirs = dirs[:0]
		for _, root := range c.Roots {
			dirs = append(dirs, root.Given)
		}
	}
	if slices.ContainsFunc(dirs, func(dir string) bool { return realpath.Exists(filepath.Join(dir, first)) }) {
		return "", nil
	}
	return "/" + spec, fmt.Errorf("the rule %q is relative to %s, where there is no %s; write /%s for the absolute path", r.Text, strings.Join(dirs, ", "), first, spec)
}

// alternated takes the first word of a rule apart that gives a choice of commands as a regular expression does: rm|mv.
func alternated(word string) (commands []string, ok bool) {
	if strings.Contains(word, "||") || strings.ContainsAny(word, ";&<>/") {
		return nil, false
	}
	commands = strings.Split(strings.Trim(word, "()^$"), "|")
	return commands, len(commands) > 1 && !slices.Contains(commands, "")
}

// listed takes apart what looks like several patterns in one rule, nil if it does not: "secrets/**, a.pem". A name may hold a
// comma as well, without a space behind it.
func listed(spec string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range spec {
		switch {
		case strings.ContainsRune("{[", c):
			depth++
		case strings.ContainsRune("}]", c):
			depth--
		case c == ',' && depth == 0:
			parts, start = append(parts, strings.TrimSpace(spec[start:i])), i+1
		}
	}
	parts = append(parts, strings.TrimSpace(spec[start:]))
	like := func(part string) bool { return strings.ContainsAny(part, "*/.") }
	if len(parts) < 2 || slices.Contains(parts, "") || !strings.Contains(spec, ", ") && slices.ContainsFunc(parts, func(p string) bool { return !like(p) }) {
		return nil
	}
	return parts
}

// addListed adds the patterns that one rule lists, each by itself, where that takes rights away, and says that a rule has one.
func (c *Compiler) addListed(l *List, tool string, r *Rule, parts []string) error {
	if !l.strict() {
		return fmt.Errorf("the rule %q is one pattern, with the comma in it, and allows none of the files it seems to list; write a rule for each", r.Text)
	}
	err := fmt.Errorf("the rule %q is one pattern, with the comma in it; write a rule for each. What it lists is guarded too", r.Text)
	for _, part := range parts {
		other := *r
		other.Spec = part
		bases, text := c.anchor(l, &other)
		err = errors.Join(err, c.addPattern(l, tool, r, text, bases))
	}
	return err
}

// parameters are those of Bash that a rule may speak of.
var parameters = []string{"command", "timeout", "description", "run_in_background", "dangerouslyDisableSandbox"}

// addMeant adds the rule that was probably meant by one for a command that no command is called like, and says so.
func (l *List) addMeant(r *Rule) error {
	head, _, _ := strings.Cut(r.Spec, " ")
	name, colon, _ := strings.Cut(head, ":")
	if commands, ok := alternated(name); ok {
		return fmt.Errorf("the rule %q: a | stands for no choice, so that it guards nothing but a pipe; write Bash(%s *), a rule for each command", r.Text, strings.Join(commands, " *), Bash("))
	}
	if name == "[" || name == "[[" || strings.ContainsAny(name, "|;&<>") {
		return nil // a command, or several
	}
	other := *r
	switch bare := strings.NewReplacer(`"`, "", "'", "", "`", "", `\`, "").Replace(r.Spec); {
	case strings.ContainsAny(name, "\"'`") || len(name) > 1 && name[0] == '\\' && name[1] != '*' && name[1] != '(':
		other.Spec = bare
	case len(name) > 2 && strings.HasSuffix(name, ".*") && !strings.ContainsAny(name, "/^$[]{}?"):
		other.Spec = strings.TrimSuffix(name, ".*") + "*" + strings.TrimPrefix(r.Spec, name)
		return errors.Join(fmt.Errorf("the rule %q: only * stands for other text, and the dot for itself; Bash(%s) is guarded too", r.Text, other.Spec), l.Commands.add(&other))
	case strings.ContainsAny(name, "^$[]{}?"):
		return fmt.Errorf("the rule %q: only * stands for other text, so %q matches nothing that is spelt otherwise; write a rule for each command", r.Text, name)
	case colon != "" && (colon != "*" || r.Spec != head) && !slices.Contains(parameters, name):
		other.Spec = strings.Replace(r.Spec, ":", " ", 1)
	default:
		return nil
	}
	err := fmt.Errorf("the rule %q: no command is called like that; Bash(%s) is guarded too", r.Text, other.Spec)
	return errors.Join(err, l.Commands.add(&other))
}
