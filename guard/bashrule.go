package guard

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
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
	// flags are the deny and ask rules with options, by program: their order and
	// clustering does not count.
	flags map[string][]flagRule
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

// A flagRule is a rule whose options count wherever they stand.
type flagRule struct {
	options  []string // in the form of [optionSet]
	operands []string
	open     bool // ends in " *": further operands may follow
	rule     *rule
}

// errNoCommand says that a rule speaks of every command, or of none.
var errNoCommand = errors.New("names no command; write Bash for every command")

func newCommandRules(a Action) *commandRules {
	return &commandRules{action: a, exact: map[string]*rule{}, prefix: map[string]*rule{}, globs: map[string][]globRule{}, flags: map[string][]flagRule{}}
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
		c.addFlags(spec, r)
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

// addFlags notes a rule with options.
func (c *commandRules) addFlags(spec string, r *rule) {
	words, open := strings.CutSuffix(spec, " *")
	fields := strings.Fields(words)
	if len(fields) < 2 || strings.ContainsAny(words, "*'\"\\$`|;&<>") {
		return
	}
	f := flagRule{open: open, rule: r}
	for _, w := range fields[1:] {
		if isOption(w) {
			f.options = append(f.options, optionSet(fields[0], w)...)
		} else {
			f.operands = append(f.operands, w)
		}
	}
	if len(f.options) > 0 {
		c.flags[fields[0]] = append(c.flags[fields[0]], f)
	}
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
		if g := &globs[i]; strings.HasPrefix(text, g.head) && matchText(g.pattern, text) {
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
		if matchText(g.pattern, text) {
			return g.rule
		}
	}
	return nil
}

// denies returns the deny or ask rule that matches the command in any of its
// forms.
func (c *commandRules) denies(s command.Simple) *rule {
	if c.count == 0 {
		return nil
	}
	for _, form := range s.Forms() {
		if r := c.text(form); r != nil {
			return r
		}
	}
	if len(c.flags[s.Name]) == 0 {
		return nil
	}
	options, operands := takeApart(s)
	for _, f := range c.flags[s.Name] {
		if f.matches(options, operands) {
			return f.rule
		}
	}
	return nil
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

// An operand is a word that is no option.
type operand struct {
	text  string
	value bool // follows an option, whose value it may be
}

func (f flagRule) matches(options map[string]bool, operands []operand) bool {
	for _, o := range f.options {
		if !options[o] {
			return false
		}
	}
	rest := operands
	for _, want := range f.operands {
		for len(rest) > 0 && rest[0].text != want && rest[0].value {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0].text != want {
			return false
		}
		rest = rest[1:]
	}
	return f.open || !slices.ContainsFunc(rest, func(o operand) bool { return !o.value })
}

// takeApart separates the options of a command from its operands.
func takeApart(s command.Simple) (options map[string]bool, operands []operand) {
	options = map[string]bool{}
	after, ended := false, false
	for _, w := range s.Args[1:] {
		switch {
		case w.Text == "--":
			ended, after = true, false
		case !ended && isOption(w.Text):
			for _, o := range optionSet(s.Name, w.Text) {
				options[o] = true
			}
			after = !strings.Contains(w.Text, "=")
		default:
			operands = append(operands, operand{w.Text, after})
			after = false
		}
	}
	return options, operands
}

func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

// optionSet returns the options in one word, long ones without value, short
// ones one by one, and those with two names by one of them.
func optionSet(program, word string) []string {
	if strings.HasPrefix(word, "--") {
		name, _, _ := strings.Cut(word, "=")
		return []string{canonicalOption(program, name)}
	}
	var out []string
	for _, c := range word[1:] {
		out = append(out, canonicalOption(program, "-"+string(c)))
	}
	return out
}

// canonicalOption knows the other names of the options that people deny.
func canonicalOption(program, option string) string {
	switch program + " " + option {
	case "rm -R", "rm --recursive", "chmod --recursive", "chown --recursive", "cp -R", "cp --recursive", "grep -R", "grep --recursive":
		if program == "chmod" || program == "chown" {
			return "-R"
		}
		return "-r"
	case "rm --force", "git --force", "cp --force", "mv --force", "ln --force", "docker --force":
		return "-f"
	case "rm --interactive":
		return "-i"
	case "git --delete":
		return "-d"
	case "git --all":
		return "-a"
	case "git --message":
		return "-m"
	case "curl --output", "sort --output":
		return "-o"
	case "sed --in-place":
		return "-i"
	}
	return option
}
