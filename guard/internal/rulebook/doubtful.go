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

// alternatives returns what a pattern with {a,b} in it means to those who write
// it. Patterns as in .gitignore have no braces, so a deny would guard a file of that
// very name; the pattern as it stands comes first. There are not all of them if they
// would be too many.
func alternatives(text string) (all []string, whole bool) {
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

// parameters are those of Bash that a rule may speak of.
var parameters = []string{"command", "timeout", "description", "run_in_background", "dangerouslyDisableSandbox"}

// addMeant adds the rule that was probably meant by one for a command that no command is called like, and says so.
func (l *List) addMeant(r *Rule) error {
	head, _, _ := strings.Cut(r.Spec, " ")
	name, colon, _ := strings.Cut(head, ":")
	if name == "[" || name == "[[" || strings.ContainsAny(name, "|;&<>") {
		return nil // a command, or several
	}
	other := *r
	switch bare := strings.NewReplacer(`"`, "", "'", "", "`", "", `\`, "").Replace(r.Spec); {
	case strings.ContainsAny(name, "\"'`") || len(name) > 1 && name[0] == '\\' && name[1] != '*' && name[1] != '(':
		other.Spec = bare
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
