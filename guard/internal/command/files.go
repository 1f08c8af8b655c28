package command

import (
	"path"
	"slices"
	"strings"
)

// Files returns the words that name files, for the programs of tables.txt that read or write what they are given; none
// for others. A word that is not static is returned too: which file it names is not known.
func (c Simple) Files() (reads, writes []Word) {
	p, ok := recordOf("programs", c.Name)
	if !ok || len(c.Args) == 0 {
		return nil, nil
	}
	args := p.parse(c.Args)
	files := args.operands
	reads, writes = args.values(p.lists["reads"]), args.values(p.lists["writes"])
	switch {
	case c.Name == "find" || c.Name == "gfind":
		return findStarts(c), nil
	case p.flags["pattern"]:
		changes := args.has(p.lists["changes"]) // sed -i; BSD's takes a suffix as a word of its own, which is empty as a rule
		if changes && len(files) > 0 && files[0].Static && files[0].Text == "" {
			files = files[1:]
		}
		if !args.has(p.lists["instead"]) && len(files) > 0 {
			files = files[1:]
		}
		if reads = append(reads, files...); changes {
			writes = append(writes, files...)
		}
	case p.flags["reads"]:
		reads = append(reads, files...)
	case p.flags["writes"]:
		writes = append(writes, files...)
	case p.flags["in-out"] && len(files) > 0:
		reads, writes = append(reads, files[0]), append(writes, files[1:]...)
	case p.is("copies moves"):
		if len(writes) == 0 && len(files) > 0 { // else -t names the directory
			files, writes = files[:len(files)-1], files[len(files)-1:]
		}
		reads = append(reads, files...)
		if p.flags["moves"] {
			writes = slices.Concat(writes, files)
		}
	}
	return reads, writes
}

// Copies reports whether the program copies, moves or links files, into a directory if it is given one.
func (c Simple) Copies() bool {
	p, _ := recordOf("programs", c.Name)
	return p.is("copies moves")
}

// ShowsContent reports whether the program shows the content of the files that it reads, or passes it on, not only
// their names.
func (c Simple) ShowsContent() bool {
	p, _ := recordOf("programs", c.Name)
	return !p.flags["names"]
}

// findStarts returns the starting points of find: the words before the first test.
func findStarts(c Simple) (starts []Word) {
	for _, word := range c.Args[1:] {
		if word.Static && oneOf(word.Text, "-H -L -P") {
			continue
		}
		if word.Static && word.Text != "" && strings.IndexByte("-(!", word.Text[0]) >= 0 {
			break
		}
		starts = append(starts, word)
	}
	return starts
}

// systemDirs are the directories whose programs are what their names say.
const systemDirs = "/bin /usr/bin /sbin /usr/sbin"

// ReadOnly reports whether the command is one of a short list that only reads what its literal words say, or says
// something about the machine. A wrapper that changes nothing by itself (timeout, bash -c of fixed text) is read-only:
// what it runs is a command of its own in the Analysis. So is a call of a function whose body is in the text.
func (c Simple) ReadOnly() bool {
	if c.Name == "" || len(c.Undecidable) > 0 {
		return false
	}
	if dir := path.Dir(c.Args[0].Text); c.Args[0].Text != c.Name && !oneOf(dir, systemDirs) {
		return false // ./ls can be any program
	}
	if c.transparent || c.Local || asksVersion(c) {
		return true
	}
	p, _ := recordOf("programs", c.Name)
	known := func(w Word) bool {
		return w.Static || w.Home || p.flags["says"] && saysNumber().MatchString(w.Text)
	}
	doubt := func(w Word) bool {
		return !known(w) || w.Static && outsideOption(w.Text) || oneOf(w.Text, p.lists["not"]) ||
			slices.ContainsFunc(strings.Fields(p.lists["within"]),
				func(part string) bool { return strings.Contains(w.Text, part) }) ||
			c.Name == "date" && !isOption(w.Text) && !strings.HasPrefix(w.Text, "+") // it sets the clock
	}
	danger := p.lists["danger"]
	return p.flags["looks"] && !slices.ContainsFunc(c.Args[1:], doubt) &&
		(danger == "" || !p.parse(c.Args).hasStartOf(danger))
}

// saysNumber matches a word that is literal except for shell parameters that hold numbers: "exit code: $?".
var saysNumber = regular(`^([^$*?[\x60]|\$[?#!])*$`)

// outsideOption reports whether an option has a value that may be a file outside of the directory: -f/etc/x,
// --file=../x.
func outsideOption(text string) bool {
	return isOption(text) && (strings.Contains(text, "/") || strings.Contains(text, "~"))
}

// Known reports whether a name means something to this package, so that a function of that name would mislead it.
func Known(name string) bool {
	name = path.Base(name)
	return listed("programs", name) || isWrapper(name) || isInterpreter(name) || IsBuiltin(name) ||
		oneOf(name, shells+" bfs git less more")
}

// Quote writes a text so that a shell takes it for one word that stands for itself.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
