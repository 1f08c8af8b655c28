package command

import "strings"

// A Script says where to find the text that a command runs but does not show.
type Script struct {
	// File names the file. If it is the zero Word, the file is one of Names in the directory of the command, or in Dir,
	// relative to that directory.
	File  Word
	Names []string
	Dir   Word // the zero Word: none
	// Entry is the name of the script in a manifest that the command runs, such as "build". The manifest is in the
	// directory of the command or above it.
	Entry string
	// Program says that File is the program itself, which may be no text.
	Program bool
}

// Script returns where the text is that the command runs. ok is false if it runs none, or if its words do not surely
// tell which.
func (c Simple) Script() (s Script, ok bool) {
	if len(c.Args) == 0 || c.Name == "" || !c.Args[0].Static && !c.Args[0].Home {
		return Script{}, false
	}
	name := c.Name
	if _, listed := recordOf("script runners", name); !listed {
		name = strings.TrimRight(name, "0123456789.")
	}
	r, runs := recordOf("script runners", name)
	switch {
	case runs:
		return r.script(c)
	case oneOf(c.Name, ". source") && len(c.Args) > 1 && strings.Contains(c.Args[1].Text, "/"): // else PATH comes first
		return Script{File: c.Args[1]}, c.Args[1].named()
	case oneOf(c.Name, "make gmake"):
		return makefile(c)
	case oneOf(c.Name, "npm pnpm yarn bun"):
		return manifestScript(c)
	case strings.Contains(c.Args[0].Text, "/"):
		return Script{File: c.Args[0], Program: true}, true
	}
	return Script{}, false
}

// script returns the file that the first operand of an interpreter names.
func (r record) script(c Simple) (Script, bool) {
	p := spec{short: r.lists["short"], long: r.lists["long"]}.parse(c.Args)
	if p.unsure != "" || len(p.operands) == 0 || !p.operands[0].named() {
		return Script{}, false
	}
	first := p.operands[0]
	return Script{File: first}, first.Text != "-" && first.Text[0] != '+'
}

// named reports whether the text of a word is the name of a file.
func (w Word) named() bool { return (w.Static || w.Home) && w.Text != "" }

// makefile returns the file that make reads first.
func makefile(c Simple) (Script, bool) {
	p := spec{short: "C:f:I:j::l::o:W:Behiknpqrstvwdb", long: "file: makefile: directory:", permute: true}.parse(c.Args)
	files, dirs := p.values("f file makefile"), p.values("C directory")
	if p.unsure != "" || len(files) > 1 || len(dirs) > 1 {
		return Script{}, false
	}
	s := Script{Names: strings.Fields("GNUmakefile makefile Makefile")}
	if len(dirs) == 1 {
		s.Dir = dirs[0]
	}
	if len(files) == 1 {
		s.Names = []string{files[0].Text}
	}
	for _, w := range append(files, dirs...) {
		if !w.Static || w.Text == "" || w.Text == "-" {
			return Script{}, false
		}
	}
	return s, true
}

// manifestScript returns the script of package.json that npm and its kin run.
func manifestScript(c Simple) (Script, bool) {
	words := c.Args[1:]
	run := len(words) > 1 && oneOf(words[0].Text, "run run-script")
	if run {
		words = words[1:]
	}
	if c.Dynamic() || len(words) == 0 || isOption(words[0].Text) { // the option may name another directory
		return Script{}, false
	}
	entry := words[0].Text
	if !run && !oneOf(c.Name, "yarn pnpm") && !(c.Name == "npm" && oneOf(entry, "test start stop restart")) {
		return Script{}, false
	}
	for _, w := range words {
		if w.Text == "--" || c.Name == "yarn" {
			break
		}
		if isOption(w.Text) {
			return Script{}, false
		}
	}
	return Script{Names: []string{"package.json"}, Entry: entry}, true
}
