package command

import (
	"slices"
	"strings"
)

// launcherOf returns the words of a program that make it start another one.
func launcherOf(name string) (record, bool) {
	if tool, version, ok := strings.Cut(name, "-"); ok && strings.Trim(version, "0123456789.") == "" {
		name = tool // gcc-13
	}
	return recordOf("launchers", name)
}

// readLauncher makes a command undecidable whose arguments start another program, or may do so
// by a word that is not known.
func readLauncher(w *walker, c Simple) {
	l, ok := launcherOf(c.Name)
	if !ok {
		return
	}
	c.Args = slices.Clone(c.Args)
	for i, word := range c.Args {
		if !word.Static && l.pins(word) {
			c.Args[i] = fixed(word.prefix)
		}
	}
	p := l.parse(c.Args)
	hidden := func(word Word) bool {
		return hidesOption(word) && !l.flags["files"] && (!word.Glob || l.flags["globs"])
	}
	input := func(word Word) bool { return word.Text == "-" || strings.HasPrefix(word.Text, "/dev/") }
	switch {
	case slices.ContainsFunc(c.Args[1:], hidden):
		w.undecided(true, c.Name+" with a word that may be an option")
	case p.hasStartOf(l.lists["launch"]), namesLaunch(l, c, p),
		l.flags["cluster"] && len(c.Args) > 1 && !isOption(c.Args[1].Text) && strings.ContainsAny(c.Args[1].Text, "IF"),
		oneOf(c.Name, "make gmake") && slices.ContainsFunc(p.values("f file makefile"), input):
		w.undecided(true, c.Name+" starts a program that its words name")
	}
}

// pins reports whether a word that is not known is surely one option with its value: make -j$(nproc), --jobs="$n".
func (r record) pins(word Word) bool {
	name, long := strings.CutPrefix(word.prefix, "--")
	if long {
		return strings.Contains(name, "=")
	}
	s := spec{short: r.lists["short"]}
	return len(word.prefix) == 2 && word.prefix[0] == '-' && s.shortTakes(word.prefix[1]) > 0
}

// namesLaunch reports whether a word of a command starts a program, or sets what later ones start, see tables.txt.
func namesLaunch(l record, c Simple, p parsed) bool {
	first := ""
	if len(p.operands) > 0 {
		first = p.operands[0].Text + ":"
	}
	for _, word := range c.Args[1:] {
		for field := range strings.FieldsSeq(l.lists["words"]) {
			prefix := field[0] == '-' || field[0] == '@' || strings.HasSuffix(field, "=")
			if oneOf(field, word.Text+" "+first+word.Text) || prefix && strings.HasPrefix(word.Text, field) {
				return true
			}
		}
	}
	looked := c.Args[1:]
	if options := l.lists["in"]; options != "" {
		looked = p.values(options)
	}
	return slices.ContainsFunc(looked, func(word Word) bool {
		return containsOneOf(strings.ToLower(word.Text), l.lists["contains"])
	})
}

// containsOneOf reports whether a text contains an element of a list.
func containsOneOf(text, list string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(part string) bool { return strings.Contains(text, part) })
}

// runners are programs that run a command with the tools of a project. The project runners of tables.txt do so by a
// subcommand of runVerbs; with npm, pnpm and yarn, "run" runs a script of the project, which is no program.
const (
	runners  = "npx bunx pnpx uvx cross-env dotenv dotenvx"
	runVerbs = "exec x dlx run tool do"
)

// runner returns the indexes of the words at which the command may begin that a program runs with the tools of a
// project (npx, uv run, bundle exec …). A word after an option may be its value, or the program: both are examined.
func runner(c Simple) (starts []int) {
	running := oneOf(c.Name, runners)
	if !running && !listed("project runners", c.Name) {
		return nil
	}
	option, found := false, false
	for i, word := range c.Args[1:] {
		switch {
		case word.Static && word.Text == "--":
			if running && i+2 < len(c.Args) {
				starts = append(starts, i+2)
			}
			return starts
		case found:
		case word.Static && isOption(word.Text):
			option = !strings.Contains(word.Text, "=") && !oneOf(word.Text, "-y --yes -q --quiet -s --silent")
		case word.Static && oneOf(word.Text, runVerbs) && !(word.Text == "run" && oneOf(c.Name, "npm pnpm yarn")) &&
			(!running || oneOf(c.Name, "uv dotenv dotenvx")):
			running, option = true, false
		case !running:
			if !option && !(c.Name == "yarn" && strings.HasPrefix(word.Text, "workspace")) &&
				!(c.Name == "yarn" && i > 0 && strings.HasPrefix(c.Args[i].Text, "workspace")) {
				return nil
			}
			option = false
		case word.Static && strings.Contains(word.Text, "="):
		default:
			starts = append(starts, i+1)
			found, option = !option && !oneOf(c.Name, "direnv nvm rvm mise opam dotenv"), false
		}
	}
	return starts
}

// readRunner examines the commands that a runner may run. Such a command usually is a program of the project, which
// an allow rule for the runner is meant to cover; a deny rule for that program sees it as a spelling of the runner's
// command. Programs that this package knows are listed on their own.
func readRunner(w *walker, c Simple, starts []int) {
	args := c.Args
	c.Args = args[:starts[0]] // the options after that are the inner program's
	readLauncher(w, c)
	for _, first := range starts {
		inner := args[first:]
		if !inner[0].Static {
			w.undecided(true, c.Name+" runs a program whose name is not known: "+inner[0].Text)
			return
		}
		w.out.Commands[w.current].spelled(inner)
		if Known(inner[0].Text) {
			w.inner(c.Name, inner, nil, nil)
		}
	}
}
