package command

import (
	"slices"
	"strings"
)

// gitExecutes are the options of any subcommand of git that start a program.
const gitExecutes = "upload-pack receive-pack exec ext-diff open-files-in-pager extcmd"

// gitSpec lists the options of git before its subcommand that run nothing, and those that
// gitSubcommand judges.
var gitSpec = spec{short: "C:c:Pvh", long: "config-env: exec-path:: git-dir: work-tree: bare namespace: " +
	"super-prefix: list-cmds: attr-source: no-pager no-replace-objects " +
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

func fixed(text string) Word { return Word{Text: text, Static: true, single: true} }

// readGit judges the options of git that run commands. What a repository's own
// configuration runs (pager, hooks, fsmonitor, filters) is not in the words;
// the guard keeps that configuration clean.
func readGit(w *walker, c Simple) {
	index, reason := gitSubcommand(c)
	if reason != "" {
		w.undecided(true, reason)
	}
	if index >= len(c.Args) || !c.Args[index].Static {
		return
	}
	args := c.Args[index:]
	name, words := args[0].Text, args[1:]
	of, _ := recordOf("git subcommands", name)
	p := of.parse(args)
	verbs, limited := of.lists["verbs"]
	if !listed("git", name) || p.hasStartOf(gitExecutes+" "+of.lists["runs"]) ||
		limited && len(words) > 0 && !oneOf(words[0].Text, verbs) || name == "config" && configures(p, words) {
		w.undecided(true, "git "+name+" may be an alias, or run commands")
	}
	if end := slices.IndexFunc(words, func(w Word) bool { return w.Text == "--" }); end >= 0 {
		words = words[:end]
	}
	for _, word := range words {
		// An option that runs something must be one word that starts with "-".
		hidden := hidesOption(word) && !word.Glob && of.flags["hides"]
		if hidden || strings.HasPrefix(word.Text, "ext::") || strings.HasPrefix(word.Text, "fd::") {
			w.undecided(true, "git "+name+" "+word.Text+" can run commands")
		}
	}
}

// isStartOfOneOf reports whether text is the start of an element of list.
func isStartOfOneOf(text, list string) bool { return strings.Contains(" "+list, " "+text) }

// configures reports whether `git config` may set something else than data, or use another file than git's own.
func configures(p parsed, words []Word) bool {
	const listing = "--get --get-all --get-regexp --get-urlmatch --list -l"
	operands := p.operands
	if len(operands) > 1 && oneOf(operands[0].Text, "set get list") {
		operands = operands[1:]
	}
	shows := len(words) > 0 && oneOf(words[0].Text, "get list") ||
		slices.ContainsFunc(words, func(w Word) bool { return oneOf(w.Text, listing) })
	data := len(operands) > 0 && listed("git data", strings.ToLower(operands[0].Text))
	return p.hasStartOf("e edit f file blob") || slices.ContainsFunc(words, func(w Word) bool { return !w.Static }) ||
		!shows && !data && (len(operands) != 1 || oneOf(operands[0].Text, "edit set"))
}
