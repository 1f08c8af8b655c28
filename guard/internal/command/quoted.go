package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// apostrophes judges what stands between double quotes, or in a heredoc. In
// "${x:-'$(rm x)'}" the inner quotes quote nothing for bash, which runs rm; to
// the parser (3.14) they do, whichever the operator.
func (w *walker) apostrophes(parts []syntax.WordPart) {
	for _, part := range parts {
		p, ok := part.(*syntax.ParamExp)
		if !ok {
			continue
		}
		if p.Exp != nil && p.Exp.Word != nil && !trims(p.Exp.Op) {
			w.apostrophesIn(p.Exp.Word)
		}
		if p.Repl != nil && p.Repl.With != nil { // bash 3.2 of macOS
			w.apostrophesIn(p.Repl.With)
		}
	}
}

// trims reports whether an operator takes a pattern, in which quotes count also
// between double quotes.
func trims(op syntax.ParExpOperator) bool {
	switch op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix,
		syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		return true
	}
	return false
}

func (w *walker) apostrophesIn(word *syntax.Word) {
	w.quotations(word, "single quotes in an expansion between double quotes, where they quote nothing", func(q *syntax.SglQuoted) bool {
		return expands(q.Value)
	})
}

// quotations records reason if a quotation in word, but not in a command or double
// quotes in it, is doubtful.
func (w *walker) quotations(word *syntax.Word, reason string, doubtful func(*syntax.SglQuoted) bool) {
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.DblQuoted:
			return false // the walk comes to it by itself
		case *syntax.SglQuoted:
			if doubtful(n) {
				w.undecided(true, reason)
			}
		}
		return true
	})
}

// expands reports whether text holds what the shell expands or ends a quotation.
func expands(text string) bool { return strings.ContainsAny(text, "$`\"}") }

// heredoc judges the text of a heredoc.
func (w *walker) heredoc(r *syntax.Redirect) {
	if r.Hdoc == nil {
		return
	}
	w.apostrophes(r.Hdoc.Parts)
	end := r.Word.Lit()
	if end == "" || strings.Contains(end, "\\") {
		return // quoted: its lines are taken as they are
	}
	if w.joinsEnd(end) {
		w.undecided(true, "a line of a heredoc ends in a backslash, before the word that ends it")
	}
	// Bash looks for that word first, and only then at what stands before it.
	for _, part := range r.Hdoc.Parts {
		if _, ok := part.(*syntax.Lit); !ok && holdsLine(w.source(part), end) {
			w.undecided(true, "the word that ends a heredoc stands in an expansion in it")
		}
	}
}

// holdsLine reports whether a line of text is end, but for the tabs before it.
func holdsLine(text, end string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimLeft(line, "\t") == end {
			return true
		}
	}
	return false
}

// joinsEnd reports whether the word that ends a heredoc stands on a line that the
// one before continues, or is made by one. Bash joins the lines first, so that
// "\<LF>E" ends the heredoc and "a\<LF>E" does not; the parser (3.14) takes each
// for itself.
func (w *walker) joinsEnd(end string) bool {
	joined, continues := "", false
	for line := range strings.SplitSeq(w.text, "\n") {
		joined += line
		if continues && (strings.TrimLeft(line, "\t") == end || strings.TrimLeft(joined, "\t") == end) {
			return true
		}
		if joined, continues = strings.CutSuffix(joined, "\\"); !continues {
			joined = ""
		}
	}
	return false
}

// backquotes judges where `…` ends. For bash it is at the next backquote without a
// backslash; the parser (3.14) passes over one in quotes or in a heredoc.
func (w *walker) backquotes(c *syntax.CmdSubst) {
	if !c.Backquotes {
		return
	}
	start, end := int(c.Left.Offset())+1, int(c.Right.Offset())
	if start > end || end > len(w.text) {
		return
	}
	for i := start; i < end; i++ {
		switch w.text[i] {
		case '\\':
			i++
		case '`':
			w.undecided(true, "a backquote within backquotes, at which bash ends them")
			return
		}
	}
}

// operands judges the words of an expansion. Bash knows <(…) there and the parser
// (3.14) does not: cat ${x:-<(rm x)} runs rm. And bash (5.2) forgets that $'…' was
// a quotation: so does "$(echo ${x-$'`rm x`'})".
func (w *walker) operands(p *syntax.ParamExp) {
	var words []*syntax.Word
	if p.Exp != nil {
		words = append(words, p.Exp.Word)
	}
	if p.Repl != nil {
		words = append(words, p.Repl.Orig, p.Repl.With)
	}
	for _, word := range words {
		if word == nil {
			continue
		}
		w.quotations(word, "$'…' within an expansion", func(q *syntax.SglQuoted) bool {
			if !q.Dollar {
				return false
			}
			value, known := ansiC(q.Value)
			return !known || expands(value) || expands(q.Value)
		})
		for _, part := range word.Parts {
			if lit, ok := part.(*syntax.Lit); ok && substitutes(lit.Value) {
				w.undecided(true, "a process substitution within an expansion")
			}
		}
	}
}

// substitutes reports whether plain text is a process substitution to bash.
func substitutes(text string) bool {
	text = unbroken(text)
	return strings.Contains(text, "<(") || strings.Contains(text, ">(")
}

// hash judges what follows the parts of a word. "#" begins a comment only where a
// word would; between parentheses the parser (3.14) finds one also after a quotation
// or an expansion, so that (echo 'a'#; rm x<LF>) would hide rm. Where the line ends in
// a backslash, what follows is one more part of the word.
func (w *walker) hash(word *syntax.Word) {
	for i, part := range word.Parts {
		rest := w.after(part)
		at := len(w.text) - len(rest)
		if strings.HasPrefix(rest, "#") && (i+1 == len(word.Parts) || int(word.Parts[i+1].Pos().Offset()) > at) {
			w.undecided(true, "a # right after a word, which bash takes for a part of it")
		}
	}
}
