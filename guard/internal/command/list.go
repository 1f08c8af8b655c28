package command

import (
	"path"
	"slices"
	"strings"
)

// Lister returns the command whose output xargs is given, through filters that let lines
// pass as they are.
func (a *Analysis) Lister(xargs Simple) (Simple, bool) {
	if !oneOf(xargs.Name, "xargs gxargs") || wrapperOptionsOf(xargs).has("a arg-file") {
		return Simple{}, false
	}
	for at := xargs.from; at > 0; {
		c := a.Commands[at-1]
		if !filters(c) {
			return c, true
		}
		at = c.from
	}
	return Simple{}, false
}

// SplitsLines reports whether xargs takes what it reads apart at blanks, not only where a
// name ends.
func (c Simple) SplitsLines() bool {
	return !wrapperOptionsOf(c).has("0 null")
}

// wrapperOptionsOf are the options of a program that runs the command in its words.
func wrapperOptionsOf(c Simple) parsed {
	wr, _ := wrapperOf(c.Name)
	return wr.parse(c.Args)
}

// onlyPasses tells the options and operands of a command, and whether the table of filters has it with all of these
// options: it prints lines of its input, or names, and nothing else.
func onlyPasses(c Simple) (p parsed, ok bool) {
	filter, ok := recordOf("filters", c.Name)
	program, _ := recordOf("programs", c.Name)
	p = program.parse(c.Args)
	other := func(o option) bool { return !oneOf(o.name, filter.lists["options"]) }
	return p, ok && !slices.ContainsFunc(p.options, other) && !slices.ContainsFunc(c.Args[1:], hidesOption)
}

// filters reports whether a command prints some of the lines that it is given, and
// nothing else.
func filters(c Simple) bool {
	_, ok := onlyPasses(c)
	files, _ := tablePaths(c)
	return ok && c.from > 0 && c.Name != "ls" && len(files) == 0
}

// Lists returns the directories and files that a command prints names from, one a line or
// each followed by NUL, and which of them it prints. It prints nothing else.
func (c Simple) Lists() (starts []Word, match func(name string, link bool) bool, ok bool) {
	all := func(string, bool) bool { return true }
	here := []Word{fixed(".")}
	switch c.Name {
	case "find", "gfind":
		starts, _ = findPaths(c)
		return starts, findMatch(c), findPrints(c)
	case "git":
		_, reason := gitSubcommand(c)
		g, _ := gitCallOf(c)
		if reason != "" || g.name != "ls-files" {
			return nil, nil, false
		}
		for _, word := range g.args[1:] {
			option := isOption(word.Text) && !oneOf(word.Text, "-z -m -o -c --others --cached --modified --exclude-standard --")
			if option || leadsOut(word) || !word.Static && !word.Glob || strings.HasPrefix(word.Text, ":") {
				return nil, nil, false
			}
		}
		return here, all, true
	case "ls":
		p, ok := onlyPasses(c)
		return here, all, ok && len(p.operands) == 0
	case "grep", "egrep", "fgrep", "rg":
		r, _ := recordOf("programs", c.Name)
		p := r.parse(c.Args)
		if !p.has("l files-with-matches L files-without-match files") || p.has("c count H h n with-filename") {
			return nil, nil, false
		}
		if starts, _ = tablePaths(c); len(starts) == 0 {
			starts = here
		}
		return starts, all, true
	}
	return nil, nil, false
}

// findPrints reports whether find prints the names that it finds and nothing else.
func findPrints(c Simple) bool {
	return !slices.ContainsFunc(c.Args[1:], func(word Word) bool {
		return oneOf(word.Text, "-printf -ls -fprint -fprint0 -fprintf -fls -files0-from -L -follow -H")
	})
}

// findMatch returns the test that all that find finds has passed: of -name and -type f, if
// nothing makes them but one of several.
func findMatch(c Simple) func(name string, link bool) bool {
	pattern, files := "", false
	for i, word := range c.Args[1:] {
		if oneOf(word.Text, "-o -or -not ! ,") {
			return func(string, bool) bool { return true }
		}
		if i+2 == len(c.Args) || !c.Args[i+2].Static {
			continue
		}
		switch next := c.Args[i+2].Text; {
		case word.Text == "-exec":
			return matchFound(pattern, files)
		case word.Text == "-name" && pattern == "":
			pattern = next
		case word.Text == "-type":
			files = files || next == "f"
		}
	}
	return matchFound(pattern, files)
}

func matchFound(pattern string, files bool) func(name string, link bool) bool {
	return func(name string, link bool) bool {
		ok, err := path.Match(pattern, name)
		return (ok || err != nil || pattern == "") && !(files && link)
	}
}
