package command

import (
	"path"
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
// subcommand of runVerbs; with npm, pnpm, yarn and mise, "run" runs a script of the project, which is no program.
const (
	runners  = "npx bunx pnpx uvx cross-env dotenv dotenvx"
	runVerbs = "exec x dlx run tool do"
)

// runs returns the index of the word after which a command names the program that it runs with the tools of a project:
// npx, uv run, bundle exec. It returns -1 if it runs none.
func runs(c Simple) int {
	if oneOf(c.Name, runners) {
		return 0
	}
	for i, word := range c.Args {
		if i == 0 || !listed("project runners", c.Name) {
			continue
		}
		before := c.Args[i-1].Text // an option or "workspace", whose value the word may be
		switch {
		case oneOf(word.Text, runVerbs) && !(word.Text == "run" && oneOf(c.Name, "npm pnpm yarn mise")):
			return i
		case !isOption(before) && !isOption(word.Text) && before != "workspace" && word.Text != "workspace":
			return -1
		}
	}
	return -1
}

// readRunner takes the words at which the program of a runner may begin for other spellings of the command: those after
// an option, which may be its value, and the first one else; for some runners that names a version or a directory. The
// program is judged when it starts; a tool of the project is no more hidden than what make runs.
func readRunner(w *walker, c Simple, words []Word) {
	names := oneOf(c.Name, "direnv nvm rvm mise opam dotenv")
	hiding, operands := false, 0
	for i, word := range words {
		before := ""
		if i > 0 {
			before = words[i-1].Text
		}
		found := operands > 1 || operands == 1 && !names
		if found && !(names && before == "--") {
			continue
		}
		hiding = hiding || !word.Static || word.Text == "-c" || strings.HasPrefix(word.Text, "--call")
		if isOption(word.Text) || oneOf(word.Text, runVerbs) {
			continue
		}
		hiding = hiding || w.hides(words[i:])
		w.out.Commands[w.current].spelled(words[i:])
		value := isOption(before) && !strings.Contains(before, "=") && !oneOf(before, "-- -y --yes -q --quiet -s --silent")
		if !value {
			operands++
		}
	}
	w.undecided(hiding, c.Name+" "+startsOthers)
}

// hides reports whether a command that a runner starts may start a program that is not the first of its words, or
// handles files that its words name.
func (w *walker) hides(words []Word) bool {
	name, _, version := strings.Cut(words[0].Text, "@")
	_, handles := recordOf("programs", path.Base(name))
	sub := walker{out: &Analysis{}, outer: -1, current: -1, depth: max(w.depth+1, maxDepth)} // not another runner
	sub.simple(Simple{Args: words, Outer: -1}, nil)
	return handles || version && Known(name) || sub.out.Hiding || len(sub.out.Commands) > 1
}
