package pattern

import (
	"regexp/syntax"
	"unicode/utf8"
)

// Boundary is what a match requires next to a literal.
type Boundary uint8

const (
	AnyBoundary  Boundary = iota
	LineBoundary          // the line begins or ends there
	WordBoundary          // the literal ends in an ASCII word character, and the next character is not one of a word
)

// empty reports whether the only text is the empty one.
func (t *texts) empty() bool { return len(t.all) == 1 && t.all[0] == "" }

// assert records an assertion that follows the texts, or precedes them if there are none yet.
func (t *texts) assert(re *syntax.Regexp) {
	bits := 0
	if re.Op == syntax.OpCapture && re.Sub[0].Op == syntax.OpWordBoundary {
		bits = re.Cap
	}
	edge := &t.after
	line, word := syntax.OpEndLine, bits&NotWordAfter != 0
	if t.empty() {
		edge = &t.before
		line, word = syntax.OpBeginLine, bits&NotWordBefore != 0
	}
	switch {
	case re.Op == line:
		*edge = LineBoundary
	case *edge == AnyBoundary && (word || re.Op == syntax.OpWordBoundary):
		*edge = WordBoundary
	}
}

// inner returns a sequence without the assertions at its start and end that l.Before and l.After already express.
func inner(re *syntax.Regexp, l *Literals) *syntax.Regexp {
	if re.Op != syntax.OpConcat {
		return re
	}
	subs := re.Sub
	if len(subs) > 0 && l.Before == LineBoundary && subs[0].Op == syntax.OpBeginLine {
		subs = subs[1:]
	}
	if n := len(subs); n > 0 && l.After == LineBoundary && subs[n-1].Op == syntax.OpEndLine {
		subs = subs[:n-1]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: subs}
}

func isWordByte(c byte) bool { return c < utf8.RuneSelf && IsWord(rune(c)) }
