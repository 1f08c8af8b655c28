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

// globs notes words that may become file names.
func (w *walker) globs(args ...*syntax.Word) {
	for _, arg := range args {
		if arg == nil || !strings.ContainsAny(w.source(arg), "*?[") {
			continue
		}
		for _, word := range w.words([]*syntax.Word{arg}) {
			if word.Static && strings.ContainsAny(word.Text, "*?[") {
				word.Static, word.Glob = false, true // quoted, but the variable may not be
			}
			if word.Glob || word.Wild {
				w.out.Globs = append(w.out.Globs, word)
			}
		}
	}
}

// replaced notes what an expansion puts in place of a variable, or of a part of it.
func (w *walker) replaced(p *syntax.ParamExp) {
	switch {
	case givesDefault(p):
		w.globs(p.Exp.Word)
	case p.Repl != nil:
		w.globs(p.Repl.With)
	}
}

// givesDefault reports whether an expansion may be the word in it: ${x:-word}.
func givesDefault(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Exp == nil || p.Exp.Word == nil {
		return false
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return true
	}
	return false
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
	if w.posix {
		w.undecided(true, "brace expansion depends on which shell sh is")
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
	for _, part := range one.Parts {
		if lit, ok := part.(*syntax.Lit); !ok || lit.Value != "" {
			return false
		}
	}
	return true
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
		word.guesses, word.from = w.guess(arg)
		word.name = variableOf(arg)
	case e.glob:
		word.Text, word.Glob, word.single = e.text.String(), true, false
	default:
		word.Text, word.Static = e.text.String(), true
	}
	return word
}

// plain reports whether the shell takes an unquoted literal as it stands.
func plain(s string) bool { return !strings.ContainsAny(s, "\\*?[~") }

// An expansion collects the value of one word from its parts.
type expansion struct {
	text   strings.Builder
	end    int // length of the known prefix, once something is unknown or a pattern
	known  bool
	single bool
	glob   bool
	home   bool
}

func (e *expansion) unknown() {
	if e.known && !e.glob {
		e.end = e.text.Len()
	}
	e.known = false
}

func (e *expansion) pattern() {
	if e.known && !e.glob {
		e.end = e.text.Len()
	}
	e.glob = true
}

func (e *expansion) prefix() string {
	if e.known && !e.glob {
		return e.text.String()
	}
	return e.text.String()[:e.end]
}

func (e *expansion) part(part syntax.WordPart, first, last bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		e.literal(p.Value, first, last)
	case *syntax.SglQuoted:
		e.quotation(p)
	case *syntax.DblQuoted:
		if p.Dollar { // translated by the message catalogue
			e.unknown()
		}
		for i, q := range p.Parts {
			switch q := q.(type) {
			case *syntax.Lit:
				e.text.WriteString(unescapeQuoted(q.Value))
			case *syntax.ParamExp:
				e.param(q, first && i == 0, true)
			default:
				e.unknown()
			}
		}
	case *syntax.ParamExp:
		e.param(p, first, false)
	case *syntax.ProcSubst: // a path such as /dev/fd/63
		e.unknown()
		e.single = e.single && len(p.Stmts) > 0 // <() is no word at all
		if first && e.single {
			e.text.WriteString("/dev/fd/")
			e.end = e.text.Len()
		}
	default:
		e.unknown()
		e.single = false
	}
}

// quotation adds a quotation in '…' or $'…'.
func (e *expansion) quotation(p *syntax.SglQuoted) {
	if !p.Dollar {
		e.text.WriteString(p.Value)
		return
	}
	s, ok := ansiC(p.Value)
	if !ok {
		e.unknown()
		return
	}
	e.text.WriteString(s)
}

// ansiC decodes the inside of $'…'. The library knows neither \c, \x{…} nor
// octal values above one byte as bash does: those are left undecoded.
func ansiC(s string) (string, bool) {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		switch next := s[i]; {
		case next == 'c', next == 'x' && i+1 < len(s) && s[i+1] == '{',
			next >= '4' && next <= '7' && i+2 < len(s) && isDigit(s[i+1]) && isDigit(s[i+2]):
			return "", false
		}
	}
	v, _, err := expand.Format(&expand.Config{}, s, nil)
	v, _, _ = strings.Cut(v, "\x00") // as in C, it ends there
	return v, err == nil
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// literal adds unquoted text: backslashes go, a tilde in front means home, and
// a pattern character makes the word depend on the files that are there.
func (e *expansion) literal(s string, first, last bool) {
	if first && s != "" && s[0] == '~' {
		switch {
		case s == "~" && last, strings.HasPrefix(s, "~/"):
			e.home = true
		default: // ~user, ~+, ~-, ~"x"
			e.unknown()
		}
	}
	if first && assignedTilde(s) {
		e.unknown()
	}
	if plain(s) {
		e.text.WriteString(s)
		return
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			switch i++; {
			case i == len(s): // at the end of the text it stands for itself
				e.text.WriteByte('\\')
			case s[i] != '\n':
				e.text.WriteByte(s[i])
			}
			continue
		case '*', '?':
			e.pattern()
		case '[': // the program of that name, and what no "]" closes, is no pattern
			if !last || strings.IndexByte(s[i:], ']') >= 0 {
				e.pattern()
			}
		}
		e.text.WriteByte(s[i])
	}
}

// assignedTilde reports whether bash expands a tilde inside the word because it
// looks like an assignment: `dd of=~/x`, `make PREFIX=/a:~/b`.
func assignedTilde(s string) bool {
	name, value, ok := strings.Cut(s, "=")
	return ok && isName(name) && (strings.HasPrefix(value, "~") || strings.Contains(value, ":~"))
}

// isName reports whether s can be the name of a variable.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if b := s[i]; b != '_' && !isLetter(b) && (i == 0 || !isDigit(b)) {
			return false
		}
	}
	return s != ""
}

// param adds a parameter expansion. Only $HOME is known: where it is assigned,
// that alone makes the analysis undecidable.
func (e *expansion) param(p *syntax.ParamExp, first, quoted bool) {
	simple := p.Param != nil && !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil &&
		p.Names == 0 && p.Exp == nil
	if simple && first && p.Param.Value == "HOME" && e.text.Len() == 0 {
		e.home = true
		e.text.WriteByte('~')
		return
	}
	e.unknown()
	e.single = e.single && quoted && oneWord(p)
}

// oneWord reports whether p, in double quotes, stays one word. "$@" and
// "${a[@]}" become several.
func oneWord(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Param.Value == "@" || p.Index != nil || p.Excl || p.Names != 0 {
		return false
	}
	return p.Exp == nil || p.Exp.Word == nil || p.Exp.Word.Lit() != ""
}

// unescapeQuoted resolves the escapes that count between double quotes.
func unescapeQuoted(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '\n':
				i++
				continue
			case '$', '`', '"', '\\':
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// source returns a word as it was written.
func (w *walker) source(n syntax.Node) string {
	start, end := int(n.Pos().Offset()), int(n.End().Offset())
	if start > end || end > len(w.text) {
		return "?"
	}
	return w.text[start:end]
}
