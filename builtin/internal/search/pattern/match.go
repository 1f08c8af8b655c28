package pattern

import (
	"bytes"
	"iter"
	"slices"
	"sync/atomic"
)

// Matcher searches one text after the other for one pattern. It keeps what it
// learns of the pattern, and is not for use by several goroutines.
type Matcher struct {
	p         *Pattern
	stop      *atomic.Bool
	dfa       *dfa // see automaton
	vm        *pikeVM
	prefilter *prefilter
	beyond    bool // see foldsBeyond
	isText    bool // the pattern is one text
	dense     int  // for how many more texts literals count as too dense, so that scanning is faster

	text   []byte
	at     int // start of the next line to look at
	direct bool
	hits   []Span
	hit    int
	// candidates counts the lines that held a literal, skipped the bytes between them.
	candidates, skipped int
}

const (
	// block is how many bytes of text are scanned at once if no literal helps: a caller that needs only the first line
	// does not pay for the whole text.
	block = 64 << 10
	// Judging a line that holds a literal costs about as much as scanning 200 bytes (measured). With fewer bytes between
	// such lines, scanning is faster.
	minSkip     = 200
	judgeSkipAt = 256
	// denseFor is for how many texts literals then count as too dense: a file of hexadecimal numbers is not typical of
	// the rest of the tree.
	denseFor = 16
)

// New returns a matcher for the pattern. When stop becomes true, what is under
// way ends within microseconds and finds nothing more.
func New(p *Pattern, stop *atomic.Bool) *Matcher {
	m := &Matcher{p: p, stop: stop, prefilter: newPrefilter(p), beyond: !ScansAll(p) && foldsBeyond(p.Literals)}
	if l := p.Literals; l != nil && l.Exact && len(l.Texts) == 1 && !l.Fold && l.Before == AnyBoundary &&
		l.After == AnyBoundary {
		m.isText = true
	}
	if !p.Lines {
		m.vm = newPikeVM(p, stop)
	}
	return m
}

// automaton returns the automaton of the pattern. It is made when first needed: for
// many patterns a literal decides.
func (m *Matcher) automaton() *dfa {
	if m.dfa == nil {
		m.dfa = newDFA(m.p, m.stop)
	}
	return m.dfa
}

// Reset starts on a new text, which must not change until the next Reset. plain says that the text is known to hold
// no NUL byte and none of the letters of FoldPartners.
func (m *Matcher) Reset(text []byte, plain bool) {
	m.text, m.at = text, 0
	m.hits, m.hit = m.hits[:0], 0
	m.direct = m.prefilter == nil || m.beyond && !plain && FoldPartners(text)
	// A binary file is reported if any line of it matches, so it is searched by its
	// literals in any case.
	if m.dense > 0 && !m.direct {
		m.dense--
		m.direct = plain || bytes.IndexByte(text, 0) < 0
	}
	if m.prefilter != nil {
		m.prefilter.reset()
	}
}

// Scans reports whether Next looks at every byte of the text, and not only at lines that hold a literal.
func (m *Matcher) Scans() bool { return m.direct }

// ScansAll reports whether each text is scanned as a whole for a pattern.
func ScansAll(p *Pattern) bool {
	return p.Literals == nil || len(p.Literals.Texts) > maxLiterals
}

// FoldsBeyond reports whether a required literal of the pattern has a letter with another case outside of ASCII. A
// text with such a letter (see FoldPartners) can then match without holding the literal as it is spelt.
func FoldsBeyond(p *Pattern) bool {
	return slices.ContainsFunc(p.Required, func(l Literals) bool { return foldsBeyond(&l) })
}

