package rulebook

import (
	"path"
	"slices"
	"strings"

	"toolhost/guard/internal/command"
)

// A looseRule is a rule of several words that is looked for whatever options stand
// between and behind them: "npm run deploy" is in `npm run --silent deploy`, and
// "rm -rf" in `rm -r x --force`. So is "rm -rf*".
type looseRule struct {
	options  []string // as [optionSet] gives them
	operands []string
	open     bool   // ends in *: further operands may follow
	begins   string // how an option or the last operand begins; "" if none ends in *
	rule     *Rule
}

// addLoose notes a rule of several words.
func (c *Commands) addLoose(spec string, r *Rule) {
	for _, word := range strings.Fields(strings.ReplaceAll(spec, "*", " ")) {
		if strings.HasPrefix(word, "--") && len(word) > len("--") && !slices.Contains(c.longs, word) {
			c.longs = append(c.longs, word)
		}
	}
	words, open := strings.CutSuffix(strings.TrimLeft(spec, "* "), "*")
	fields := strings.Fields(words)
	if len(fields) < 2 || isOption(fields[0]) || strings.ContainsAny(words, "*'\"\\$`|;&<>") {
		return
	}
	l := looseRule{open: open, rule: r}
	if last := fields[len(fields)-1]; open && strings.HasSuffix(words, last) && (!isOption(last) || strings.HasPrefix(last, "--")) {
		l.begins, fields = last, fields[:len(fields)-1]
	}
	var options []string
	for _, w := range fields[1:] {
		if isOption(w) {
			options = append(options, w)
		} else {
			l.operands = append(l.operands, w)
		}
	}
	for _, w := range options {
		l.options = append(l.options, optionSet(fields[0], first(l.operands), w)...)
	}
	c.loose[fields[0]] = append(c.loose[fields[0]], l)
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// looseMatch returns the rule that matches the words of a command, and one that may
// match, depending on what a word of it becomes.
func (c *Commands) looseMatch(words []command.Word) (match, maybe *Rule) {
	rules := c.loose[path.Base(words[0].Text)]
	if len(rules) == 0 {
		return nil, nil
	}
	taken := takeApart(words)
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

// An operand is a word that is no option.
type operand struct {
	text    string
	value   bool // follows an option, whose value it may be
	unknown bool // may become any word
}

// A taken is a command, taken apart.
type taken struct {
	options  map[string]bool
	operands []operand
	tail     bool // options follow the last operand
}

// matches reports whether the rule speaks of the command, and whether that is sure.
func (l looseRule) matches(t taken) (matches, sure bool) {
	for _, o := range l.options {
		if !t.options[o] {
			return false, false
		}
	}
	rest, sure, ok := l.afterOperands(t)
	if !ok {
		return false, false
	}
	if l.begins != "" {
		return l.beginning(t, rest), sure
	}
	if l.open {
		return true, sure
	}
	if len(l.options) == 0 { // without wildcard it is about exactly these words
		return len(rest) == 0 && !t.tail, sure
	}
	return !slices.ContainsFunc(rest, func(o operand) bool { return !o.value }), sure
}

// afterOperands returns the operands behind those of the rule, and whether it is sure that these are there.
func (l looseRule) afterOperands(t taken) (rest []operand, sure, ok bool) {
	rest, sure = t.operands, true
	for _, want := range l.operands {
		for len(rest) > 0 && rest[0].text != want && rest[0].value {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0:
			return nil, false, false
		case rest[0].text == want:
		case rest[0].unknown && isSubcommand(want):
			sure = false
		default:
			return nil, false, false
		}
		rest = rest[1:]
	}
	return rest, sure, true
}

// beginning reports whether an option, or the next operand, begins as the rule says: "git push --force*" speaks of
// `git push origin --force-with-lease`.
func (l looseRule) beginning(t taken, rest []operand) bool {
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

// isSubcommand reports whether a word of a rule may be meant as one, rather than as a file.
func isSubcommand(word string) bool {
	return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789:-_") == ""
}

// takeApart separates the options of a command from its operands.
func takeApart(words []command.Word) taken {
	t := taken{options: map[string]bool{}}
	program, options := path.Base(words[0].Text), []string(nil)
	after, ended := false, false
	for _, w := range words[1:] {
		switch {
		case w.Text == "--":
			ended, after = true, false
		case !ended && isOption(w.Text):
			options = append(options, w.Text)
			after, t.tail = !strings.Contains(w.Text, "="), true
		default:
			t.operands = append(t.operands, operand{w.Text, after, !w.Static && !w.Home && !w.Glob && len(w.Guesses()) == 0})
			after, t.tail = false, false
		}
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

func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

// optionSet returns the options in one word, long ones without value, short
// ones one by one, and those with two names by the long one.
func optionSet(program, sub, word string) []string {
	if strings.HasPrefix(word, "--") {
		name, _, _ := strings.Cut(word, "=")
		return []string{name}
	}
	var out []string
	for _, letter := range cluster(program, word) {
		if long := longOption(program, sub, letter); long != "" {
			out = append(out, long)
		} else {
			out = append(out, "-"+letter)
		}
	}
	return out
}

// cluster returns the letters of -abc, without what is the value of one of them.
func cluster(program, word string) (letters []string) {
	taking := ""
	switch program {
	case "git":
		taking = "mFCct"
	case "curl":
		taking = "oXHdAeubFTwx"
	case "sort":
		taking = "okStT"
	case "sed":
		taking = "ie"
	case "grep":
		taking = "efmABCdD"
	}
	for _, c := range word[1:] {
		letters = append(letters, string(c))
		if strings.ContainsRune(taking, c) {
			break
		}
	}
	return letters
}

// optionNames are the options that people deny and that have two names; of git that
// has another meaning in each subcommand.
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

// lengthened writes long options out that are abbreviated, and short ones for which
// rules use the long name.
func lengthened(words []command.Word, longs []string) (out []command.Word, changed bool) {
	sub, ended := "", false
	for i, w := range words {
		ended = ended || w.Text == "--"
		if i == 0 || ended || !isOption(w.Text) {
			if i > 0 && sub == "" && w.Static {
				sub = w.Text
			}
			if changed {
				out = append(out, w)
			}
			continue
		}
		texts := writtenOut(path.Base(words[0].Text), sub, w.Text, longs)
		if texts[0] != w.Text && !changed {
			out, changed = append(out, words[:i]...), true
		}
		for _, text := range texts {
			if changed {
				w.Text = text
				out = append(out, w)
			}
		}
	}
	if !changed {
		return words, false
	}
	return out, true
}

// writtenOut returns an option with the long names that rules use; what else is in a
// cluster of short ones stays one.
func writtenOut(program, sub, word string, longs []string) []string {
	if strings.HasPrefix(word, "--") {
		name, value, has := strings.Cut(word, "=")
		full := abbreviated(program, name, longs)
		if has {
			full += "=" + value
		}
		return []string{full}
	}
	var out []string
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

// abbreviated returns the option that a name is the start of, as getopt reads it. One
// that ends before a "-" may be an option of its own: --force, --force-with-lease.
func abbreviated(program, name string, longs []string) string {
	if len(name) <= len("--x") {
		return name
	}
	starts := func(long string) bool {
		return len(long) > len(name) && strings.HasPrefix(long, name) && long[len(name)] != '-'
	}
	for _, long := range longs {
		if long == name {
			return name
		}
	}
	for _, long := range longs {
		if starts(long) {
			return long
		}
	}
	for _, o := range optionNames {
		if starts(o.long) && hasWord(o.programs, program) {
			return o.long
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
