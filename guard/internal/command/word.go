package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// words reads the words of a call. What braces become is not known: the parser may read them otherwise than bash.
func (w *walker) words(args []*syntax.Word) []Word {
	out := make([]Word, 0, len(args))
	for _, arg := range args {
		word := w.word(arg)
		if braces(arg) {
			before, _, _ := strings.Cut(word.prefix, "{")
			word = Word{Text: w.source(arg), prefix: before}
		}
		out = append(out, word)
	}
	return out
}

// braces reports whether bash may find a brace expression in a word.
func braces(arg *syntax.Word) bool {
	var unquoted strings.Builder
	for _, part := range arg.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			unquoted.WriteString(escaped().ReplaceAllString(lit.Value, ""))
		}
	}
	return expandable().MatchString(unquoted.String())
}

var (
	escaped    = regular(`(?s)\\.`)
	expandable = regular(`(?s)\{.*(,|\.\.).*\}`)
)

// word expands one word.
func (w *walker) word(arg *syntax.Word) Word {
	if len(arg.Parts) == 1 {
		if lit, ok := arg.Parts[0].(*syntax.Lit); ok && plain(lit.Value) {
			return Word{Text: lit.Value, Static: true, single: true}
		}
	}
	e := expansion{single: true, known: true}
	for i, part := range arg.Parts {
		e.part(part, i == 0, i == len(arg.Parts)-1)
	}
	word := Word{Home: e.home, single: e.single, prefix: e.prefix()}
	switch {
	case !e.known:
		word.Text, word.single = w.source(arg), e.single && !e.glob
	case e.glob:
		word.Text, word.Glob, word.single = e.text.String(), true, false
	default:
		word.Text, word.Static = e.text.String(), true
	}
	return word
}

// plain reports whether the shell uses an unquoted literal unchanged.
func plain(s string) bool { return !strings.ContainsAny(s, "\\*?[~") }

// source returns a word as it was written.
func (w *walker) source(n syntax.Node) string {
	start, end := int(n.Pos().Offset()), int(n.End().Offset())
	if start > end || end > len(w.text) {
		return "?"
	}
	return w.text[start:end]
}

// assigned notes the literal text that a variable is given.
func (w *walker) assigned(value *syntax.Word) {
	if word := w.word(value); word.Static && !word.Home && word.Text != "" && len(w.out.Values) < maxCommands {
		w.out.Values = append(w.out.Values, word.Text)
	}
}
