package rules

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// Commands are the Bash rules of one list, indexed by their form.
type Commands struct {
	kind  Kind
	count int
	// exact has the rules without wildcards, by the text that they match.
	exact map[string]*Rule
	// prefix has the rules whose only wildcard is a final " *", by the text before it. They match that text, alone or
	// followed by a space.
	prefix  map[string]*Rule
	longest int // length of the longest prefix
	// globs has the other rules with wildcards, by their first word, or under "" if that has a wildcard.
	globs map[string][]globRule
	// argRules has the deny and ask rules of several words, by program. They apply whatever options stand between the
	// words.
	argRules map[string][]argRule
	// longs are the long options that deny and ask rules name.
	longs []string
	// whole has the rules that contain a separator. Only a whole command line can match them.
	whole []globRule
	// programs has the names of programs in the rules.
	programs programs
}

// A globRule is a rule with wildcards other than a final " *".
type globRule struct {
	head    string // the text before the first *
	pattern string
	rule    *Rule
}

// errNoCommand says that a rule means every command, or none.
var errNoCommand = errors.New("names no command; write Bash for every command")

func newCommands(kind Kind) *Commands {
	return &Commands{kind: kind, exact: map[string]*Rule{}, prefix: map[string]*Rule{}, globs: map[string][]globRule{},
		argRules: map[string][]argRule{}}
}

// Empty reports whether there are no rules.
func (c *Commands) Empty() bool { return c.count == 0 }

// add indexes a rule whose specifier is not empty.
func (c *Commands) add(r *Rule) error {
	spec := strings.NewReplacer(`\(`, "(", `\)`, ")").Replace(r.Spec)
	if head, ok := strings.CutSuffix(spec, ":*"); ok {
		spec = head + " *"
		if c.kind != Allow {
			spec = strings.TrimSpace(head) + " *"
			if strings.HasSuffix(head, "*") && !strings.HasSuffix(head, `\*`) {
				spec = head // "rm *:*" also means "rm x", which has a single argument
			}
		}
	}
	if plain := strings.ReplaceAll(spec, `\\`, `\`); plain != spec { // clients save a backslash as two
		other := *r
		other.Spec = plain
		if err := c.add(&other); err != nil {
			return err
		}
		c.count--
	}
	if strings.TrimSpace(strings.Trim(spec, "* ")) == "" {
		return fmt.Errorf("the rule %q %w", r.Text, errNoCommand)
	}
	if name, rest, _ := strings.Cut(spec, " "); c.kind != Allow && isSystemProgram(name) { // the command rm runs /bin/rm
		other := *r
		other.Spec = strings.TrimSuffix(path.Base(name)+" "+rest, " ")
		if err := c.add(&other); err != nil {
			return err
		}
		c.count--
	}
	c.count++
	c.programs.note(spec, r)
	stars := strings.Count(spec, "*") - strings.Count(spec, `\*`)
	head, trailing := strings.CutSuffix(spec, " *")
	switch {
	case stars == 0:
		setFirst(c.exact, strings.ReplaceAll(spec, `\*`, "*"), r)
	case stars == 1 && trailing:
		head = strings.ReplaceAll(head, `\*`, "*")
		setFirst(c.prefix, head, r)
		c.longest = max(c.longest, len(head))
	default:
		g := newGlobRule(spec, r)
		first, _, _ := strings.Cut(g.head, " ")
		if first == g.head {
			first = ""
		}
		c.globs[first] = append(c.globs[first], g)
	}
	if c.kind != Allow {
		c.addArgRule(spec, r)
	}
	if words := strings.Fields(head); c.kind == Allow && trailing && command.OnlyWraps(words) {
		return fmt.Errorf("the rule %q allows nothing by itself: what %s runs needs a rule of its own, "+
			"or one that names both, such as Bash(%s npm test *)", r.Text, words[0], head)
	}
	return c.addWhole(spec, stars, r)
}

// isSystemProgram reports whether a name in a rule is the usual path of a program of the system.
func isSystemProgram(name string) bool {
	return slices.Contains([]string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}, path.Dir(name)) &&
		!strings.Contains(name, "*")
}

func setFirst(m map[string]*Rule, key string, r *Rule) {
	if m[key] == nil {
		m[key] = r
	}
}

func newGlobRule(spec string, r *Rule) globRule {
	head, _, _ := strings.Cut(spec, "*")
	return globRule{head: strings.TrimSuffix(head, `\`), pattern: spec, rule: r}
}

// quotedParts matches the parts of a command line in which no separator separates.
var quotedParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`'[^']*'|"([^"$` + "`" + `\\]|\\.)*"|\\.|\d?>&\d`)
})

