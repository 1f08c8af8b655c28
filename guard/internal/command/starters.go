package command

import (
	"slices"
	"strings"
)

const startsOthers = " starts commands of its own"

// readStarter marks a program that starts others named by its words: always, as strace does, or if one of its words is
// in the table of launchers. The exec gate judges the programs that it starts; without a gate, and for allow rules, its
// text is judged.
func readStarter(w *walker, c Simple) {
	r, _ := recordOf("launchers", strings.TrimRight(c.Name, "-.0123456789")) // gcc-13
	words := slices.Clone(c.Args[1:])
	if len(words) > 0 && r.flags["bare"] && !isOption(words[0].Text) { // tar cIf
		words[0].Text, words[0].prefix = "-"+words[0].Text, "-"+words[0].prefix
	}
	starts, named := false, false
	for i, word := range words {
		starts = starts || (word.Static || !named) && r.starts(word)
		first := i == 0 || !isOption(words[i-1].Text)
		named = named || word.Text == "--" || r.flags["subcommands"] && first && word.Static && !isOption(word.Text)
	}
	if starts && !r.flags["own"] {
		w.undecided(true, c.Name+" starts a program that its words name")
	}
	if starts || listed("starters", c.Name) || strings.HasPrefix(c.Name, "ld-") {
		w.startsByPurpose(true, c.Name+startsOthers)
	}
	readRunner(w, c)
}

// starts reports whether a word makes the program of a record start another one, or may do so.
func (r record) starts(word Word) bool {
	text := word.Text
	if !word.Static {
		text = word.prefix
	}
	name, _, assigned := strings.Cut(text, "=")
	pinned := assigned || len(text) == 2 && strings.ContainsAny(text[1:], r.lists["values"]) // make -j$(nproc)
	lower := strings.ToLower(text)                                                           // ssh -oproxycommand
	begins := func(element string) bool {
		abbreviates := len(name) > 2 && strings.HasPrefix(element, "--") && strings.HasPrefix(element, name)
		return abbreviates || strings.HasPrefix(text, element) || strings.HasPrefix(lower, element)
	}
	switch {
	case len(r.lists) == 0:
		return false
	case hidesOption(word) && !pinned && (!word.Glob || r.flags["globs"]):
		return true
	case slices.ContainsFunc(strings.Fields(r.lists["words"]), begins), r.flags["expands"] && strings.ContainsAny(text, "$`"):
		return true
	}
	return len(text) > 1 && text[0] == '-' && text[1] != '-' && strings.ContainsAny(text, r.lists["letters"])
}

// maxTries bounds the words at which the program of a runner may begin.
const maxTries = 6

// readRunner adds a spelling of the command for each word at which the program may begin that a runner such as npx
// starts: the first word, a word after an option, which may be its value, and the word after "--".
func readRunner(w *walker, c Simple) {
	r, ok := recordOf("runners", c.Name)
	words := c.Args[1:]
	if list := r.lists["verbs"]; list != "" {
		words = words[slices.IndexFunc(words, func(w Word) bool { return oneOf(w.Text, list) })+1:]
		ok = len(words) < len(c.Args)-1
	}
	tries, found := 0, false
	for i, word := range words {
		before := words[max(i-1, 0)].Text
		if ok && !found && (word.Text == "-c" || strings.HasPrefix(word.Text, "--call")) {
			w.startsByPurpose(true, c.Name+startsOthers)
		}
		if !ok || tries == maxTries || isOption(word.Text) && word.Static || found && before != "--" {
			continue
		}
		found = found || !isOption(before) || strings.Contains(before, "=")
		tries++
		sub := walker{out: &Analysis{}, outer: -1, current: -1, depth: w.depth + maxDepth/2}
		sub.simple(Simple{Args: words[i:], Outer: -1}, nil)
		for _, inner := range sub.out.Commands {
			for _, spelling := range inner.Spellings() {
				w.out.Commands[w.current].spelled(spelling)
			}
		}
		if sub.out.Hiding {
			w.startsByPurpose(true, c.Name+startsOthers)
		}
	}
}
