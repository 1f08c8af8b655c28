package pattern

import (
	"bytes"
	"strings"
)

// maxLiterals is the number of texts up to which searching for each of them is faster than running the automaton.
const maxLiterals = 4

// prefilter finds the first of several texts. Each literal remembers where it was found last, so that the input is
// scanned once per literal and not once per result.
type prefilter struct{ literals []literal }

// newPrefilter returns nil when there are no texts, or too many.
func newPrefilter(p *Pattern) *prefilter {
	if ScansAll(p) {
		return nil
	}
	f := &prefilter{}
	for _, t := range p.Literals.Texts {
		n := newLiteral(t, p.Literals.Fold)
		n.between(p.Literals.Before, p.Literals.After, p.CRLF)
		f.literals = append(f.literals, n)
	}
	return f
}

// reset is called before a new text is searched.
func (f *prefilter) reset() {
	for i := range f.literals {
		n := &f.literals[i]
		if n.common > 0 {
			n.common--
		} else {
			n.streak = 0
		}
		n.looks, n.passed = 0, 0
		n.next, n.found = 0, false
	}
}

// find returns the first position at or after from where one of the texts
// starts, or -1. from must not go back between calls.
func (f *prefilter) find(b []byte, from int) int {
	first := -1
	for i := range f.literals {
		n := &f.literals[i]
		if !n.found || n.next >= 0 && n.next < from {
			n.next = n.index(b, from)
			n.found = true
		}
		if n.next >= 0 && (first < 0 || n.next < first) {
			first = n.next
		}
	}
	return first
}

// foldsBeyond reports whether a text has a letter with a case partner outside
// of ASCII: k (the Kelvin sign) or s (the long s).
func foldsBeyond(l *Literals) bool {
	for _, t := range l.Texts {
		if l.Fold && strings.ContainsAny(t, "ks") {
			return true
		}
	}
	return false
}

var kelvin, longS = []byte("\u212a"), []byte("\u017f")

// FoldPartners reports whether a text holds a letter outside of ASCII whose other case is an ASCII letter.
func FoldPartners(text []byte) bool {
	return bytes.Contains(text, kelvin) || bytes.Contains(text, longS)
}
