package command

import (
	"slices"
	"strings"
)

// gitPaths returns the files that the words of git make it write. What a branch, a
// patch or a stash holds is not in the words.
func gitPaths(c Simple) (writesTo []Word) {
	index, _ := gitSubcommand(c)
	if index >= len(c.Args) || !c.Args[index].Static {
		return nil
	}
	sub, rest := c.Args[index].Text, c.Args[index+1:]
	writesTo = gitOutputs(sub, rest)
	operands, after := gitOperands(rest)
	switch sub {
	case "mv", "rm", "restore":
		return append(writesTo, operands...)
	case "checkout":
		if after >= 0 {
			operands = operands[after:]
		}
		return append(writesTo, operands...)
	case "clone":
		return append(writesTo, operands[min(1, len(operands)):]...)
	case "config":
		if elsewhere := "--global --system --worktree --blob --file -f"; !gitReadsConfig(rest) && !gitHarmlessKey(rest) &&
			!slices.ContainsFunc(rest, func(w Word) bool { name, _, _ := strings.Cut(w.Text, "="); return oneOf(name, elsewhere) }) {
			return append(writesTo, fixed(".git/config"))
		}
	case "read-tree", "checkout-index":
		return append(writesTo, gitValues(rest, "--prefix")...)
	case "update-index": // what it puts there a checkout writes
		for _, word := range operands {
			_, name, ok := strings.Cut(word.Text, ",")
			if _, after, two := strings.Cut(name, ","); ok && two {
				word.Text = after
			}
			writesTo = append(writesTo, word)
		}
		return writesTo
	case "init":
		return append(writesTo, operands...)
	case "worktree", "bundle", "submodule":
		if len(operands) > 1 && oneOf(operands[0].Text, "add create move") {
			return append(writesTo, operands[1:]...)
		}
	}
	return writesTo
}

// gitOutputs returns the values of the options that name a file or directory to be
// written. Git takes the start of a long one for it.
func gitOutputs(sub string, rest []Word) (files []Word) {
	for i, word := range rest {
		if word.Static && word.Text == "--" {
			break
		}
		name, value, attached := strings.Cut(word.Text, "=")
		long := len(name) > 4 && isStartOfOneOf(name, "--output --output-directory --separate-git-dir") || sub == "config" && name == "--file"
		short := ""
		switch sub {
		case "archive", "format-patch":
			short = "-o"
		case "config":
			short = "-f"
		}
		switch {
		case long && attached:
			files = append(files, Word{Text: value, Static: word.Static, Home: strings.HasPrefix(value, "~/"), single: word.single})
		case (long || short != "" && word.Text == short) && i+1 < len(rest):
			files = append(files, rest[i+1])
		case short != "" && strings.HasPrefix(word.Text, short) && len(word.Text) > 2:
			files = append(files, Word{Text: word.Text[2:], Static: word.Static, single: word.single})
		}
	}
	return files
}

// gitValues returns the values of a long option.
func gitValues(rest []Word, option string) (values []Word) {
	for i, word := range rest {
		name, value, attached := strings.Cut(word.Text, "=")
		switch {
		case name != option:
		case attached:
			values = append(values, Word{Text: value, Static: word.Static, single: word.single})
		case i+1 < len(rest):
			values = append(values, rest[i+1])
		}
	}
	return values
}

// gitOperands returns the words that are no options, and how many of them precede
// "--", -1 if it is not there.
func gitOperands(rest []Word) (operands []Word, dashes int) {
	dashes = -1
	for _, word := range rest {
		switch {
		case dashes < 0 && word.Static && word.Text == "--":
			dashes = len(operands)
		case dashes < 0 && strings.HasPrefix(word.Text, "-"):
		default:
			operands = append(operands, word)
		}
	}
	return operands, dashes
}