// Next returns the next line with a match. It is for patterns whose matches
// are within lines.
func (m *Matcher) Next() (s Span, ok bool) {
	defer stopped(&ok)
	if !m.direct {
		if s, ok = m.nextLiteral(); ok || !m.direct {
			return s, ok
		}
	}
	for m.hit == len(m.hits) {
		if m.at >= len(m.text) {
			return Span{}, false
		}
		to := min(lineEnd(m.text, min(m.at+block, len(m.text)))+1, len(m.text))
		m.hits, m.hit = m.automaton().scan(m.text, m.at, to, m.hits[:0]), 0
		m.at = to
	}
	m.hit++
	return m.hits[m.hit-1], true
}

// stopped ends a search that was interrupted.
func stopped(ok *bool) {
	if r := recover(); r != nil {
		if _, is := r.(interrupted); !is {
			panic(r)
		}
		*ok = false
	}
}

// nextLiteral looks at the lines that hold a literal. It sets direct, and
// leaves the rest to scanning, when there are too many of them.
func (m *Matcher) nextLiteral() (Span, bool) {
	for m.at < len(m.text) {
		k := m.prefilter.find(m.text, m.at)
		if k < 0 {
			m.skipped += len(m.text) - m.at
			m.at = len(m.text)
			break
		}
		s := Span{m.at + lineStart(m.text[m.at:], k-m.at), lineEnd(m.text, k)}
		if m.p.Literals.Exact {
			m.at = s.End + 1
			return s, true
		}
		m.candidates++
		m.skipped += k - m.at
		if m.candidates%judgeSkipAt == 0 && m.skipped < m.candidates*minSkip {
			m.dense, m.direct, m.at = denseFor, true, s.Start
			m.candidates, m.skipped = 0, 0
			return Span{}, false
		}
		m.at = s.End + 1
		// The newline is included: whether the line ends there depends on a preceding carriage return.
		if m.automaton().find(m.text[s.Start:min(s.End+1, len(m.text))], newline) >= 0 {
			return s, true
		}
	}
	return Span{}, false
}

// Within returns the matches that begin in a line, or in a block of lines, without empty ones. It does not change the
// position of [Matcher.Next] and [Matcher.NextMatch].
func (m *Matcher) Within(s Span) iter.Seq[Span] {
	if m.vm == nil {
		m.vm = newPikeVM(m.p, m.stop)
	}
	next := func(from int) (found Span, ok bool) {
		defer stopped(&ok)
		return m.vm.find(m.text, from, s.End)
	}
	return func(yield func(Span) bool) {
		for from := s.Start; from <= s.End; {
			found, ok := next(from)
			if !ok {
				return
			}
			if from = found.End; found.Start == found.End {
				from++
			} else if !yield(found) {
				return
			}
		}
	}
}

// Where returns a position in a matching line at or after the end of a match.
func (m *Matcher) Where(line []byte) (end int) {
	ok := true
	defer stopped(&ok)
	return max(m.automaton().find(line, newline), 0)
}

// NextMatch returns the next match, leftmost-first, that starts at or after from. It is for patterns whose matches
// may span lines. The automaton finds where to look, so that the slow pikeVM has to read little more than the match.
func (m *Matcher) NextMatch(from int) (s Span, ok bool) {
	defer stopped(&ok)
	if !m.direct && (from == 0 || m.isText) {
		k := m.prefilter.find(m.text, from)
		if k < 0 || m.isText {
			return m.textAt(k)
		}
	}
	end, fresh := m.automaton().findFresh(m.text, from, m.jump())
	if end < 0 {
		return Span{}, false
	}
	return m.vm.find(m.text, fresh, len(m.text))
}

// textAt returns the match at position i of a pattern that is a single text. There is none if i is -1.
func (m *Matcher) textAt(i int) (Span, bool) {
	if i < 0 {
		return Span{}, false
	}
	return Span{i, i + len(m.p.Literals.Texts[0])}, true
}

// jump returns a function that finds the next position at which a match can start. It returns nil if matches do not
// start with a literal.
func (m *Matcher) jump() func(from int) int {
	if m.direct || !m.p.Literals.Prefix {
		return nil
	}
	return func(from int) int { return m.prefilter.find(m.text, from) }
}