// addWhole adds a rule that contains several commands.
func (c *Commands) addWhole(spec string, stars int, r *Rule) error {
	if !strings.ContainsAny(spec, "|;&\n<>`$") {
		return nil
	}
	open := quotedParts().ReplaceAllString(spec, "")
	if !strings.ContainsAny(open, "|;&\n<>`") && !strings.Contains(open, "$(") {
		return nil
	}
	if c.kind == Allow && stars > 0 {
		return fmt.Errorf("the rule %q allows nothing: each command of a line is matched by itself, so write "+
			"a rule for each", r.Text)
	}
	c.whole = append(c.whole, newGlobRule(spec, r))
	return nil
}

// Text returns the rule that matches a text.
func (c *Commands) Text(text string) *Rule {
	if r := c.naming(text); r != nil {
		return r
	}
	return matchGlobs(c.globs[""], text)
}

// naming returns the rule that matches a text and whose first word has no wildcard, so that it names a program.
func (c *Commands) naming(text string) *Rule {
	if r := c.exact[text]; r != nil {
		return r
	}
	if r := c.begins(text); r != nil {
		return r
	}
	first, _, _ := strings.Cut(text, " ")
	if first == "" {
		return nil
	}
	return matchGlobs(c.globs[first], text)
}

// begins returns the rule without wildcards except a final one that matches the beginning of a text.
func (c *Commands) begins(text string) *Rule {
	for i := 0; i <= min(len(text), c.longest); i++ {
		if i < len(text) && text[i] != ' ' {
			continue
		}
		if r := c.prefix[text[:i]]; r != nil {
			return r
		}
	}
	return nil
}

func matchGlobs(globs []globRule, text string) *Rule {
	for i := range globs {
		if g := &globs[i]; strings.HasPrefix(text, g.head) && pathname.Text(g.pattern, text) {
			return g.rule
		}
	}
	return nil
}

// Line returns the rule that matches the whole command line: an allow rule without wildcards, or a deny or ask rule
// with or without.
func (c *Commands) Line(text string) *Rule {
	text = strings.TrimSpace(text)
	if c.kind == Allow {
		return c.exact[text]
	}
	for _, g := range c.whole {
		if pathname.Text(g.pattern, text) {
			return g.rule
		}
	}
	return nil
}

// Denies returns the deny or ask rule that matches the command in any of its forms. If there is none, maybe is a rule
// that may match, because a word of the command that the rule depends on is known only when it runs.
func (c *Commands) Denies(s command.Simple) (match, maybe *Rule) {
	if c.count == 0 {
		return nil, nil
	}
	for _, form := range s.Forms() {
		if r := c.Text(form); r != nil {
			return r, nil
		}
	}
	for _, words := range s.Spellings() {
		long, changed := expandLongOptions(words, c.longs)
		if changed {
			if r := c.Text(joined(long)); r != nil {
				return r, nil
			}
		}
		r, perhaps := c.matchArgs(long)
		if r != nil {
			return r, nil
		}
		if maybe == nil {
			maybe = perhaps
		}
	}
	return nil, maybe
}

// Allows returns the allow rule that matches the command: exactly, or with every word of the rule known to be in the
// command. The words for which the rule has a wildcard may be known only when the command runs, unless they may make
// the program start another one.
func (c *Commands) Allows(s command.Simple) *Rule {
	if c.count == 0 || !s.SafeAssigns() {
		return nil
	}
	for _, text := range []string{s.Text, s.Source} {
		if r := c.exact[text]; r != nil {
			return r
		}
	}
	var r *Rule
	switch {
	case len(s.Undecidable) > 0 && !s.Interprets():
		return nil
	case s.Dynamic():
		return c.begins(s.Beginning())
	case len(s.Undecidable) > 0:
		return c.naming(s.Text)
	}
	if r = c.Text(s.Text); r == nil {
		r = c.Text(s.Source)
	}
	if r != nil && s.Deletes() && !strings.Contains(r.Spec, "-delete") {
		return nil // find * is meant for looking only
	}
	return r
}
