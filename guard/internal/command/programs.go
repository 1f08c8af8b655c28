package command

import (
	"path"
	"slices"
	"strings"
)

// Known reports whether a name means something to this package, so that a
// function of that name would mislead it.
func Known(name string) bool {
	name = path.Base(name)
	_, described := recordOf("programs", name)
	_, wraps := wrapperOf(name)
	_, launches := launcherOf(name)
	return described || wraps || launches || IsInterpreter(name) || listed("starters", name) ||
		oneOf(name, "bash sh dash ash rbash zsh ksh mksh fish csh tcsh . source alias enable hash bind complete compgen fc kill bfs original-awk "+
			"npx bunx pnpx uvx npm pnpm yarn bundle poetry pipenv uv")
}

// systemDirs are the directories whose programs are what their names say.
const systemDirs = "/bin /usr/bin /sbin /usr/sbin"

// ReadOnly reports whether the command belongs to the built-in set that only
// looks, with none of the options that write or start something. The files it
// is given are a question of their own: see [Simple.Paths].
//
// A wrapper that changes nothing by itself (timeout, xargs, bash -c of fixed
// text) is read-only: what it runs is a command of its own in the Analysis. So
// is a call of a function whose body is in the text.
func (c Simple) ReadOnly() bool {
	if c.Name == "" || len(c.Undecidable) > 0 || c.unsafeEnv {
		return false
	}
	if dir := path.Dir(c.Args[0].Text); c.Args[0].Text != c.Name && !oneOf(dir, systemDirs) {
		return false // ./ls can be any program
	}
	if c.transparent || c.Local {
		return true
	}
	p, _ := recordOf("programs", c.Name)
	if !p.flags["looks"] {
		return asksVersion(c) || reports(c)
	}
	switch c.Name {
	case "git":
		return gitLooks(c)
	case "find", "gfind":
		return findLooks(c)
	case "sed", "gsed":
		_, _, parsed := sedParse(c)
		return !parsed.has("i in-place")
	case "date":
		sets := func(w Word) bool { return !strings.HasPrefix(w.Text, "+") || !w.Static && !w.single }
		return !hasDanger(c, p) && !slices.ContainsFunc(p.parse(c.Args).operands, sets)
	case "jq", "strings":
		return !hasDanger(c, p) && !readsByItself(c)
	case "uniq", "xxd":
		many := func(w Word) bool { return !w.Static && !w.single }
		return len(p.parse(c.Args).operands) < 2 && !slices.ContainsFunc(c.Args[1:], many)
	}
	return !hasDanger(c, p)
}

// reports tells of programs that do nothing but say something when they are called so. Those
// that may be another program by what is in the workspace (cargo, yarn) are not among
// them.
func reports(c Simple) bool {
	args := texts(c.Args[1:])
	if len(args) > 1 && !slices.ContainsFunc(args[1:], isOption) {
		lists := strings.Contains(args[0], "t") && strings.Trim(args[0], "-tvzjJf") == ""
		if c.Name == "unzip" && args[0] == "-l" || c.Name == "tar" && lists {
			return true
		}
	}
	r, _ := recordOf("reports", c.Name)
	return len(args) == 0 && r.flags["nothing"] || len(args) == 1 && r.flags[args[0]]
}

// FollowsLinks reports whether a read-only command goes through the symbolic links
// that it meets below the directories it is given.
func (c Simple) FollowsLinks() bool {
	if c.Name == "find" || c.Name == "gfind" {
		return slices.ContainsFunc(c.Args[1:], func(w Word) bool { return oneOf(w.Text, "-L -follow") })
	}
	p, _ := recordOf("programs", c.Name)
	return p.lists["follow"] != "" && p.parse(c.Args).hasStartOf(p.lists["follow"])
}

// Recurses reports whether a read-only command may go into the directories that it is
// given.
func (c Simple) Recurses() bool {
	if oneOf(c.Name, "grep egrep fgrep") {
		p, _ := recordOf("programs", c.Name)
		return p.parse(c.Args).hasStartOf("r R recursive dereference-recursive d directories")
	}
	return !listed("flat", c.Name)
}

// readsByItself reports whether a word makes jq or strings read files that are not
// among its words: import "x" {search: "/d"}, and @file, which holds further words.
func readsByItself(c Simple) bool {
	return slices.ContainsFunc(c.Args[1:], func(word Word) bool {
		if c.Name == "jq" {
			return strings.Contains(word.Text, "import") || strings.Contains(word.Text, "include")
		}
		return strings.HasPrefix(word.Text, "@") || !word.Static && !word.single && word.prefix == ""
	})
}

// hasDanger reports whether an option that ends read-only is there, or may be:
// hidden in a dynamic word, or shortened.
func hasDanger(c Simple, p record) bool {
	danger := p.lists["danger"]
	return danger != "" && (slices.ContainsFunc(c.Args[1:], hidesOption) || p.parse(c.Args).hasStartOf(danger))
}

// findLooks reports whether find does nothing but print names, and run commands that
// are judged by themselves: not those that it runs in other directories.
func findLooks(c Simple) bool {
	for i, word := range c.Args[1:] {
		if hidesOption(word) && !listed("find takes", c.Args[i].Text) {
			return false
		}
		if word.Static && oneOf(word.Text, "-execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from") {
			return false
		}
	}
	return true
}
