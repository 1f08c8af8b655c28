package command

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Spellings returns the words of a command, and other words that say the same: a rule
// for any of them is meant for all.
func (c Simple) Spellings() [][]Word { return append([][]Word{c.Args}, c.spellings...) }

// spelled records words as another spelling, and with the usual name of their program as well.
func (c *Simple) spelled(words []Word) {
	for ; len(words) > 0; words = otherName(words) {
		c.spellings = append(c.spellings, words)
	}
}

// spell records the spellings that follow from the words of the command alone.
func (c *Simple) spell() {
	args := c.Args
	if len(args) == 0 {
		return
	}
	c.spelled(otherName(args))
	c.spelled(gitForm(args))
	if path.Base(args[0].Text) == "dd" && len(args) <= maxDD { // whose operands stand in any order
		for i := 2; i < len(args); i++ {
			c.spelled(slices.Concat(args[:1], args[i:i+1], args[1:i], args[i+1:]))
		}
	}
}

// gitForm returns a command of git without the options before its subcommand, also that of a program such as git-push.
// It returns nil if the words are such a form already, or another program's.
func gitForm(words []Word) []Word {
	name := path.Base(words[0].Text)
	if sub, ok := strings.CutPrefix(name, "git-"); ok {
		return append([]Word{fixed("git"), fixed(sub)}, words[1:]...)
	}
	if name != "git" {
		return nil
	}
	if index, doubt := gitSubcommand(Simple{Args: words}); index > 1 && (index < len(words) || doubt == "") {
		return append([]Word{fixed("git")}, words[index:]...)
	}
	return nil
}

// maxDD bounds the words of a dd command whose operands are reordered; dd knows 12 operands.
const maxDD = 16

// otherName returns a command with the name that rules use for its program, or nil if the program has no other name.
func otherName(words []Word) []Word {
	own := path.Base(words[0].Text)
	name := own
	if i := strings.LastIndexByte(own, '@'); i > 0 { // npx npm@latest
		name = own[:i]
	}
	if tool := strings.TrimRight(name, "0123456789."); oneOf(tool, "pip python") {
		name = tool
	}
	switch name {
	case "nodejs":
		name = "node"
	case "docker-compose":
		return append([]Word{fixed("docker"), fixed("compose")}, words[1:]...)
	case "python", "py":
		return pythonModule(words)
	}
	if name == own {
		return nil
	}
	return append([]Word{fixed(name)}, words[1:]...)
}

// pythonModule returns what `python3 -m pip install x` runs: pip install x.
func pythonModule(words []Word) []Word {
	for i := 1; i < len(words); i++ {
		letters, option := strings.CutPrefix(words[i].Text, "-")
		if !words[i].Static || !option || letters == "" || letters[0] == '-' {
			return nil
		}
		at := strings.IndexAny(letters, "mcWX")
		switch {
		case at < 0:
		case letters[at] == 'c':
			return nil
		case letters[at] != 'm':
			if at+1 == len(letters) {
				i++ // the value of -W or -X
			}
		case at+1 < len(letters):
			return append([]Word{fixed(letters[at+1:])}, words[i+1:]...)
		default:
			return words[i+1:]
		}
	}
	return nil
}

// shortForms returns the spellings of a command that begin with its subcommand, as a
// deny rule does: without the options between (`docker --context x rm y` is `docker rm
// y`), and by the subcommand's usual name (`npm i` is `npm install`).
func shortForms(name string, args []Word) (forms []string) {
	if !listed("has subcommands", name) {
		return nil
	}
	others, _ := recordOf("subcommands", name)
	for i, word := range args[1:] {
		if isOption(word.Text) || i == 0 && strings.HasPrefix(word.Text, "+") { // cargo +nightly
			continue
		}
		rest := append([]Word{fixed(name), word}, args[i+2:]...)
		forms = append(forms, join(rest))
		if usual := others.lists[word.Text]; usual != "" {
			rest[1] = fixed(usual)
			forms = append(forms, join(rest))
		}
		if before := args[i].Text; !isOption(before) || strings.Contains(before, "=") {
			break // else the word may be the value of the option before it
		}
	}
	return forms
}

// NamesSubcommand returns same if a program takes word for the name that a rule has, and perhaps if that depends on
// settings that only the program knows. first is set for the subcommand itself, not for a word after it.
func NamesSubcommand(program, word, name string, first bool) (same, perhaps bool) {
	r, _ := recordOf("subcommands", program)
	if word == name || r.flags["camel"] && strings.EqualFold(kebab(word), kebab(name)) {
		return true, false
	}
	if word == "" || !plainName(name) {
		return false, false
	}
	if !first {
		return r.flags["prefixes"] && (strings.HasPrefix(name, word) || abbreviates(word, name)), false
	}
	usual := func(w string) string { return cmp.Or(r.lists[w], w) }
	if r.flags["camel"] {
		word = kebab(word)
	}
	switch {
	case usual(word) == usual(name):
		return true, false
	case r.lists[word] != "" || oneOf(word, r.lists["names"]) || program == "git" && listed("git", word):
		return false, false
	case r.is("prefix prefixes") && (strings.HasPrefix(name, word) || abbreviates(word, name) || r.flags["camel"] &&
		abbreviates(word, kebab(name))):
		return true, false
	}
	if r.is("prefix prefixes") {
		for other, its := range r.lists {
			same = same || its == usual(name) && strings.HasPrefix(other, word)
		}
	}
	return same, !same && (r.flags["closed"] || r.flags["similar"] && mayCorrect(word, name, r))
}

// DefaultSubcommand returns the subcommand that a program runs if it is given none.
func DefaultSubcommand(program string) string {
	r, _ := recordOf("subcommands", program)
	return r.lists["default"]
}

// IsSubcommandValue reports whether an option before the subcommand takes the next word as its value. If the program
// has no list, any option may.
func IsSubcommandValue(program, option string) bool {
	r, _ := recordOf("subcommands", program)
	return r.lists["takes"] == "" && !r.flags["closed"] || oneOf(option, r.lists["takes"])
}

// plainName reports whether a word may be the name of a subcommand: it is no file, and no pattern.
func plainName(word string) bool {
	return strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_") == ""
}

// kebab writes a name with dashes: distTag as dist-tag.
func kebab(word string) string {
	var b strings.Builder
	for _, c := range word {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// abbreviates reports whether each part of a word between dashes or colons begins the same part of a name: d:m is
// doctrine:migrate.
func abbreviates(word, name string) bool {
	ends := func(c rune) bool { return c == '-' || c == ':' }
	parts, of := strings.FieldsFunc(word, ends), strings.FieldsFunc(name, ends)
	for i, part := range parts {
		if i >= len(of) || !strings.HasPrefix(of[i], part) {
			return false
		}
	}
	return len(parts) > 1
}

// mayCorrect reports whether git may take one subcommand for a word that it does not know (help.autocorrect). For git a
// letter that is changed counts 2, added 1, removed 3, and the sum is below 6; the start of a common name is never
// corrected.
func mayCorrect(word, name string, git record) bool {
	if isStartOfOneOf(word, git.lists["names"]) {
		return false
	}
	extra := 0
	for _, letter := range word {
		if i := strings.IndexRune(name, letter); i >= 0 {
			name = name[:i] + name[i+1:]
		} else {
			extra++
		}
	}
	both := min(extra, len(name))
	return 2*both+len(name)-both+3*(extra-both) < 6
}
