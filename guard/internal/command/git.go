package command

import (
	"slices"
	"strconv"
	"strings"
)

// gitExecutes are options of subcommands that start a program, and gitWrites
// those that write a file or look outside the repository.
const (
	gitExecutes = "--upload-pack --receive-pack --exec --ext-diff --open-files-in-pager --extcmd"
	gitWrites   = "--output --textconv --filters --no-index --contents --output-directory --ignore-revs-file"
)

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
		if oneOf(o.name, "config-env git-dir work-tree bare") || o.name == "exec-path" && o.has || o.name == "c" && !harmlessKey(o.value) {
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

// harmlessKey reports whether the value of git -c says only how something looks, or who
// commits.
func harmlessKey(word Word) bool {
	name, value, _ := strings.Cut(word.Text, "=")
	name = strings.ToLower(name)
	section, key, _ := strings.Cut(name, ".")
	return word.Static && (oneOf(section, "color advice column") || (section == "pager" || name == "core.pager") && oneOf(value, "cat false") || key != "" && listed("git data", name))
}

// gitProgram returns the subcommand that a program of git's own directory is, or
// "?".
func gitProgram(name string) string {
	if sub, ok := strings.CutPrefix(name, "git-"); ok && (listed("git", sub) || listed("git scripts", sub)) {
		return sub
	}
	return "?"
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
	cur := &w.out.Commands[w.current]
	if index > 1 {
		cur.spelled(append([]Word{fixed("git")}, c.Args[index:]...))
		cur.enters(c.Args[1:index])
	}
	sub, rest := c.Args[index].Text, c.Args[index+1:]
	if !listed("git", sub) {
		w.undecided(true, "git "+sub+" may be an alias, or runs commands")
		return
	}
	for _, word := range rest {
		if word.Static && word.Text == "--" {
			break
		}
		if gitRuns(sub, word) {
			w.undecided(true, "git "+sub+" "+word.Text+" can run commands")
		}
	}
	readGitSub(w, sub, rest)
}

// enters follows git -C into the directories that it names.
func (c *Simple) enters(options []Word) {
	for i, word := range options {
		if word.Text != "-C" || i+1 == len(options) {
			continue
		}
		to := options[i+1]
		if !to.Static && !to.Home || c.Places == nil {
			c.moved, c.Places = true, nil
			return
		}
		places := make([]Place, 0, len(c.Places))
		for _, place := range c.Places {
			places = append(places, append(place[:len(place):len(place)], to))
		}
		c.Places = places
	}
}

// gitRuns reports whether a word makes a subcommand run a program. Git takes
// the start of a long option for it.
func gitRuns(sub string, word Word) bool {
	if !word.Static {
		// An option that runs something must be one word that starts with "-".
		return word.MayBeOption() && !word.Glob && oneOf(sub, "clone fetch pull push ls-remote archive rebase submodule bisect config grep")
	}
	text, _, _ := strings.Cut(word.Text, "=")
	switch {
	case strings.HasPrefix(word.Text, "ext::") || strings.HasPrefix(word.Text, "fd::"):
		return true
	case oneOf(sub, "merge pull rebase") && strings.HasPrefix(text, "-s"), len(text) > 6 && strings.HasPrefix("--strategy", text): // git-merge-NAME
		return true
	case len(text) > 2 && strings.HasPrefix(text, "--"):
		return isStartOfOneOf(text, gitExecutes) || oneOf(sub, "clone init") && isStartOfOneOf(text, "--config --template")
	case sub == "rebase" && len(text) > 1 && text[0] == '-' && strings.IndexByte("XsSC", text[1]) < 0:
		return strings.ContainsAny(text, "xi") // alone or in a cluster: -kix
	case sub == "grep":
		return clustered(text, "O", "eABCmf")
	case sub == "clone":
		return clustered(text, "uc", "objr")
	}
	return false
}

// clustered reports whether one of the letters is an option in a word such as -nO; those
// of takes end the cluster, because the rest is their value.
func clustered(text, letters, takes string) bool {
	if len(text) < 2 || text[0] != '-' || text[1] == '-' {
		return false
	}
	for _, c := range text[1:] {
		switch {
		case strings.ContainsRune(letters, c):
			return true
		case strings.ContainsRune(takes, c):
			return false
		}
	}
	return false
}

// isStartOfOneOf reports whether text is the start of an element of list.
func isStartOfOneOf(text, list string) bool { return strings.Contains(" "+list, " "+text) }

// readGitSub judges the subcommands whose own subcommands run things.
func readGitSub(w *walker, sub string, rest []Word) {
	first := ""
	if len(rest) > 0 {
		first = rest[0].Text
	}
	switch {
	case sub == "bisect" && (first == "run" || len(rest) > 0 && !rest[0].Static),
		sub == "submodule" && !oneOf(first, "status summary init sync update add deinit set-url set-branch absorbgitdirs") && first != "",
		sub == "help" || sub == "maintenance" && first != "run":
		w.undecided(true, "git "+sub+" "+first+" runs commands")
	case sub == "config":
		if !gitReadsConfig(rest) && !gitHarmlessKey(rest) {
			w.undecided(true, "git config can set commands that git will run")
		}
	}
}

// gitReadsConfig reports whether the words of `git config` only read.
func gitReadsConfig(rest []Word) bool {
	operands := 0
	for i, word := range rest {
		switch {
		case !word.Static, i == 0 && oneOf(word.Text, "edit set unset rename-section remove-section"):
			return false
		case oneOf(word.Text, "--get --get-all --get-regexp --get-urlmatch --list -l"), i == 0 && oneOf(word.Text, "get list"):
			return true
		case oneOf(word.Text, "--global --local --system --worktree --show-origin --show-scope --bool --int --path --type --name-only -z --null"):
		case strings.HasPrefix(word.Text, "-"):
			return false
		default:
			operands++
		}
	}
	return operands == 1
}

// gitHarmlessKey reports whether `git config` sets a key whose value is data.
func gitHarmlessKey(rest []Word) bool {
	for _, word := range rest {
		switch {
		case !word.Static:
			return false
		case oneOf(word.Text, "--global --local --worktree --add --replace-all set"):
		default:
			return listed("git data", strings.ToLower(word.Text))
		}
	}
	return false
}

// gitLooks reports whether a git command only looks at its repository. Looking
// at another one is not read-only: its configuration runs.
func gitLooks(c Simple) bool {
	index, reason := gitSubcommand(c)
	if reason != "" || c.moved {
		return false
	}
	if index >= len(c.Args) {
		return true // git --version
	}
	sub, rest := c.Args[index].Text, c.Args[index+1:]
	if sub == "diff" && slices.ContainsFunc(rest, leadsOut) {
		return false // with a file outside of the repository it compares any two
	}
	for _, word := range rest {
		text, value, _ := strings.Cut(word.Text, "=")
		switch {
		case oneOf(sub, "blame annotate") && clustered(word.Text, "S", "LMC"): // a file of revisions
			return false
		case word.Static && text == "--":
			return listed("git looks", sub)
		case !word.Static && word.MayBeOption(),
			len(text) > 2 && strings.HasPrefix(text, "--") && isStartOfOneOf(text, gitWrites),
			len(text) > 2 && strings.HasPrefix("--submodule", text) && value == "diff", // runs git diff in any directory that history names
			sub == "grep" && clustered(text, "fO", "eABCm"):
			return false
		}
	}
	return listed("git looks", sub) || gitLists(sub, rest)
}

// ShowsGitSettings reports whether the command is one of git that shows its
// settings, or what follows from them.
func (c Simple) ShowsGitSettings() bool {
	index, _ := gitSubcommand(c)
	if c.Name != "git" || index >= len(c.Args) {
		return false
	}
	paths := func(w Word) bool { return !w.Static || w.Text == "--git-path" }
	sub := c.Args[index].Text
	return oneOf(sub, "config var") || sub == "rev-parse" && slices.ContainsFunc(c.Args[index:], paths)
}

// leadsOut reports whether a word may name a file outside of the directory that the
// command stands in.
func leadsOut(word Word) bool {
	text := word.Text
	return word.Home || strings.HasPrefix(text, "/") || text == ".." || strings.Contains(text, "../") || strings.HasSuffix(text, "/..") ||
		!word.Static && !word.Glob && word.prefix == ""
}

// gitLists reports whether a subcommand that can also change things is used in
// a form that lists.
func gitLists(sub string, rest []Word) bool {
	first := ""
	if len(rest) > 0 {
		first = rest[0].Text
	}
	switch sub {
	case "reflog":
		return first == "" || first == "show" || isOption(first)
	case "config":
		return gitReadsConfig(rest)
	case "symbolic-ref":
		return len(rest) == 1 && !isOption(first)
	}
	lister, ok := table().records["git listers "+sub]
	options := lister.lists["options"]
	return ok && (oneOf(first, lister.lists["first"]) || options != "" && onlyOptions(rest, options, lister.lists["listing"]))
}

// onlyOptions reports whether the words are options of allowed alone, or also
// operands once one of listing is among them.
func onlyOptions(words []Word, allowed, listing string) bool {
	operands, lists := false, false
	for _, word := range words {
		name, _, _ := strings.Cut(word.Text, "=")
		switch {
		case !word.Static || !strings.HasPrefix(name, "-"):
			operands = true
		case !oneOf(name, allowed):
			return false
		default:
			lists = lists || oneOf(name, listing)
		}
	}
	return !operands || lists
}

// gitPaths returns the files that the words of git make it write. What a branch, a
// patch or a stash holds is not in the words.
func gitPaths(c Simple) (writesTo []Word) {
	index, _ := gitSubcommand(c)
	if index >= len(c.Args) || !c.Args[index].Static {
		return nil
	}
	sub, options := c.Args[index].Text, spec{short: "o:", long: "output: output-directory: separate-git-dir: prefix: file:", permute: true, open: true}
	if sub == "config" {
		options.short = "f:"
	}
	p := options.parse(c.Args[index:])
	written := table().records["git writes "+sub]
	writesTo = p.values("output output-directory separate-git-dir " + written.lists["values"])
	if from, err := strconv.Atoi(written.lists["from"]); err == nil {
		writesTo = append(writesTo, p.operands[min(from, len(p.operands)):]...)
	}
	switch sub {
	case "checkout":
		return append(writesTo, p.operands[max(p.dashes, 0):]...)
	case "config":
		if rest := c.Args[index+1:]; len(writesTo) == 0 && !p.has("global system worktree blob") && !gitReadsConfig(rest) && !gitHarmlessKey(rest) {
			return []Word{fixed(".git/config")}
		}
	case "update-index": // what it puts there a checkout writes
		for _, word := range p.operands {
			if parts := strings.SplitN(word.Text, ",", 3); len(parts) == 3 {
				word.Text = parts[2]
			}
			writesTo = append(writesTo, word)
		}
	case "worktree", "bundle", "submodule":
		if len(p.operands) > 1 && oneOf(p.operands[0].Text, "add create move") {
			return slices.Concat(writesTo, p.operands[1:])
		}
	}
	return writesTo
}
