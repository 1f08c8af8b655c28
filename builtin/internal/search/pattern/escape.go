package pattern

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Captures are not needed, so OpCapture marks the assertions that
// regexp/syntax does not have; Compile turns the marks into these bits of an
// InstEmptyWidth's argument, beyond those of syntax.EmptyOp.
const (
	NotWordBefore = 1 << (8 + iota)
	WordAfter
	WordBefore
	NotWordAfter
	ValidBefore // the rune there is valid UTF-8
	ValidAfter
)

func assertion(bits int) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpCapture, Cap: bits, Sub: []*syntax.Regexp{{Op: syntax.OpWordBoundary}}}
}

// escape parses a backslash and what belongs to it, outside of a class.
func (p *parser) escape() *syntax.Regexp {
	start := p.pos
	if s, ok := p.classEscape(); ok {
		return p.class(start, s)
	}
	p.pos = start + 1
	if !p.more() {
		p.fail(start, `For the character write \\.`, "a backslash at the end")
	}
	switch p.next() {
	case 'A':
		return p.textAnchor(syntax.OpBeginLine, syntax.OpBeginText)
	case 'z':
		return p.textAnchor(syntax.OpEndLine, syntax.OpEndText)
	case 'b':
		return p.boundary(start)
	case 'B':
		return &syntax.Regexp{Op: syntax.OpNoWordBoundary}
	case '<':
		return assertion(NotWordBefore | WordAfter)
	case '>':
		return assertion(WordBefore | NotWordAfter)
	}
	p.pos = start
	return p.literal(start, p.escapedRune())
}

// textAnchor returns the node of \A or \z, on which no flag has an effect.
func (p *parser) textAnchor(line, text syntax.Op) *syntax.Regexp {
	if p.lines {
		return &syntax.Regexp{Op: line}
	}
	return &syntax.Regexp{Op: text}
}

func (p *parser) boundary(start int) *syntax.Regexp {
	if p.peek() != '{' {
		return &syntax.Regexp{Op: syntax.OpWordBoundary}
	}
	kinds := map[string]int{
		"{start}":      NotWordBefore | WordAfter,
		"{end}":        WordBefore | NotWordAfter,
		"{start-half}": NotWordBefore | ValidBefore,
		"{end-half}":   NotWordAfter | ValidAfter,
	}
	for text, bits := range kinds {
		if p.skip(text) {
			return assertion(bits)
		}
	}
	if _, _, ok := p.counts(); ok {
		p.fail(start, "", "a word boundary cannot be repeated")
	}
	return &syntax.Regexp{Op: syntax.OpWordBoundary}
}

// classEscape parses \d \D \s \S \w \W \p{…} \P{…}. If it reports false, p.pos is undefined.
func (p *parser) classEscape() (set, bool) {
	p.pos++
	if !p.more() {
		return nil, false
	}
	var s set
	c := p.next()
	switch c {
	case 'd', 'D':
		s = digitSet()
	case 's', 'S':
		s = spaceSet()
	case 'w', 'W':
		s = wordSet()
	case 'p', 'P':
		s = p.property()
	default:
		return nil, false
	}
	if unicode.IsUpper(c) {
		s = s.negate()
	}
	return s, true
}

// property parses what follows \p.
func (p *parser) property() set {
	start := p.pos - 2
	if !p.more() {
		p.fail(start, "", `\p needs the name of a class`)
	}
	var name string
	if p.skip("{") {
		body, _, ok := strings.Cut(p.text[p.pos:], "}")
		if !ok {
			p.fail(start, "", `unclosed \p{`)
		}
		name = body
		p.pos += len(body) + 1
	} else {
		name = string(p.next())
	}
	name, negated := strings.CutPrefix(name, "^")
	if k, v, ok := strings.Cut(name, "!="); ok {
		name, negated = k+"="+v, true
	}
	s, ok := p.known[name]
	if !ok {
		s, ok = property(name)
	}
	if !ok {
		p.fail(start, "Known are general categories (L, Lu, Nd…), scripts (Greek, Han…) and properties (Alphabetic, "+
			"White_Space…).",
			"unknown Unicode class %q", name)
	}
	if p.known == nil {
		p.known = map[string]set{}
	}
	p.known[name] = s
	if p.flags.fold {
		s = s.fold()
	}
	if negated {
		s = s.negate()
	}
	return s
}

func cutAny(s, seps string) (before, after string, ok bool) {
	if i := strings.IndexAny(s, seps); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// escapedRune parses an escape that stands for one character, in or outside
// of a class.
func (p *parser) escapedRune() rune {
	start := p.pos
	p.pos++
	if !p.more() {
		p.fail(start, `For the character write \\.`, "a backslash at the end")
	}
	switch c := p.next(); c {
	case 'a':
		return '\a'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	case 'x':
		return p.hex(start, 2)
	case 'u':
		return p.hex(start, 4)
	case 'U':
		return p.hex(start, 8)
	default:
		if c < utf8.RuneSelf && !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '<' && c != '>' ||
			p.flags.verbose && unicode.IsSpace(c) {
			return c
		}
		p.unknownEscape(start, c)
		return 0
	}
}
