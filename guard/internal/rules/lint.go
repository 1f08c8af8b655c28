package rules

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// maxAlternatives is how many patterns the braces of one pattern may expand to.
const maxAlternatives = 1024

// maxSpread is how many bytes the patterns may take that the braces in one settings file expand to: without a limit,
// a file of 1 MiB could expand to a gigabyte. Each file has its own limit, so that one file cannot use up the room
// for the rules of another.
const maxSpread = 4 << 20

// perPattern is about how many bytes a pattern takes in addition to its text.
const perPattern = 64

// alternatives returns the pattern as written, followed by the patterns that people mean by {a,b}. Patterns as in
// .gitignore have no braces, so without these a deny would match only a file with exactly that name. whole is false
// if the list is incomplete, because it would be too long or take more than room.
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

// firstBraces splits a text at its first braces that contain no others.
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

// lint returns an error that says why a valid file pattern probably misses what its author meant, or nil. meant is
// the intended specifier if that is known.
func (c *Compiler) lint(r *Rule) (meant string, err error) {
	spec := strings.TrimPrefix(r.Spec, "!")
	if spec != r.Spec || spec == "" {
		return "", nil // an exception to another pattern
	}
	// Rules on Grep and Glob can name arguments.
	if m := arguments.FindStringSubmatch(spec); m != nil && !strings.HasPrefix(m[2], "//") && r.tool != "Grep" &&
		r.tool != "Glob" {
		return m[2], fmt.Errorf("the rule %q: it is read as a part of the name up to the colon; write %s(%s)", r.Text,
			r.tool, m[2])
	}
	for _, s := range slips {
		if meant, found := s.find(spec); found {
			return meant, fmt.Errorf("the rule %+q: %s", r.Text, s.says)
		}
	}
	if name, ok := strings.CutSuffix(spec, ":*"); ok && name != "" {
		return name, fmt.Errorf("the rule %q: \":*\" is for commands, and a part of the name here; write %s, or %s/** for "+
			"all that is in a directory", r.Text, name, name)
	}
	if file := c.fileAbove(r); file != "" {
		return "", fmt.Errorf("the rule %q is about a directory, and does not guard the file %s; leave out what follows "+
			"its name", r.Text, file)
	}
	return c.misplaced(r)
}

// fileAbove returns the existing file that a pattern takes for a directory ("a.key/", "a.key/**"), or "". It looks in
// the directories that the pattern is relative to.
func (c *Compiler) fileAbove(r *Rule) string {
	dir, _, found := strings.Cut(r.Spec+"\x00", "/\x00")
	if !found {
		dir, _, found = strings.Cut(r.Spec, "/*")
	}
	if !found || dir == "" || pathname.HasMeta(strings.TrimPrefix(dir, "**/")) {
		return ""
	}
	other := *r
	other.Spec = strings.TrimPrefix(dir, "**/")
	bases, text := c.anchor(newList(Deny, pathname.Exact), &other)
	for _, base := range bases {
		if name := pathname.Native(base + "/" + strings.TrimPrefix(text, "/")); isFile(name) {
			return name
		}
	}
	return ""
}

// misplaced returns an error for a pattern that is relative to a root, but was probably meant as an absolute path.
func (c *Compiler) misplaced(r *Rule) (meant string, err error) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.Spec, "/"), "/")
	if r.Spec[0] != '/' || first == "" || pathname.HasMeta(first) || !realpath.Exists("/"+first) {
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
	return "/" + r.Spec, fmt.Errorf("the rule %q is relative to %s, where there is no %s; write /%s for the absolute path",
		r.Text, strings.Join(dirs, ", "), first, r.Spec)
}

// alternated splits the first word of a rule if it is a choice of commands in the form of a regular expression:
// rm|mv.
func alternated(word string) (commands []string, ok bool) {
	if strings.Contains(word, "||") || strings.ContainsAny(word, ";&<>/") {
		return nil, false
	}
	commands = strings.Split(strings.Trim(word, "()^$"), "|")
	return commands, len(commands) > 1 && !slices.Contains(commands, "")
}

