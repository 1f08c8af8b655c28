package rules

import (
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/command"
)

// An argRule is a rule of several words that applies whatever options stand between them: "npm run deploy" applies to
// `npm run --silent deploy`, and "rm -rf" to `rm -r x --force`.
type argRule struct {
	options  []string // as [optionSet] gives them
	operands []string
	open     bool   // ends in *: further operands may follow
	begins   string // prefix of an option or of the last operand, if that ends in *; otherwise ""
	rule     *Rule
}

// addArgRule adds a rule of several words.
func (c *Commands) addArgRule(spec string, r *Rule) {
	for word := range strings.FieldsSeq(strings.ReplaceAll(spec, "*", " ")) {
		if strings.HasPrefix(word, "--") && len(word) > len("--") && !slices.Contains(c.longs, word) {
			c.longs = append(c.longs, word)
		}
	}
	words, open := strings.CutSuffix(strings.TrimLeft(spec, "* "), "*")
	fields := strings.Fields(words)
	if len(fields) < 2 || isOption(fields[0]) || strings.ContainsAny(words, "*'\"\\$`|;&<>") {
		return
	}
	l := argRule{open: open, rule: r}
	if last := fields[len(fields)-1]; open && strings.HasSuffix(words, last) &&
		(!isOption(last) || strings.HasPrefix(last, "--")) {
		l.begins, fields = last, fields[:len(fields)-1]
	}
	for _, w := range fields[1:] {
		if !isOption(w) {
			l.operands = append(l.operands, w)
		}
	}
	for _, w := range fields[1:] {
		if isOption(w) {
			l.options = append(l.options, optionSet(fields[0], first(l.operands), w)...)
		}
	}
	c.argRules[fields[0]] = append(c.argRules[fields[0]], l)
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// matchArgs returns the rule that matches the words of a command. If there is none, maybe is a rule that may match,
// depending on the value of a word that is not known.
func (c *Commands) matchArgs(words []command.Word) (match, maybe *Rule) {
	rules := c.argRules[path.Base(words[0].Text)]
	if len(rules) == 0 {
		return nil, nil
	}
	taken := parseArgs(words)
	for _, l := range rules {
		switch matches, sure := l.matches(taken); {
		case matches && sure:
			return l.rule, nil
		case matches && maybe == nil:
			maybe = l.rule
		}
	}
	return nil, maybe
}

// An operand is a word that is not an option.
type operand struct {
	text    string
	value   bool // follows an option, so it may be the option's value
	takes   bool // is the value of an option, according to the tables of package command
	unknown bool // its text is not known
}

// A parsedArgs is a command, split into options and operands.
type parsedArgs struct {
	program  string
	options  map[string]bool
	operands []operand
	tail     bool // options follow the last operand
	unknown  bool // a word whose text is not known may be an option
}

// matches reports whether the rule applies to the command, or may apply; sure says which.
func (l argRule) matches(t parsedArgs) (matches, sure bool) {
	if l.undecided(t) {
		return true, false
	}
	rest, sure := t.operands, true
	for _, o := range l.options {
		if !t.options[o] && !t.unknown {
			return false, false
		}
		sure = sure && t.options[o]
	}
	for i, want := range l.operands {
		is := func(o operand) bool {
			same, _ := command.NamesSubcommand(t.program, o.text, want, i == 0)
			return same
		}
		for len(rest) > 0 && !is(rest[0]) && rest[0].value {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0:
			return false, false
		case is(rest[0]):
		case rest[0].unknown && strings.Trim(want, "abcdefghijklmnopqrstuvwxyz0123456789:-_") == "": // a name, not a file
			sure = false
		default:
			return false, false
		}
		rest = rest[1:]
	}
	switch {
	case l.begins != "":
		return l.matchPrefix(t, rest), sure
	case l.open:
		return true, sure
	case len(l.options) == 0: // a rule without wildcard means exactly these words
		return len(rest) == 0 && !t.tail, sure
	}
	return !slices.ContainsFunc(rest, func(o operand) bool { return !o.value }), sure
}

// undecided reports whether the subcommand depends on the settings of the program.
func (l argRule) undecided(t parsedArgs) bool {
	i := slices.IndexFunc(t.operands, func(o operand) bool { return !o.takes })
	if i < 0 || isOption(l.begins) && len(l.operands) == 0 {
		return false
	}
	same, perhaps := command.NamesSubcommand(t.program, t.operands[i].text,
		first(append(l.operands[:len(l.operands):len(l.operands)], l.begins)), true)
	return perhaps && !same
}

// matchPrefix reports whether an option, or the next operand, has the prefix of the rule: "git push --force*" applies
// to `git push origin --force-with-lease`.
func (l argRule) matchPrefix(t parsedArgs, rest []operand) bool {
	if isOption(l.begins) {
		for o := range t.options {
			if strings.HasPrefix(o, l.begins) {
				return true
			}
		}
		return false
	}
	for _, o := range rest {
		if strings.HasPrefix(o.text, l.begins) {
			return true
		}
		if !o.value {
			break
		}
	}
	return false
}

// parseArgs separates the options of a command from its operands.
func parseArgs(words []command.Word) parsedArgs {
	program, options := path.Base(words[0].Text), []string(nil)
	t := parsedArgs{program: program, options: map[string]bool{}}
	after, ended := false, false
	for _, w := range words[1:] {
		switch {
		case w.Text == "--":
			ended, after = true, false
		case !ended && isOption(w.Text):
			options = append(options, w.Text)
			after, t.tail = !strings.Contains(w.Text, "="), true
		default:
			unknown := !w.Static && !w.Home && !w.Glob
			takes := after && command.IsSubcommandValue(program, options[len(options)-1])
			if len(t.operands) == 0 && strings.HasPrefix(w.Text, "+") { // cargo +nightly build
				after, takes = true, true
			}
			t.operands = append(t.operands, operand{w.Text, after, takes, unknown})
			t.unknown = t.unknown || unknown && !ended && w.MayBeOption()
			after, t.tail = false, false
		}
	}
	if sub := command.DefaultSubcommand(program); sub != "" && len(t.operands) == 0 &&
		!slices.ContainsFunc(options, asksHelp) {
		t.operands = []operand{{text: sub}}
	}
	sub := ""
	if len(t.operands) > 0 {
		sub = t.operands[0].text
	}
	for _, w := range options {
		for _, o := range optionSet(program, sub, w) {
			t.options[o] = true
		}
	}
	if program == "git" && sub == "branch" && t.options["--delete"] && t.options["--force"] {
		t.options["-D"] = true
	}
	return t
}

// asksHelp reports whether an option makes a program only print something.
func asksHelp(option string) bool {
	return slices.Contains([]string{"-h", "--help", "-v", "-V", "--version"}, option)
}

func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

// optionSet returns the options in one word: a long one without its value, short ones one by one. A short option that
// also has a long name is returned by that.
func optionSet(program, sub, word string) (out []string) {
	if strings.HasPrefix(word, "--") {
		name, _, _ := strings.Cut(word, "=")
		return []string{name}
	}
	for _, letter := range cluster(program, word) {
		if long := longOption(program, sub, letter); long != "" {
			letter = long
		} else {
			letter = "-" + letter
		}
		out = append(out, letter)
	}
	return out
}

// taking has the short options of programs that take a value. In a cluster, the value follows such an option.
var taking = map[string]string{"git": "mFCct", "curl": "oXHdAeubFTwx", "sort": "okStT", "sed": "ie", "grep": "efmABCdD"}

// cluster returns the letters of -abc, up to the first one whose value follows.
func cluster(program, word string) (letters []string) {
	for _, c := range word[1:] {
		letters = append(letters, string(c))
		if strings.ContainsRune(taking[program], c) {
			break
		}
	}
	return letters
}

// optionNames has the options with two names that people deny. The meaning of git's options depends on the
// subcommand.
var optionNames = [...]struct{ programs, subs, short, long string }{
	{"rm cp grep", "", "rR", "--recursive"},
	{"chmod chown chgrp", "", "R", "--recursive"},
	{"rm cp mv ln docker podman npm", "", "f", "--force"},
	{"rm", "", "i", "--interactive"},
	{"git", "push clean checkout switch branch tag add mv rm fetch worktree", "f", "--force"},
	{"git", "branch push tag", "d", "--delete"},
	{"git", "commit", "n", "--no-verify"},
	{"git", "commit", "a", "--all"},
	{"git", "add", "A", "--all"},
	{"git", "commit tag", "m", "--message"},
	{"curl sort", "", "o", "--output"},
	{"curl", "", "k", "--insecure"},
	{"curl", "", "X", "--request"},
	{"sed", "", "i", "--in-place"},
	{"npm pnpm bun", "", "g", "--global"},
	{"pip", "", "U", "--upgrade"},
	{"apt apt-get", "", "y", "--yes"},
}

func longOption(program, sub, letter string) string {
	for _, o := range optionNames {
		if strings.Contains(o.short, letter) && hasWord(o.programs, program) && (o.subs == "" || hasWord(o.subs, sub)) {
			return o.long
		}
	}
	return ""
}

func hasWord(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// expandLongOptions replaces abbreviations of long options, and short options for which rules have the long name, by
// the long names.
func expandLongOptions(words []command.Word, longs []string) (out []command.Word, changed bool) {
	program, sub, ended := path.Base(words[0].Text), "", false
	for i, w := range words {
		if ended = ended || w.Text == "--"; i == 0 || ended || !isOption(w.Text) {
			if out = append(out, w); i > 0 && sub == "" && w.Static {
				sub = w.Text
			}
			continue
		}
		texts := expandOptions(program, sub, w.Text, longs)
		changed = changed || texts[0] != w.Text
		for _, text := range texts {
			w.Text = text
			out = append(out, w)
		}
	}
	return out, changed
}

// expandOptions returns the options in one word, those that rules have by the long name with that name. The rest of a
// cluster of short options stays one word.
func expandOptions(program, sub, word string, longs []string) (out []string) {
	if strings.HasPrefix(word, "--") {
		name, value, has := strings.Cut(word, "=")
		if name = abbreviated(program, name, longs); has {
			name += "=" + value
		}
		return []string{name}
	}
	rest := word
	for _, letter := range cluster(program, word) {
		if long := longOption(program, sub, letter); long != "" && slices.Contains(longs, long) {
			out, rest = append(out, long), strings.Replace(rest, letter, "", 1)
		}
	}
	if rest != "-" || len(out) == 0 {
		out = append(out, rest)
	}
	return out
}

// abbreviated returns the long option that name abbreviates, as getopt would find it, or name itself. A name up to a
// "-" may be an option of its own: --force, --force-with-lease.
func abbreviated(program, name string, longs []string) string {
	if len(name) <= len("--x") || slices.Contains(longs, name) {
		return name
	}
	all := slices.Clone(longs)
	for _, o := range optionNames {
		if hasWord(o.programs, program) {
			all = append(all, o.long)
		}
	}
	for _, long := range all {
		if len(long) > len(name) && strings.HasPrefix(long, name) && long[len(name)] != '-' {
			return long
		}
	}
	return name
}

func joined(words []command.Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}
