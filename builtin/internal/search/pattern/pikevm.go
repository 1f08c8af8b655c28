package pattern

import (
	"regexp/syntax"
	"sync/atomic"
	"unicode/utf8"
)

// pikeVM simulates a program with all its threads at once, in order of
// preference, which finds the bounds of the leftmost-first match that the
// automaton does not know: those of patterns whose matches span lines, and of matches
// that are shown without their lines.
type pikeVM struct {
	dfa  *dfa // for the assertions
	prog *syntax.Prog
	stop *atomic.Bool
	cur  threads
	next threads
}

// threads is a list of instructions in order of preference, each with the
// start of its match.
type threads struct {
	pcs   []uint32
	start []int
	mark  []uint32
	gen   uint32
}

func newPikeVM(p *Pattern, stop *atomic.Bool) *pikeVM {
	n := len(p.Prog.Inst)
	return &pikeVM{
		dfa: &dfa{crlf: p.CRLF, lines: p.Lines}, prog: p.Prog, stop: stop,
		cur: threads{mark: make([]uint32, n)}, next: threads{mark: make([]uint32, n)},
	}
}

func (t *threads) clear() {
	t.pcs, t.start = t.pcs[:0], t.start[:0]
	t.gen++
}

// find returns the first match of b that starts at or after from, and not after last.
func (m *pikeVM) find(b []byte, from, last int) (s Span, ok bool) {
	m.cur.clear()
	prev := m.dfa.kindBefore(b, from)
	for i, n := from, 0; ; n++ {
		if n%stopEvery == 0 && m.stop.Load() {
			panic(interrupted{})
		}
		r, size := runeAt(b, i)
		holds := m.dfa.assertions(prev, r)
		m.next.clear()
		live := m.cur.pcs
		starts := m.cur.start
		m.cur.clear() // marks which instructions this position has visited
		for k, pc := range live {
			if m.follow(pc, starts[k], r, holds) {
				s, ok = Span{starts[k], i}, true
				break // less preferred threads no longer count
			}
		}
		if !ok && i <= last && m.follow(uint32(m.prog.Start), i, r, holds) {
			s, ok = Span{i, i}, true
		}
		if r == runeEnd || (ok || i >= last) && len(m.next.pcs) == 0 {
			return s, ok
		}
		m.cur, m.next = m.next, m.cur
		prev = m.dfa.kindOf(r)
		i += size
	}
}

func runeAt(b []byte, i int) (rune, int) {
	if i >= len(b) {
		return runeEnd, 0
	}
	r, size := utf8.DecodeRune(b[i:])
	if r == utf8.RuneError && size <= 1 {
		r = runeInvalid
	}
	return r, size
}

// follow follows an instruction through those that take no rune, and adds the instructions that take the rune r to
// the next threads. It reports whether there was a match; then all less preferred threads are void.
func (m *pikeVM) follow(pc uint32, start int, r rune, holds uint32) bool {
	if m.cur.mark[pc] == m.cur.gen {
		return false
	}
	m.cur.mark[pc] = m.cur.gen
	switch in := &m.prog.Inst[pc]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return m.follow(in.Out, start, r, holds) || m.follow(in.Arg, start, r, holds)
	case syntax.InstCapture, syntax.InstNop:
		return m.follow(in.Out, start, r, holds)
	case syntax.InstEmptyWidth:
		return in.Arg&^holds == 0 && m.follow(in.Out, start, r, holds)
	case syntax.InstMatch:
		return true
	case syntax.InstFail:
	default:
		if m.dfa.eats(r) && in.MatchRune(r) {
			m.next.add(in.Out, start)
		}
	}
	return false
}

// add appends an instruction that is not yet in the list.
func (t *threads) add(pc uint32, start int) {
	if t.mark[pc] == t.gen {
		return
	}
	t.mark[pc] = t.gen
	t.pcs = append(t.pcs, pc)
	t.start = append(t.start, start)
}
