package rules

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// Commands are the Bash rules of one list, indexed by their form.
type Commands struct {
	kind  Kind
	count int
	// exact rules have no wildcard; the key is what they match.
	exact map[string]*Rule
	// prefix rules end in " *" and have no other wildcard: they match their key,
	// and it followed by a space.
	prefix  map[string]*Rule
	longest int // length of the longest prefix
	// globs are the rules with wildcards that are not at the end only, by their first word; those
	// whose first word has a wildcard are under "".
	globs map[string][]globRule
	// argRules are the deny and ask rules of several words, by program: they are looked
	// for among whatever options the command has.
	argRules map[string][]argRule
	// longs are the long options that deny and ask rules name.
	longs []string
	// whole are the rules that hold a separator, which only a whole command line
	// can match.
	whole []globRule
	// programs are those that the rules name.
	programs programs
}

// A globRule has wildcards that are not at the end only.
type globRule struct {
	head    string // the text before the first *
	pattern string
	rule    *Rule
}

// errNoCommand says that a rule names every command, or none.
var errNoCommand = errors.New("names no command; write Bash for every command")

func newCommands(kind Kind) *Commands {
	return &Commands{kind: kind, exact: map[string]*Rule{}, prefix: map[string]*Rule{}, globs: map[string][]globRule{}, argRules: map[string][]argRule{}}
}

// Empty reports whether there is no rule.
func (c *Commands) Empty() bool { return c.count == 0 }

// add indexes a rule whose specifier is not empty.
func (c *Commands) add(r *Rule) error {
	spec := strings.NewReplacer(`\(`, "(", `\)`, ")").Replace(r.Spec)
	if head, ok := strings.CutSuffix(spec, ":*"); ok {
		spec = head + " *"
		if c.kind != Allow {
			spec = strings.TrimSpace(head) + " *"
			if strings.HasSuffix(head, "*") && !strings.HasSuffix(head, `\*`) {
				spec = head // "rm *:*" is about "rm x" too, which has one argument
			}
		}
	}
	if plain := strings.ReplaceAll(spec, `\\`, `\`); plain != spec { // as clients save a backslash
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
	if name, rest, _ := strings.Cut(spec, " "); c.kind != Allow && isSystemProgram(name) { // rm runs /bin/rm
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

// isSystemProgram reports whether a rule names a program by where it lies as a rule.
func isSystemProgram(name string) bool {
	return slices.Contains([]string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}, path.Dir(name)) && !strings.Contains(name, "*")
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

// addWhole notes rules that hold several commands.
func (c *Commands) addWhole(spec string, stars int, r *Rule) error {
	if !strings.ContainsAny(spec, "|;&\n<>`$") {
		return nil
	}
	top := 0
	analysis := command.Analyze(strings.ReplaceAll(spec, "*", "x"))
	for _, s := range analysis.Commands {
		if s.Outer < 0 {
			top++
		}
	}
	if top < 2 && len(analysis.Reads)+len(analysis.Writes) == 0 && len(analysis.Undecidable) == 0 {
		return nil
	}
	if c.kind == Allow && stars > 0 {
		return fmt.Errorf("the rule %q allows nothing: each command of a line is matched by itself, so write a rule for each", r.Text)
	}
	c.whole = append(c.whole, newGlobRule(spec, r))
	return nil
}

// Text returns the rule that matches one text.
func (c *Commands) Text(text string) *Rule {
	if r := c.naming(text); r != nil {
		return r
	}
	return matchGlobs(c.globs[""], text)
}

// naming returns the rule that matches one text and names its program: one
// whose first word has no wildcard.
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

// begins returns the rule with a wildcard at its end alone that matches the beginning of a text.
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

// Line returns the rule that matches the command line as a whole: exactly for
// allow, with wildcards for deny and ask.
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

// Denies returns the deny or ask rule that matches the command in any of its forms, or else one
// that it might match: a word of the command that the rule depends on is known only when it runs.
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

// Allows returns the allow rule that matches the command: exactly, or by a rule of which every word is one that the
// command surely has. What a rule leaves open may be known only when the command runs, unless that may make its
// program start another one.
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
		return nil // find * is meant for looking
	}
	return r
}
