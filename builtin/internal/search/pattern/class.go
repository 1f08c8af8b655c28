package pattern

import (
	"strings"
	"unicode/utf8"
)

// bracket parses a class from its `[` on: members, nested classes, and the
// set operations && (and), -- (without), ~~ (either, not both), which bind
// weaker than listing and group from the left.
func (p *parser) bracket() set {
	start := p.pos
	if p.depth++; p.depth > MaxNest {
		p.fail(start, "", "classes nest deeper than %d", MaxNest)
	}
	p.pos++
	negated := p.skip("^")
	var done set
	var op string
	var pairs []rune
	p.leading(&pairs)
	finish := func() {
		s := newSet(pairs)
		pairs = nil
		if p.flags.fold {
			s = s.fold()
		}
		done = combine(done, op, s)
	}
	for {
		p.blanks()
		if !p.more() {
			p.fail(start, `For the character write \[.`, "unclosed character class: a `[` without `]`")
		}
		if p.skip("]") {
			break
		}
		if next := p.operator(); next != "" {
			finish()
			op = next
			continue
		}
		if pairs = append(pairs, p.member()...); len(pairs) > maxPairs {
			pairs = newSet(pairs)
		}
	}
	finish()
	p.depth--
	if negated {
		done = done.negate()
	}
	return done
}

// maxPairs is how many pairs a class gathers before they are merged.
const maxPairs = 1 << 16

// leading takes what is a literal only at the start: hyphens, then a `]`.
func (p *parser) leading(pairs *[]rune) {
	p.blanks()
	for p.peek() == '-' && !strings.HasPrefix(p.text[p.pos:], "--]") {
		if strings.HasPrefix(p.text[p.pos:], "--") && len(*pairs) > 0 {
			return
		}
		p.pos++
		*pairs = append(*pairs, '-', '-')
		p.blanks()
	}
	if len(*pairs) == 0 && p.skip("]") {
		*pairs = append(*pairs, ']', ']')
	}
}

func combine(left set, op string, right set) set {
	switch op {
	case "&&":
		return left.intersect(right)
	case "--":
		return left.minus(right)
	case "~~":
		return left.union(right).minus(left.intersect(right))
	}
	return right
}

// member parses one member of a class as pairs: a nested or named class, an
// escape, a character, or a range.
func (p *parser) member() []rune {
	start := p.pos
	if p.peek() == '[' {
		if s, ok := p.named(); ok {
			return s
		}
		return p.bracket()
	}
	if p.peek() == '\\' {
		if s, ok := p.classEscape(); ok {
			return s
		}
		p.pos = start
	}
	lo := p.memberRune()
	p.blanks()
	if p.peek() != '-' || strings.HasPrefix(p.text[p.pos:], "-]") || strings.HasPrefix(p.text[p.pos:], "--") {
		return []rune{lo, lo}
	}
	p.pos++
	p.blanks()
	if !p.more() {
		p.fail(start, `For the character write \[.`, "unclosed character class: a `[` without `]`")
	}
	if p.peek() == '\\' {
		at := p.pos
		if _, ok := p.classEscape(); ok {
			p.fail(at, `For a hyphen write \-.`, "a class cannot end a range")
		}
		p.pos = at
	}
	hi := p.memberRune()
	if lo > hi {
		p.fail(start, `For a hyphen write \-.`, "character range %c-%c runs backwards", lo, hi)
	}
	return []rune{lo, hi}
}

// memberRune parses one character of a class.
func (p *parser) memberRune() rune {
	if p.peek() == '\\' {
		start := p.pos
		if strings.HasPrefix(p.text[p.pos:], `\b`) {
			p.fail(start, `For a backspace write \x08.`, "a word boundary cannot be in a class")
		}
		return p.escapedRune()
	}
	r, n := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += n
	return r
}
