package command

import (
	"slices"
	"strings"
)

// readFind looks at the commands that find runs and the files it writes.
func readFind(w *walker, c Simple) {
	for i := 1; i < len(c.Args); i++ {
		word := c.Args[i]
		switch {
		case !word.Static:
			findDynamic(w, c, i)
		case oneOf(word.Text, "-exec -execdir -ok -okdir"):
			i = findExec(w, c, i)
		case oneOf(word.Text, "-fprint -fprint0 -fls -fprintf"):
			if i++; i < len(c.Args) {
				w.out.Writes = append(w.out.Writes, c.Args[i])
			}
			if word.Text == "-fprintf" {
				i++
			}
		case word.Text == "-files0-from":
			if i++; i < len(c.Args) {
				w.out.Reads = append(w.out.Reads, c.Args[i])
			}
		case listed("find takes", word.Text) || strings.HasPrefix(word.Text, "-newer"):
			if i++; i < len(c.Args) && !c.Args[i].Static && !c.Args[i].single {
				findDynamic(w, c, i)
			}
		}
	}
}

// findDynamic judges a word that could turn out to be -exec. "*.go" matches no action.
func findDynamic(w *walker, c Simple, i int) {
	if word := c.Args[i]; word.MayBeOption() && !(word.Glob && strings.Contains(word.Text[strings.LastIndexByte(word.Text, '*')+1:], ".")) {
		w.undecided(true, c.Name+" with a word that may be -exec: "+word.Text)
	}
}

// findExec lists the command after -exec and returns the index of its last word.
func findExec(w *walker, c Simple, i int) int {
	end := i + 1
	for end < len(c.Args) && c.Args[end].Text != ";" && !(c.Args[end].Text == "+" && c.Args[end-1].Text == "{}") {
		if word := c.Args[end]; end > i+1 && !word.Static && !word.Glob && (word.prefix == "" || word.prefix == ";" || word.prefix == "{}") {
			w.undecided(true, c.Name+" with a word that may end a command: "+word.Text)
		}
		end++
	}
	if end > i+1 {
		args := fill(c.Args[i+1:end], "{}")
		if end < len(c.Args) && c.Args[end].Text == "+" {
			args[len(args)-1].single = false // {} is many files
		}
		w.inner(c.Name+" "+c.Args[i].Text, args, nil, nil)
	}
	return end
}

// readFd makes a command of fd undecidable that may run a command for each result.
func readFd(w *walker, c Simple) {
	fd, _ := recordOf("programs", "fd")
	if slices.ContainsFunc(c.Args[1:], hidesOption) || fd.parse(c.Args).hasStartOf("x X exec exec-batch") {
		w.undecided(true, c.Name+" with a word that runs a command, or may")
	}
}