// listed returns the patterns if a rule looks like a list of several, otherwise nil: "secrets/**, a.pem",
// ".env|.key". A name may contain a comma that no space follows.
func listed(spec string) []string {
	var parts []string
	depth, start, separators := 0, 0, ",;|"
	if isList := strings.Fields(spec); !strings.ContainsAny(spec, `,;|\{`) &&
		!slices.ContainsFunc(isList, func(p string) bool { return !strings.ContainsAny(p[:1], "*/.~") }) {
		separators = " " // each word looks like a pattern
	}
	for i, c := range spec {
		switch {
		case strings.ContainsRune("{[(", c):
			depth++
		case strings.ContainsRune("}])", c):
			depth--
		case strings.ContainsRune(separators, c) && depth == 0:
			parts, start = append(parts, strings.TrimSpace(spec[start:i])), i+1
		}
	}
	parts = append(parts, strings.TrimSpace(spec[start:]))
	like := func(part string) bool { return strings.ContainsAny(part, "*/.") }
	if len(parts) < 2 || slices.Contains(parts, "") || !strings.Contains(spec, ", ") &&
		slices.ContainsFunc(parts, func(p string) bool { return !like(p) }) {
		return nil
	}
	return parts
}

// addListed adds each of the patterns that a deny or ask rule lists, and returns an error that says so. It adds
// nothing for an allow rule.
func (c *Compiler) addListed(l *List, tool string, r *Rule, parts []string) error {
	if !l.strict() {
		return fmt.Errorf("the rule %q is one pattern, and allows none of the files it seems to list; write a rule for each",
			r.Text)
	}
	err := fmt.Errorf("the rule %q is one pattern, and seems to list several; write a rule for each. What it lists is "+
		"guarded too", r.Text)
	for _, part := range parts {
		other := *r
		other.Spec = part
		err = errors.Join(err, c.addSpec(l, tool, &other))
	}
	return err
}

// parameters are the parameters of Bash that a rule may name.
var parameters = []string{"command", "timeout", "description", "run_in_background", "dangerouslyDisableSandbox"}

// addMeant adds the rule that was probably meant if a rule has a name that no command has, and returns an error that
// says so.
func (l *List) addMeant(r *Rule) error {
	head, _, _ := strings.Cut(r.Spec, " ")
	name, colon, _ := strings.Cut(head, ":")
	if commands, ok := alternated(name); ok {
		return fmt.Errorf("the rule %q: | does not mean a choice, so the rule guards only a pipe; write Bash(%s *), a rule "+
			"for each command", r.Text, strings.Join(commands, " *), Bash("))
	}
	if name == "[" || name == "[[" || strings.ContainsAny(name, "|;&<>") {
		return nil // a command, or several
	}
	other := *r
	if plain, found := disguised(r.Spec); found {
		other.Spec = plain
		return errors.Join(fmt.Errorf("the rule %+q: it has characters that are invisible, or look like others; Bash(%s) is "+
			"guarded too", r.Text, plain), l.Commands.add(&other))
	}
	switch bare := strings.NewReplacer(`"`, "", "'", "", "`", "", `\`, "").Replace(r.Spec); {
	case strings.ContainsAny(name, "\"'`") || len(name) > 1 && name[0] == '\\' && name[1] != '*' && name[1] != '(':
		other.Spec = bare
	case len(name) > 2 && strings.HasSuffix(name, ".*") && !strings.ContainsAny(name, "/^$[]{}?"):
		other.Spec = strings.TrimSuffix(name, ".*") + "*" + strings.TrimPrefix(r.Spec, name)
		return errors.Join(fmt.Errorf("the rule %q: only * is a wildcard, and the dot means itself; Bash(%s) is guarded too",
			r.Text, other.Spec), l.Commands.add(&other))
	case strings.ContainsAny(name, "^$[]{}?"):
		return fmt.Errorf("the rule %q: only * is a wildcard, so %q matches only this exact text; write a rule for each "+
			"command", r.Text, name)
	case colon != "" && (colon != "*" || r.Spec != head) && !slices.Contains(parameters, name):
		other.Spec = strings.Replace(r.Spec, ":", " ", 1)
	default:
		return nil
	}
	err := fmt.Errorf("the rule %q: no command is called like that; Bash(%s) is guarded too", r.Text, other.Spec)
	return errors.Join(err, l.Commands.add(&other))
}
