package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxBraceWords bounds how many words brace expansion may make of a text.
// Commands people write stay far below; the cost of analysis must not follow
// {1..9999}.
const (
	maxBraceWords = 1000
	maxBraces     = 20 // in one word: the expansion copies what follows each
)

// words expands brace expressions and quoting.
func (w *walker) words(args []*syntax.Word) []Word {
	out := make([]Word, 0, len(args))
	for _, arg := range args {
		switch n := openBraces(arg); {
		case n == 0:
			out = append(out, w.word(arg))
		case n > maxBraces:
			w.undecided(true, "a word with very many braces")
			out = append(out, Word{Text: w.source(arg)})
		default:
			out = w.braces(out, arg)
		}
	}
	return out
}

// givesDefault reports whether an expansion may be the word in it: ${x:-word}.
func givesDefault(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Exp != nil && p.Exp.Word != nil && strings.Trim(p.Exp.Op.String(), ":-=+") == ""
}

// openBraces counts what may start a brace expression in a word.
func openBraces(arg *syntax.Word) int {
	n := 0
	for _, part := range arg.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// braces appends what the brace expressions of arg expand to. Expansion happens
// before any other, so that {cat,.env} is a command of two words.
func (w *walker) braces(out []Word, arg *syntax.Word) []Word {
	split := &syntax.Word{Parts: arg.Parts}
	found := syntax.SplitBraces(split)
	if bracesLeft(split.Parts) {
		w.undecided(true, "braces that bash may expand: "+w.source(arg))
		return append(out, Word{Text: w.source(arg)})
	}
	if !found {
		return append(out, w.word(arg))
	}
	source := w.source(arg)
	if joinsName(split.Parts) {
		return append(out, Word{Text: source})
	}
	start := len(out)
	for one, err := range expand.BracesSeq(nil, split) {
		if w.out.braceWords++; err != nil || w.out.braceWords > maxBraceWords {
			w.undecided(true, "brace expansion to very many words")
			return append(out[:start], Word{Text: source})
		}
		if empty(one) {
			continue // bash drops an unquoted empty word
		}
		word := w.word(one)
		if !word.Static && !word.Glob {
			word.Text = source
		}
		out = append(out, word)
	}
	return out
}

// bracesLeft reports whether what was not taken for a brace expression may be one.
// Bash expands {x},y} to "x}" and "y"; the library stops at the first "}".
func bracesLeft(parts []syntax.WordPart) bool {
	var plain strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			plain.WriteString(strings.NewReplacer(`\\`, "", `\{`, "", `\}`, "", `\,`, "").Replace(p.Value))
		case *syntax.BraceExp:
			if slices.ContainsFunc(p.Elems, func(e *syntax.Word) bool { return bracesLeft(e.Parts) }) {
				return true
			}
		}
	}
	_, inner, ok := strings.Cut(plain.String(), "{")
	end := strings.LastIndexByte(inner, '}')
	return ok && end >= 0 && (strings.Contains(inner[:end], ",") || strings.Contains(inner[:end], ".."))
}

// joinsName reports whether a brace expression follows a $name, whose name it
// becomes a part of: $HOME{a,b} is $HOMEa $HOMEb.
func joinsName(parts []syntax.WordPart) bool {
	short := false
	for _, part := range parts {
		if _, ok := part.(*syntax.BraceExp); ok && short {
			return true
		}
		p, ok := part.(*syntax.ParamExp)
		short = ok && p.Short
	}
	return false
}

func empty(one *syntax.Word) bool {
	return !slices.ContainsFunc(one.Parts, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return !ok || lit.Value != ""
	})
}

// word expands one word that holds no brace expression.
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
	if len(arg.Parts) == 1 {
		p, ok := arg.Parts[0].(*syntax.ProcSubst)
		word.Stream = ok && p.Op == syntax.CmdIn && e.single
	}
	switch {
	case !e.known:
		word.Text, word.single, word.Wild = w.source(arg), e.single && !e.glob, e.glob
		word.arg = arg
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
