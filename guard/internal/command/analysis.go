package command

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An Analysis lists what a command text may run, read and write.
type Analysis struct {
	// Commands holds every simple command, in order of appearance. A command
	// found inside another (after sudo, in bash -c) follows it.
	Commands []Simple

	// Reads holds the targets of `<` redirections, and the files that shells run.
	Reads []Word

	// Writes holds the targets of `>`, `>>`, `2>`, `&>`, `>|`, `>&` and `<>`
	// redirections, and the operands of tee.
	Writes []Word

	// Undecidable holds the reasons why Commands may be incomplete, or why a
	// listed command may do something else than its words say. Each is a phrase
	// for a person, and no phrase appears twice. Empty means decided.
	Undecidable []string

	// Partial is set when a part of the text was not examined: it cannot be parsed, or
	// is too long, or runs too many commands. That part may read and write any file.
	Partial bool

	// Hiding is set when an undecidable form could run a program whose name is
	// not in Commands: a rule against that program cannot be relied on.
	Hiding bool

	// Downloaded is set when a shell or another interpreter runs text that is not part of the line, and a command of the
	// line downloads something: curl URL | sh.
	Downloaded bool

	// Lost is set when the shell may move to a directory that no literal operand of cd or pushd names.
	Lost bool

	// Lead are the operands of the commands cd in the list that the line begins with: cd a && b && cd c && …
	Lead []Word

	// Values are the literal texts that the line gives variables: D=/; rm -rf "$D".
	Values []string

	statements []*syntax.Stmt // of the text itself
	err        error          // why the text was not parsed whole

	foreign bool // an interpreter runs text that is not part of the line
	arrays  bool // a variable may be an array
}

// A Word is one argument, expanded as far as that needs nothing but the text.
type Word struct {
	// Text is the expanded value if Static, and the source of the word if not.
	Text string

	// Static reports whether Text is exactly what the program will be given
	// (but for the home directory, see Home).
	Static bool

	// Home reports that the shell puts the home directory in place of the
	// leading "~" of Text: `~/x`, and `$HOME/x`, which is given as "~/x".
	Home bool

	// Glob reports that the word is not static only because it is a pattern
	// that the shell replaces by file names; Text is the pattern.
	Glob bool

	// Obeyed reports that a shell runs the file of this name: it is an operand, not the target of a redirection.
	Obeyed bool

	// Led says which directory the target of a redirection is relative to, see Simple.
	Led int

	single bool   // the shell makes exactly one word of it
	prefix string // text every resulting word begins with, if known
}

// Stream reports whether the word begins with <(…), what a command of the text prints. Nothing lies below that name.
func (w Word) Stream() bool { return w.single && !w.Static && strings.HasPrefix(w.Text, "<(") }

// MayBeOption reports whether a program may take the word, or a part that it
// is split into, for an option.
func (w Word) MayBeOption() bool {
	if w.Static {
		return len(w.Text) > 1 && w.Text[0] == '-'
	}
	return w.prefix == "" || w.prefix[0] == '-' || !w.single && !w.Glob
}

// hidesOption reports whether a word that is not known may be an option.
func hidesOption(w Word) bool { return !w.Static && w.MayBeOption() }

// A Simple is one command that may run: a program and its words.
type Simple struct {
	// Name is the base name of the program ("rm" for /bin/rm), or "" when it is
	// not known before the command runs.
	Name string

	// Args holds the words; Args[0] is the program as given. A word that another
	// program supplies (xargs, find) is "{}" and not static.
	Args []Word

	// Outer is the index in Analysis.Commands of the command that runs this one, such as sudo or bash -c, or -1.
	Outer int

	// Text is the words joined by single spaces, quotes and escapes resolved,
	// without assignments.
	Text string

	// Source is the command as it was written, assignments included, with
	// single spaces between its words and without redirections. After a
	// wrapper it is Text.
	Source string

	// Undecidable holds those reasons of the Analysis that come from this
	// command alone: what an allow rule for just this program would accept.
	Undecidable []string

	// Led is one more than how many of the Lead lead to the directory of the command, if the line has no other change of
	// directory; 0 if that is not known.
	Led int

	purpose     []string // reasons that lie in what the program is made for, see Interprets
	spellings   [][]Word // other words that mean the same, see Spellings
	transparent bool     // adds nothing to what the inner command does
	Local       bool     // calls a function whose body is in the text
}

// Forms returns the texts that a deny or ask rule is matched against: as
// written, expanded, with the program's base name for its path, and with
// options left out that stand between a program and its subcommand
// (`git -C dir push` is also `git push`).
func (c Simple) Forms() []string {
	forms := []string{c.Text}
	for _, words := range c.Spellings() {
		for _, form := range append([]string{join(words)}, shortForms(path.Base(words[0].Text), words)...) {
			forms = appendNew(forms, form)
		}
	}
	if c.Name != "" && len(c.Args) > 0 && c.Args[0].Text != c.Name {
		forms = append(forms, c.Name+strings.TrimPrefix(c.Text, c.Args[0].Text))
	}
	if c.Source != c.Text {
		forms = append(forms, c.Source)
	}
	return forms
}

// Deletes reports whether the command is a find that removes what it finds.
func (c Simple) Deletes() bool {
	return oneOf(c.Name, "find gfind bfs") && slices.ContainsFunc(c.Args, func(w Word) bool { return w.Text == "-delete" })
}

// Interprets reports whether the command is undecidable only because its program does what it is made for: it runs
// text or a file of its own. An allow rule that names this program accepts that.
func (c Simple) Interprets() bool {
	other := func(reason string) bool { return !slices.Contains(c.purpose, reason) }
	return len(c.Undecidable) > 0 && !slices.ContainsFunc(c.Undecidable, other)
}

func isOption(text string) bool { return text != "" && text[0] == '-' }

// These reasons are treated differently from the others.
const (
	setsPrefix  = "sets "
	moreReasons = "more, which are not listed"

	unknownProgram = "the name of the program is not known before it runs: "
)

// Dynamic reports whether any argument is unknown before the command runs, so
// that a rule about arguments may miss what it looks for.
func (c Simple) Dynamic() bool {
	return slices.ContainsFunc(c.Args, func(w Word) bool { return !w.Static })
}

// Beginning returns the words before the first that is known only when the command runs, joined by spaces.
func (c Simple) Beginning() string {
	end := slices.IndexFunc(c.Args, func(w Word) bool { return !w.Static })
	if end < 0 {
		return c.Text
	}
	return join(c.Args[:end])
}

// SafeAssigns reports whether none of the variables that the command is given can change which program runs or what it
// runs in turn, so that an allow rule for the command covers it.
func (c Simple) SafeAssigns() bool {
	return !slices.ContainsFunc(c.Undecidable, func(reason string) bool {
		return reason == moreReasons || strings.HasPrefix(reason, setsPrefix)
	})
}
