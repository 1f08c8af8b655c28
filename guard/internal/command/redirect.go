package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect lists the file of a redirection. led says where it is, see [Word.Led].
func (w *walker) redirect(r *syntax.Redirect, led int) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		name := strings.Trim(r.N.Value, "{}")
		w.variableName("a redirection", fixed(name))
		w.setsVariable(name, "$")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.DplIn, syntax.DplOut:
		// In `>&-rm x` bash closes the descriptor and runs rm; to the parser "-rm" is a file.
		if s := w.source(r.Word); len(s) > 1 && s[0] == '-' {
			w.undecided(true, "a word right after a descriptor is closed: "+s)
		}
		// `>&f` names a file unless f is a descriptor: a number, one to move ("3-"), or "-".
		if v := r.Word.Lit(); v != "" && strings.Trim(v, "0123456789-") == "" {
			return
		}
	}
	words := w.words([]*syntax.Word{r.Word})
	for i, word := range words {
		words[i].Led = led
		// Bash (5.2) expands the file of `>&f` a second time: ls >&'$(rm x)' runs rm.
		if r.Op == syntax.DplOut && (!word.Static || strings.ContainsAny(word.Text, "$`~*?[{\\'\" \t\n")) {
			w.undecided(true, "a file name after >& that bash expands twice: "+word.Text)
		}
	}
	reads := r.Op == syntax.RdrIn || r.Op == syntax.DplIn
	if reads || r.Op == syntax.RdrInOut {
		w.out.Reads = append(w.out.Reads, words...)
	}
	if !reads {
		w.out.Writes = append(w.out.Writes, words...)
	}
}

// textAfter returns the text that follows a word or a part of one, where lines are joined.
func textAfter(w *walker, n syntax.Node) string {
	rest := w.text[min(int(n.End().Offset()), len(w.text)):]
	for strings.HasPrefix(rest, "\\\n") {
		rest = rest[2:]
	}
	return rest
}

func unbroken(text string) string { return strings.ReplaceAll(text, "\\\n", "") }
