package pattern

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a pattern. Every query compiles its pattern for each worker, so they
// bound its memory.
const (
	// MaxLength is the longest pattern, in bytes.
	MaxLength = 64 << 10
	// MaxNest is how deep groups and classes may nest, as in Rust's regex crate.
	MaxNest = 250
	// MaxSteps is the largest program, in steps: a repetition counts what it
	// stands for.
	MaxSteps = 20_000
)

// flags are what `(?imsUx)` switch.
type flags struct{ fold, multi, dotNL, ungreedy, verbose bool }

type parser struct {
	scanner
	depth int
	flags flags
	lines bool           // a match never spans lines
	known map[string]set // properties already looked up
	crlf  bool           // `$` also matches before a carriage return, and `.` not the return itself
}

// parse parses the whole text.
func (p *parser) parse() (re *syntax.Regexp, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			re, err = nil, f.err
		}
	}()
	re = p.alternation()
	if p.pos < len(p.text) {
		p.fail(p.pos, `For the character write \).`, "unopened group: a `)` without `(`")
	}
	return re, nil
}

// blanks skips what (?x) ignores.
func (p *parser) blanks() {
	for p.flags.verbose && p.more() {
		if r, n := utf8.DecodeRuneInString(p.text[p.pos:]); unicode.IsSpace(r) {
			p.pos += n
		} else if r == '#' {
			if k := strings.IndexByte(p.text[p.pos:], '\n'); k >= 0 {
				p.pos += k + 1
			} else {
				p.pos = len(p.text)
			}
		} else {
			return
		}
	}
}

// alternation parses up to the end or an unmatched `)`. Flags set inside end
// with it.
func (p *parser) alternation() *syntax.Regexp {
	saved := p.flags
	defer func() { p.flags = saved }()
	var alts []*syntax.Regexp
	for {
		alts = append(alts, p.concatenation())
		if !p.skip("|") {
			break
		}
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: alts}
}

func (p *parser) concatenation() *syntax.Regexp {
	var subs []*syntax.Regexp
	for {
		p.blanks()
		if !p.more() || p.peek() == '|' || p.peek() == ')' {
			break
		}
		start := p.pos
		re := p.atom(len(subs) == 0)
		if re == nil { // flags
			continue
		}
		subs = append(subs, p.repetitions(start, re))
	}
	return concat(subs)
}

// concat joins neighbouring literals, so that their text can be searched for.
func concat(subs []*syntax.Regexp) *syntax.Regexp {
	var out []*syntax.Regexp
	for _, s := range subs {
		if n := len(out); n > 0 && s.Op == syntax.OpLiteral && out[n-1].Op == syntax.OpLiteral &&
			s.Flags == out[n-1].Flags {
			out[n-1].Rune = append(out[n-1].Rune, s.Rune...)
			continue
		}
		out = append(out, s)
	}
	switch len(out) {
	case 0:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case 1:
		return out[0]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: out}
}

// atom parses one element without its repetition; nil for `(?flags)`.
func (p *parser) atom(first bool) *syntax.Regexp {
	start := p.pos
	switch c := p.peek(); c {
	case '(':
		return p.group()
	case '[':
		return p.class(start, p.bracket())
	case '.':
		p.pos++
		return p.dot()
	case '^':
		p.pos++
		return p.anchor(syntax.OpBeginLine, syntax.OpBeginText)
	case '$':
		p.pos++
		return p.anchor(syntax.OpEndLine, syntax.OpEndText)
	case '\\':
		return p.escape()
	case '*', '+', '?':
		if first {
			p.fail(start, fmt.Sprintf(`For the character write \%c.`, c), "`%c` has nothing to repeat", c)
		}
	}
	return p.literal(start, p.next())
}

func (p *parser) dot() *syntax.Regexp {
	switch {
	case p.flags.dotNL:
		return &syntax.Regexp{Op: syntax.OpAnyChar}
	case p.crlf:
		return p.class(p.pos, set{'\n', '\n', '\r', '\r'}.negate())
	}
	return &syntax.Regexp{Op: syntax.OpAnyCharNotNL}
}

// anchor returns the node of an anchor. If each line is a text of its own, anchors of the text are anchors of the
// line.
func (p *parser) anchor(line, text syntax.Op) *syntax.Regexp {
	if p.flags.multi || p.lines {
		return &syntax.Regexp{Op: line}
	}
	return &syntax.Regexp{Op: text}
}

func (p *parser) failNewline(pos int) {
	p.fail(pos, "Pass multiline: true to match across lines.", "a newline never matches within a line")
}

func (p *parser) literal(pos int, r rune) *syntax.Regexp {
	if r == '\n' && p.lines {
		p.failNewline(pos)
	}
	re := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{r}}
	if p.flags.fold && unicode.SimpleFold(r) != r {
		re.Flags = syntax.FoldCase
	}
	return re
}

// class returns the node of a set whose case is already folded. If no match spans lines, the newline is removed from
// the set: a class with few members is searched for by its members, and every line would have the newline.
func (p *parser) class(pos int, s set) *syntax.Regexp {
	if p.lines && s.has('\n') {
		if s = s.minus(set{'\n', '\n'}); len(s) == 0 {
			p.failNewline(pos)
		}
	}
	if len(s) == 0 {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	if len(s) == 2 && s[0] == s[1] && s[0] != '\n' {
		return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{s[0]}}
	}
	return &syntax.Regexp{Op: syntax.OpCharClass, Rune: s}
}

