package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
	e.end = len(e.prefix())
	e.known = false
}

func (e *expansion) pattern() {
	e.end = len(e.prefix())
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
		if p.Dollar && strings.Contains(p.Value, "\\") { // $'…' has escapes
			e.unknown()
		}
		e.text.WriteString(p.Value)
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
			case *syntax.CmdSubst:
				if text, ok := catted(q); ok {
					e.text.WriteString(text)
					continue
				}
				e.unknown()
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

// catted returns the literal lines of the heredoc in "$(cat <<'EOF' …)", the form in which clients write messages.
func catted(c *syntax.CmdSubst) (text string, ok bool) {
	if len(c.Stmts) != 1 || c.Backquotes {
		return "", false
	}
	stmt := c.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || len(stmt.Redirs) != 1 {
		return "", false
	}
	if len(call.Assigns) > 0 || len(call.Args) != 1 || call.Args[0].Lit() != "cat" {
		return "", false
	}
	if r := stmt.Redirs[0]; r.N == nil && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) {
		text, ok = heredoc(r)
		return strings.TrimRight(text, "\n"), ok
	}
	return "", false
}

// literal adds unquoted text. It removes backslashes and takes a tilde in front for the home directory; a pattern
// character makes the word depend on the files that exist.
func (e *expansion) literal(s string, first, last bool) {
	if first && s != "" && s[0] == '~' {
		switch {
		case s == "~" && last, strings.HasPrefix(s, "~/"):
			e.home = true
		default: // ~user, ~+, ~-, ~"x"
			e.unknown()
		}
	}
	if first && !isOption(s) && (strings.Contains(s, "=~") || strings.Contains(s, ":~")) { // dd of=~/x
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
			case i == len(s): // a backslash at the end of the text stands for itself
				e.text.WriteByte('\\')
			case s[i] != '\n':
				e.text.WriteByte(s[i])
			}
			continue
		case '*', '?':
			e.pattern()
		case '[': // the program "[", or a "[" that no "]" closes, is no pattern
			if !last || strings.IndexByte(s[i:], ']') >= 0 {
				e.pattern()
			}
		}
		e.text.WriteByte(s[i])
	}
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
	return quotedEscape().ReplaceAllString(s, "$1")
}

var quotedEscape = regular("\\\\(?:\n|([$`\"\\\\]))")
