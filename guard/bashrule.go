package guard

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
	"toolhost/guard/internal/wildcard"
)

// commandRules are the Bash rules of one list, indexed by their form.
type commandRules struct {
	action Action
	count  int
	// exact rules have no wildcard; the key is what they match.
	exact map[string]*rule
	// prefix rules end in " *" and have no other wildcard: they match their key,
	// and it followed by a space.
	prefix  map[string]*rule
	longest int // length of the longest prefix
	// globs are the rules with wildcards elsewhere, by their first word; those
	// whose first word has a wildcard are under "".
	globs map[string][]globRule
	// loose are the deny and ask rules of several words, by program: they are looked
	// for among whatever options the command has.
	loose map[string][]looseRule
	// longs are the long options that deny and ask rules name.
	longs []string
	// whole are the rules that hold a separator, which only a whole command line
	// can match.
	whole []globRule
}

// A globRule has wildcards elsewhere.
type globRule struct {
	head    string // the text before the first *
	pattern string
	rule    *rule
}

// errNoCommand says that a rule speaks of every command, or of none.
var errNoCommand = errors.New("names no command; write Bash for every command")

func newCommandRules(a Action) *commandRules {
	return &commandRules{action: a, exact: map[string]*rule{}, prefix: map[string]*rule{}, globs: map[string][]globRule{}, loose: map[string][]looseRule{}}
}

// add indexes a rule whose specifier is not empty.
func (c *commandRules) add(r *rule) error {
	spec := strings.NewReplacer(`\(`, "(", `\)`, ")").Replace(r.spec)
	if head, ok := strings.CutSuffix(spec, ":*"); ok {
		spec = head + " *"
		if c.action != Allow {
			spec = strings.TrimSpace(head) + " *"
		}
	}
	if strings.TrimSpace(strings.Trim(spec, "* ")) == "" {
		return fmt.Errorf("the rule %q %w", r.text, errNoCommand)
	}
	if name, rest, _ := strings.Cut(spec, " "); c.action != Allow && isSystemProgram(name) { // rm runs /bin/rm
		other := *r
		other.spec = strings.TrimSuffix(path.Base(name)+" "+rest, " ")
		if err := c.add(&other); err != nil {
			return err
		}
		c.count--
	}
	c.count++
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
	if c.action != Allow {
		c.addLoose(spec, r)
	}
	return c.addWhole(spec, stars, r)
}

// isSystemProgram reports whether a rule names a program by where it lies as a rule.
func isSystemProgram(name string) bool {
	return slices.Contains([]string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}, path.Dir(name)) && !strings.Contains(name, "*")
}

func setFirst(m map[string]*rule, key string, r *rule) {
	if m[key] == nil {
		m[key] = r
	}
}

func newGlobRule(spec string, r *rule) globRule {
	head, _, _ := strings.Cut(spec, "*")
	return globRule{head: strings.TrimSuffix(head, `\`), pattern: spec, rule: r}
}

// addWhole notes rules that hold several commands.
func (c *commandRules) addWhole(spec string, stars int, r *rule) error {
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
	if c.action == Allow && stars > 0 {
		return fmt.Errorf("the rule %q allows nothing: each command of a line is matched by itself, so write a rule for each", r.text)
	}
	c.whole = append(c.whole, newGlobRule(spec, r))
	return nil
}

// text returns the rule that matches one text.
func (c *commandRules) text(text string) *rule {
	if r := c.naming(text); r != nil {
		return r
	}
	return matchGlobs(c.globs[""], text)
}

// naming returns the rule that matches one text and names its program: one
// whose first word has no wildcard.
func (c *commandRules) naming(text string) *rule {
	if r := c.exact[text]; r != nil {
		return r
	}
	for i := 0; i <= min(len(text), c.longest); i++ {
		if i < len(text) && text[i] != ' ' {
			continue
		}
		if r := c.prefix[text[:i]]; r != nil {
			return r
		}
	}
	first, _, _ := strings.Cut(text, " ")
	if first == "" {
		return nil
	}
	return matchGlobs(c.globs[first], text)
}

func matchGlobs(globs []globRule, text string) *rule {
	for i := range globs {
		if g := &globs[i]; strings.HasPrefix(text, g.head) && wildcard.Text(g.pattern, text) {
			return g.rule
		}
	}
	return nil
}

// line returns the rule that matches the command line as a whole: exactly for
// allow, with wildcards for deny and ask.
func (c *commandRules) line(text string) *rule {
	text = strings.TrimSpace(text)
	if c.action == Allow {
		return c.exact[text]
	}
	for _, g := range c.whole {
		if wildcard.Text(g.pattern, text) {
			return g.rule
		}
	}
	return nil
}

// denies returns the deny or ask rule that matches the command in any of its
// forms, and else one that it might match: which word a rule speaks of is there is
// known only when it runs.
func (c *commandRules) denies(s command.Simple) (match, maybe *rule) {
	if c.count == 0 {
		return nil, nil
	}
	for _, form := range s.Forms() {
		if r := c.text(form); r != nil {
			return r, nil
		}
	}
	for _, words := range s.Spellings() {
		long, changed := lengthened(words, c.longs)
		if changed {
			if r := c.text(joined(long)); r != nil {
				return r, nil
			}
		}
		r, perhaps := c.looseMatch(long)
		if r != nil {
			return r, nil
		}
		if maybe == nil {
			maybe = perhaps
		}
	}
	return nil, maybe
}

// allows returns the allow rule that matches the command.
func (c *commandRules) allows(s command.Simple) *rule {
	if c.count == 0 || !s.SafeAssigns() {
		return nil
	}
	if len(s.Undecidable) > 0 {
		if r := c.exact[s.Text]; r != nil {
			return r
		}
		if r := c.exact[s.Source]; r != nil || !s.Interprets() {
			return r
		}
		return c.naming(s.Text)
	}
	r := c.text(s.Text)
	if r == nil {
		r = c.text(s.Source)
	}
	if r != nil && s.Deletes() && !strings.Contains(r.spec, "-delete") {
		return nil // find * is meant for looking
	}
	return r
}