// repetitions parses what follows an atom.
func (p *parser) repetitions(start int, re *syntax.Regexp) *syntax.Regexp {
	for n := 0; ; n++ {
		p.blanks()
		op, lo, hi := syntax.OpRepeat, 0, 0
		switch p.peek() {
		case '*':
			op = syntax.OpStar
			p.pos++
		case '+':
			op = syntax.OpPlus
			p.pos++
		case '?':
			op = syntax.OpQuest
			p.pos++
		case '{':
			var ok bool
			if lo, hi, ok = p.counts(); !ok {
				return re // the character itself: interface{}
			}
		default:
			return re
		}
		lazy := p.skip("?") != p.flags.ungreedy
		rep := &syntax.Regexp{Op: op, Min: lo, Max: hi, Sub: []*syntax.Regexp{re}}
		if lazy {
			rep.Flags |= syntax.NonGreedy
		}
		if steps(rep) > MaxSteps || n == MaxNest {
			p.fail(start, "Repeat less, or search for a part of it.",
				"too large: it stands for more than %d steps", MaxSteps)
		}
		re = rep
	}
}

// counts parses `{n}`, `{n,}`, `{n,m}` or `{,m}`; anything else is not a
// repetition, and nothing is consumed. Rust refuses it.
func (p *parser) counts() (lo, hi int, ok bool) {
	body, _, closed := strings.Cut(p.text[p.pos+1:], "}")
	if !closed {
		return 0, 0, false
	}
	min, max, comma := strings.Cut(body, ",")
	min, max = strings.TrimSpace(min), strings.TrimSpace(max)
	lo, okLo := count(min)
	hi, okHi := count(max)
	switch {
	case !comma:
		hi, ok = lo, okLo
	case max == "":
		hi, ok = -1, okLo
	case min == "":
		lo, ok = 0, okHi
	default:
		ok = okLo && okHi
	}
	if ok && hi >= 0 && lo > hi {
		p.fail(p.pos, "", "repetition {%s}: the lower bound is greater than the upper", body)
	}
	if ok {
		p.pos += len(body) + 2
	}
	return lo, hi, ok
}

func count(s string) (int, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		n = 1 << 31 // more than MaxSteps anyway
	}
	return int(n), true
}

// group parses `(…)`, or `(?flags)`, for which it returns nil.
func (p *parser) group() *syntax.Regexp {
	start := p.pos
	p.pos++
	saved := p.flags
	if p.skip("?") {
		if set := p.groupHead(start); set {
			return nil
		}
	}
	if p.depth++; p.depth > MaxNest {
		p.fail(start, "", "groups nest deeper than %d", MaxNest)
	}
	re := p.alternation()
	p.depth--
	p.flags = saved
	if !p.skip(")") {
		p.fail(start, `For the character write \(.`, "unclosed group: a `(` without `)`")
	}
	if re.Op == syntax.OpLiteral { // so that neither a repetition nor a neighbour splits the literal
		re = &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{re}}
	}
	return re
}

// groupHead parses what follows `(?`. It reports whether that was a
// whole `(?flags)`.
func (p *parser) groupHead(start int) bool {
	for _, look := range []string{"=", "!", "<=", "<!"} {
		if p.skip(look) {
			p.fail(start, "Match the text around it too and read the lines, or filter by a second search.",
				"look-ahead and look-behind are not supported")
		}
	}
	switch {
	case p.skip(">"):
		p.fail(start, "Write (?:…).", "atomic groups are not supported")
	case p.skip("#"):
		p.fail(start, "", "comments are written in (?x) mode only")
	case p.skip("P<"), p.skip("<"):
		name, _, ok := strings.Cut(p.text[p.pos:], ">")
		if !ok || name == "" {
			p.fail(start, "", "bad name of a group")
		}
		p.pos += len(name) + 1
		return false
	case p.skip("P=") || p.skip("P>"):
		p.fail(start, "", "back-references are not supported")
	}
	return p.flagList(start)
}

func (p *parser) flagList(start int) bool {
	on := true
	for {
		at := p.pos
		if !p.more() {
			p.fail(start, "", "unclosed group: a `(` without `)`")
		}
		switch c := p.next(); c {
		case 'i':
			p.flags.fold = on
		case 'm':
			p.flags.multi = on
		case 's':
			p.flags.dotNL = on
		case 'U':
			p.flags.ungreedy = on
		case 'x':
			p.flags.verbose = on
		case 'R':
			if !on {
				p.fail(at, `Without it `+"`$`"+` stands before the return as well; write [^\r]$ to leave such lines out.`,
					"(?-R) is not supported")
			}
		case 'u':
			if !on {
				p.fail(at, "Write [0-9A-Za-z_] for ASCII words, [0-9] for digits.", "(?-u) is not supported")
			}
		case '-':
			on = false
		case ':':
			return false
		case ')':
			return true
		default:
			p.fail(at, "", "unknown flag `%c` of a group", c)
		}
	}
}
