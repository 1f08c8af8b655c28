package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scanner reads the text of a pattern.
type scanner struct {
	text string
	pos  int
}

// failure carries an *Error up to parse.
type failure struct{ err *Error }

func (p *scanner) fail(pos int, hint, format string, args ...any) {
	panic(failure{&Error{Pattern: p.text, Pos: pos, Msg: fmt.Sprintf(format, args...), Hint: hint}})
}

func (p *scanner) more() bool { return p.pos < len(p.text) }

// peek returns the next byte, 0 at the end.
func (p *scanner) peek() byte {
	if p.more() {
		return p.text[p.pos]
	}
	return 0
}

func (p *scanner) skip(s string) bool {
	if strings.HasPrefix(p.text[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *scanner) next() rune {
	r, n := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += n
	return r
}

func (p *scanner) operator() string {
	for _, op := range []string{"&&", "--", "~~"} {
		if p.skip(op) {
			return op
		}
	}
	return ""
}

// named parses `[:name:]` or `[:^name:]`.
func (p *scanner) named() (set, bool) {
	body, ok := strings.CutPrefix(p.text[p.pos:], "[:")
	if !ok {
		return nil, false
	}
	name, _, ok := strings.Cut(body, ":]")
	if !ok {
		return nil, false
	}
	bare, negated := strings.CutPrefix(name, "^")
	s, ok := asciiClasses[bare]
	if !ok {
		return nil, false
	}
	p.pos += len("[:") + len(name) + len(":]")
	if negated {
		s = s.negate()
	}
	return s, true
}
func (p *scanner) unknownEscape(start int, c rune) {
	hints := map[rune]string{
		'Z': `Write \z for the end.`,
		'h': `Write [ \t] for blanks.`,
		'R': `Write \r?\n with multiline: true.`,
		'Q': "Escape each character on its own.",
		'e': `Write \x1b for the escape character.`,
	}
	switch {
	case '0' <= c && c <= '9' || c == 'k' || c == 'g':
		p.fail(start, `For a character by its code write \x41.`, "back-references are not supported")
	case c == 'K' || c == 'G':
		p.fail(start, "", `\%c is not supported`, c)
	}
	p.fail(start, hints[c], `unknown escape \%c`, c)
}

// hex parses n digits, or any number of them in braces.
func (p *scanner) hex(start, n int) rune {
	var digits string
	if p.skip("{") {
		body, _, ok := strings.Cut(p.text[p.pos:], "}")
		if !ok {
			p.fail(start, "", "unclosed hexadecimal escape")
		}
		digits = body
		p.pos += len(body) + 1
	} else {
		digits = p.text[p.pos:min(p.pos+n, len(p.text))]
		p.pos += len(digits)
		if len(digits) < n {
			p.fail(start, "", "an escape of %d hexadecimal digits is cut short", n)
		}
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(min(v, unicode.MaxRune+1))) {
		p.fail(start, "", "%q is not the hexadecimal number of a character", digits)
	}
	return rune(v)
}
