package command

import "strings"

// readFind looks at the commands that find runs.
func readFind(w *walker, c Simple) {
	for i := 1; i < len(c.Args); i++ {
		word := c.Args[i]
		switch {
		case oneOf(word.Text, "-exec -execdir -ok -okdir"):
			i = findExec(w, c, i)
		case !word.Static && word.MayBeOption() &&
			!(word.Glob && strings.Contains(word.Text[strings.LastIndexByte(word.Text, '*')+1:], ".")):
			w.undecided(true, c.Name+" with a word that may be -exec: "+word.Text) // "*.go" matches no action
		}
	}
}

// findExec lists the command after -exec and returns the index of its last word.
func findExec(w *walker, c Simple, i int) int {
	end := i + 1
	for end < len(c.Args) && c.Args[end].Text != ";" && !(c.Args[end].Text == "+" && c.Args[end-1].Text == "{}") {
		if word := c.Args[end]; end > i+1 && !word.Static && !word.Glob &&
			(word.prefix == "" || word.prefix == ";" || word.prefix == "{}") {
			w.undecided(true, c.Name+" with a word that may end a command: "+word.Text)
		}
		end++
	}
	if end > i+1 {
		args := fill(c.Args[i+1:end], "{}")
		if end < len(c.Args) && c.Args[end].Text == "+" {
			args[len(args)-1].single = false // {} is many files
		}
		w.inner(args, nil)
	}
	return end
}
