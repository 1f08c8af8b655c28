package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect lists the file of a redirection.
func (w *walker) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		name := strings.Trim(r.N.Value, "{}")
		w.variableName("a redirection", Word{Text: name, Static: true})
		w.setsVariable(name, "0")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.DplIn, syntax.DplOut:
		// In `>&-rm x` bash closes the descriptor and runs rm; to the parser "-rm" is a file.
		if s := w.source(r.Word); len(s) > 1 && s[0] == '-' {
			w.undecided(true, "a word right after a descriptor is closed: "+s)
		}
		// `>&f` is a file when f is no descriptor: a number, one to move ("3-"), or "-".
		if v := r.Word.Lit(); v != "" && strings.Trim(v, "0123456789-") == "" {
			return
		}
	}
	words := w.words([]*syntax.Word{r.Word})
	for i := range words {
		words[i].Places = w.standing
	}
	switch r.Op {
	case syntax.DplOut:
		expandedTwice(w, words)
		w.out.Writes = append(w.out.Writes, words...)
	case syntax.RdrIn, syntax.DplIn:
		w.out.Reads = append(w.out.Reads, words...)
	case syntax.RdrInOut:
		w.out.Reads = append(w.out.Reads, words...)
		w.out.Writes = append(w.out.Writes, words...)
	default:
		w.out.Writes = append(w.out.Writes, words...)
	}
}

// expandedTwice judges the file of `>&f`, which bash (5.2) expands a second time:
// ls >&'$(rm x)' runs rm.
func expandedTwice(w *walker, words []Word) {
	for _, word := range words {
		if !word.Static || strings.ContainsAny(word.Text, "$`~*?[{\\'\" \t\n") {
			w.undecided(true, "a file name after >& that bash expands twice: "+word.Text)
		}
	}
}

// readDescriptors looks for {name[subscript]} right before a redirection, where bash
// evaluates the subscript. The parser knows only subscripts without expansions.
func readDescriptors(w *walker, call *syntax.CallExpr) {
	for _, arg := range call.Args {
		next := textAfter(w, arg)
		if next != "" && strings.IndexByte("<>", next[0]) >= 0 && strings.HasSuffix(unbroken(w.source(arg)), "]}") {
			w.undecided(true, "a redirection of a name that bash evaluates: "+w.source(arg))
		}
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
