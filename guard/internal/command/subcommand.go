package command

import (
	"path"
	"slices"
	"strings"
)

// Spellings returns the words of a command, and other words that say the same: a rule
// for any of them is meant for all.
func (c Simple) Spellings() [][]Word { return append([][]Word{c.Args}, c.spellings...) }

// spelled notes another spelling, and what that says by the usual name of its program.
func (c *Simple) spelled(words []Word) {
	for ; len(words) > 0; words = otherName(words) {
		c.spellings = append(c.spellings, words)
	}
}

// spell notes the spellings that the words of a command alone tell.
func (c *Simple) spell() {
	c.spelled(otherName(c.Args))
	if c.Name == "dd" && len(c.Args) <= maxDD { // whose operands stand in any order
		for i := 2; i < len(c.Args); i++ {
			c.spelled(slices.Concat(c.Args[:1], c.Args[i:i+1], c.Args[1:i], c.Args[i+1:]))
		}
	}
}

// maxDD bounds the operands of dd whose order is changed; it knows 12.
const maxDD = 16

// otherName returns a command by the name that rules have for its program, nil if it
// has none but its own.
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
	if !listed("has subcommands", name) || len(args) < 2 {
		return nil
	}
	others, _ := recordOf("subcommands", name)
	option := false
	for i, word := range args[1:] {
		if isOption(word.Text) || i == 0 && word.Text != "" && word.Text[0] == '+' { // cargo +nightly
			option = isOption(word.Text) && !strings.Contains(word.Text, "=")
			continue
		}
		if i > 0 {
			forms = append(forms, name+" "+join(args[i+1:]))
		}
		if usual := others.lists[word.Text]; usual != "" {
			forms = append(forms, strings.TrimSuffix(name+" "+usual+" "+join(args[min(i+2, len(args)):]), " "))
		}
		if !option { // else it may be the value of the option before it
			break
		}
		option = false
	}
	return forms
}
