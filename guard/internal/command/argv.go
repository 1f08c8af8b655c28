package command

import (
	"path"
	"strings"
)

// Argv returns the command of a program that is started with these arguments, of which there is at least one: its
// words are all known. It is only to be matched against rules.
func Argv(args []string) Simple {
	c := Simple{Args: make([]Word, len(args)), Outer: -1, Name: path.Base(args[0])}
	for i, arg := range args {
		c.Args[i] = fixed(arg)
	}
	c.Text = join(c.Args)
	c.Source = c.Text
	c.spell()
	words := c.Args
	if sub, ok := strings.CutPrefix(c.Name, "git-"); ok {
		words = append([]Word{fixed("git"), fixed(sub)}, words[1:]...)
		c.spelled(words)
	}
	if path.Base(words[0].Text) == "git" {
		if index, _ := gitSubcommand(Simple{Args: words}); index > 1 { // the value of an option is no subcommand
			c.Args = append([]Word{fixed("git")}, words[index:]...)
			c.spelled(c.Args)
		}
	}
	return c
}
