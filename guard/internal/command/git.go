package command

import (
	"slices"
	"strings"
)

// gitExecutes are the options of any subcommand of git that start a program.
const gitExecutes = "upload-pack receive-pack exec ext-diff open-files-in-pager extcmd"

// gitSpec lists the options of git before its subcommand that run nothing, and those that
// gitSubcommand judges.
var gitSpec = spec{short: "C:c:Pvh", long: "config-env: exec-path:: git-dir: work-tree: bare namespace: super-prefix: list-cmds: attr-source: no-pager no-replace-objects " +
	"literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs no-optional-locks no-advice no-lazy-fetch version help html-path man-path info-path"}

// gitSubcommand returns the index of the subcommand, and why the options before
// it could run something: configuration given on the command line, or another
// directory's.
func gitSubcommand(c Simple) (index int, reason string) {
	p := gitSpec.parse(c.Args)
	for _, o := range p.options {
		if oneOf(o.name, "config-env git-dir work-tree bare") || o.name == "exec-path" && o.has || o.name == "c" &&
			!harmlessKey(o.value) {
			reason = "git with option " + o.name + " can run commands by its configuration"
		}
	}
	switch {
	case p.unsure != "":
		reason = "git: " + p.unsure
	case p.rest < len(c.Args) && !c.Args[p.rest].Static:
		reason = "git with a subcommand that is not known before it runs"
	}
	return p.rest, reason
}

// harmlessKey reports whether the value of git -c only sets the look of output, or the author of
// commits.
func harmlessKey(word Word) bool {
	name, value, _ := strings.Cut(word.Text, "=")
	name = strings.ToLower(name)
	section, key, _ := strings.Cut(name, ".")
	return word.Static && (oneOf(section, "color advice column") || (section == "pager" || name == "core.pager") &&
		oneOf(value, "cat false") || key != "" && listed("git data", name))
}

// gitProgram returns the subcommand that a program such as git-push stands for, or "?".
func gitProgram(name string) string {
	if sub, ok := strings.CutPrefix(name, "git-"); ok && (listed("git", sub) || listed("git scripts", sub)) {
		return sub
	}
	return "?"
}

func fixed(text string) Word { return Word{Text: text, Static: true, single: true} }

// A gitCall is a subcommand of git with its words.
type gitCall struct {
	name   string
	args   []Word // the name and the words after it
	words  []Word // the words after the name, up to "--"
	first  string // the word after the name, "" if there is none
	record        // what tables.txt says of the subcommand
	parsed
}

// gitCallOf returns the subcommand of a command of git, if it is known.
func gitCallOf(c Simple) (g gitCall, ok bool) {
	index, _ := gitSubcommand(c)
	if index >= len(c.Args) || !c.Args[index].Static {
		return g, false
	}
	g.args = c.Args[index:]
	g.name, g.words = g.args[0].Text, g.args[1:]
	g.record, _ = recordOf("git subcommands", g.name)
	g.parsed = g.parse(g.args)
	if end := slices.IndexFunc(g.words, func(w Word) bool { return w.Text == "--" }); end >= 0 {
		g.words = g.words[:end]
	}
	if len(g.args) > 1 {
		g.first = g.args[1].Text
	}
	return g, true
}

// readGit judges the options of git that run commands. What a repository's own
// configuration runs (pager, hooks, fsmonitor, filters) is not in the words;
// the guard keeps that configuration clean.
func readGit(w *walker, c Simple) {
	index, reason := gitSubcommand(c)
	if reason != "" {
		w.undecided(true, reason)
	}
	g, ok := gitCallOf(c)
	if !ok {
		return
	}
	cur := &w.out.Commands[w.current]
	if index > 1 {
		cur.spelled(append([]Word{fixed("git")}, g.args...))
	}
	verbs, limited := g.lists["verbs"]
	switch {
	case !listed("git", g.name):
		w.undecided(true, "git "+g.name+" may be an alias, or runs commands")
	case g.hasStartOf(gitExecutes + " " + g.lists["runs"]):
		w.undecided(true, "git "+g.name+" with an option that can run commands")
	case limited && len(g.args) > 1 && !oneOf(g.first, verbs):
		w.undecided(true, "git "+g.name+" "+g.first+" runs commands")
	case g.name == "config" && g.configures():
		w.undecided(true, "git config can set commands that git will run")
	}
	for _, word := range g.words {
		// An option that runs something must be one word that starts with "-".
		hidden := hidesOption(word) && !word.Glob && g.flags["hides"]
		if hidden || strings.HasPrefix(word.Text, "ext::") || strings.HasPrefix(word.Text, "fd::") {
			w.undecided(true, "git "+g.name+" "+word.Text+" can run commands")
		}
	}
}

// isStartOfOneOf reports whether text is the start of an element of list.
func isStartOfOneOf(text, list string) bool { return strings.Contains(" "+list, " "+text) }

// listing are the words with which `git config` shows settings.
const listing = "--get --get-all --get-regexp --get-urlmatch --list -l"

// configures reports whether `git config` may set something else than data, or use another file than git's own.
func (g gitCall) configures() bool {
	operands := g.operands
	dynamic := func(w Word) bool { return !w.Static }
	if g.first == "edit" || g.hasStartOf("e edit f file blob") || slices.ContainsFunc(g.words, dynamic) {
		return true
	}
	if len(operands) > 0 && oneOf(operands[0].Text, "set get list") {
		operands = operands[1:]
	}
	shows := oneOf(g.first, "get list") || slices.ContainsFunc(g.words, func(w Word) bool { return oneOf(w.Text, listing) })
	return !shows && len(operands) != 1 && (len(operands) == 0 || !listed("git data", strings.ToLower(operands[0].Text)))
}
