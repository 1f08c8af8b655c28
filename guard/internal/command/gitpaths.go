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
	sub, options := c.Args[index].Text, spec{short: "o:", long: "output: output-directory: separate-git-dir: prefix: file:", permute: true, open: true}
	if sub == "config" {
		options.short = "f:"
	}
	p := options.parse(c.Args[index:])
	writesTo = p.values("output output-directory separate-git-dir")
	switch sub {
	case "archive", "format-patch":
		return append(writesTo, p.values("o")...)
	case "mv", "rm", "restore", "init":
		return append(writesTo, p.operands...)
	case "checkout":
		return append(writesTo, p.operands[max(p.dashes, 0):]...)
	case "clone":
		return append(writesTo, p.operands[min(1, len(p.operands)):]...)
	case "config":
		writesTo = append(writesTo, p.values("f file")...)
		if rest := c.Args[index+1:]; len(writesTo) == 0 && !p.has("global system worktree blob") && !gitReadsConfig(rest) && !gitHarmlessKey(rest) {
			return []Word{fixed(".git/config")}
		}
	case "read-tree", "checkout-index":
		return append(writesTo, p.values("prefix")...)
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
