package command

import "path"

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
	if n := len(c.spellings); n > 0 && c.spellings[n-1][0].Text == "git" { // the value of an option is no subcommand
		c.Args = c.spellings[n-1]
	}
	return c
}
