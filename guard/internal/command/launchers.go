package command

import "strings"

// A launcher is a program that starts another one only if an option says so.
type launcher struct {
	short  string // options with values, which must be distinguished from options
	launch string // options, or starts of them, that start a program
	words  string // words, or starts of options, for programs without getopt
}

// launcherOf returns the options of a program that start other programs.
func launcherOf(name string) (launcher, bool) {
	if tool, version, ok := strings.Cut(name, "-"); ok && strings.Trim(version, "0123456789.") == "" {
		name = tool // gcc-13
	}
	l, ok := table().launchers[name]
	return l, ok
}

// setsUp reports whether a word of the command sets what it, or its next call, runs.
func setsUp(c Simple, i int) bool {
	text := c.Args[i].Text
	switch c.Name {
	case "go":
		return strings.Contains(text, "-extld") || text == "-w" && i > 1 && c.Args[1].Text == "env"
	case "gh":
		return i == 1 && oneOf(text, "alias extension extensions ext codespace cs") || i == 2 && text == "set" && c.Args[1].Text == "config"
	case "aws":
		return strings.Contains(text, "credential_process")
	case "ssh", "scp", "sftp": // -o ProxyCommand=x, in any case of letters
		text = strings.ToLower(text)
		return (strings.HasPrefix(text, "-o") || c.Args[i-1].Text == "-o") && (strings.Contains(text, "command") || strings.Contains(text, "include") || strings.Contains(text, "provider"))
	}
	return false
}

// readLauncher makes a command undecidable whose arguments start another program, or may do so
// by a word that is not known.
func readLauncher(w *walker, c Simple) {
	l, ok := launcherOf(c.Name)
	if !ok && !oneOf(c.Name, "gh aws") {
		return
	}
	p := spec{short: l.short, permute: true, open: true}.parse(c.Args)
	for i, word := range c.Args[1:] {
		switch {
		// The options of curl and diff make them read and write files, no more.
		case !word.Static && word.MayBeOption() && !oneOf(c.Name, "curl diff") && (!word.Glob || oneOf(c.Name, "tar gtar bsdtar zip rsync")):
			w.undecided(true, c.Name+" with a word that may be an option: "+word.Text)
			return
		case i == 0 && oneOf(c.Name, "tar gtar bsdtar") && !isOption(word.Text) && strings.ContainsAny(word.Text, "IF"),
			namesLaunch(word.Text, l.words), setsUp(c, i+1),
			oneOf(c.Name, "make gmake") && (strings.ContainsAny(word.Text, "`$") || oneOf(c.Args[i].Text, "-f --file --makefile") && (word.Text == "-" || strings.HasPrefix(word.Text, "/dev/"))):
			w.undecided(true, c.Name+" starts a program that its words name: "+word.Text)
			return
		}
	}
	if l.launch != "" && p.hasStartOf(l.launch) {
		w.undecided(true, c.Name+" starts a program that an option names")
	}
	if oneOf(c.Name, "npm pnpm yarn") && len(p.operands) > 1 && (p.operands[0].Text == "set" || oneOf(p.operands[0].Text, "config c") && oneOf(p.operands[1].Text, "set edit")) {
		w.undecided(true, c.Name+" config can set what runs its scripts")
	}
}

// namesLaunch reports whether a word is in list, or starts with an element of
// it that is an option or a variable; "@=" stands for a file of options.
func namesLaunch(word, list string) bool {
	for field := range strings.FieldsSeq(list) {
		prefix := field[0] == '-' || strings.HasSuffix(field, "=")
		if field == "@=" {
			field = "@"
		}
		if word == field || prefix && strings.HasPrefix(word, field) {
			return true
		}
	}
	return false
}

// runners are programs that run a command with the tools of a project, and
// the project runners of tables.txt do so by a subcommand of runVerbs. npm, pnpm and yarn run a
// script of their project by "run", which is no program.
const (
	runners  = "npx bunx pnpx uvx cross-env dotenv dotenvx"
	runVerbs = "exec x dlx run tool do"
)

// runner returns where in the words of a program the command may begin that it runs with the
// tools of a project (npx, uv run, bundle exec …). A word after an option may be its value, or
// the program: both are looked at.
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
		case word.Static && oneOf(word.Text, runVerbs) && !(word.Text == "run" && oneOf(c.Name, "npm pnpm yarn")) && (!running || oneOf(c.Name, "uv dotenv dotenvx")):
			running, option = true, false
		case !running:
			if !option && !(c.Name == "yarn" && strings.HasPrefix(word.Text, "workspace")) && !(c.Name == "yarn" && i > 0 && strings.HasPrefix(c.Args[i].Text, "workspace")) {
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

// readRunner looks at the commands that a runner may run. It is a program of the
// project as a rule, which the allow rule for the runner is meant for; a deny rule
// sees it as a form of the runner. Programs of the system are listed on their own.
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
