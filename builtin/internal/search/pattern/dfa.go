package pattern

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync/atomic"
	"unicode/utf8"
)

// dfa runs a program as an automaton whose states are built when they are
// first entered. It reports whether and where a match ends, not where it starts:
// all that choosing lines needs. It looks at text from left to right once, so
// its time is bounded by text × program, and is near one table look-up a byte
// in practice.
//
// States are numbered in steps of 256, so that state|byte indexes trans. ASCII
// goes through trans; other runes go through their class (see class) and wide.
type dfa struct {
	prog  *syntax.Prog
	lines bool
	crlf  bool
	stop  *atomic.Bool
	loops bool // a match can return to its start, so states do not show whether one is under way

	trans  []uint32
	wide   []uint32
	states []state
	ids    map[string]uint32
	start  [kinds]uint32
	class  classes

	mark  []uint32 // per instruction, the generation that has visited it
	gen   uint32
	stack []uint32
	out   []uint32
	key   []byte
	slow  int

	streams [streamCount]stream // see scan
}

// state is a set of instructions to continue from, and the kind of the preceding rune.
type state struct {
	pcs  []uint32
	prev kind
	end  verdict // whether a match ends if the text ends here
}

// verdict is the answer to whether a state ends a match at the end of the text.
type verdict uint8

const (
	open verdict = iota
	yes
	no
)

// kind says what assertions need to know of the preceding rune.
type kind uint8

const (
	textStart kind = iota
	newline
	wordRune
	otherRune
	returnRune // only with crlf
	badByte    // not UTF-8
	kinds      = 6
)

const (
	matched = 1 << 31    // set in a transition: a match ended before this rune
	unknown = 0xffffffff // a transition not computed yet
	// maxStates bounds the memory of one automaton, to about 10 MB; beyond it
	// all states are dropped.
	maxStates = 8000
	// fewStates is how many states there is room for at first.
	fewStates   = 16
	runeInvalid = -2 // a byte that is not UTF-8: matched by nothing
	runeEnd     = -1
	stopEvery   = 256 // computed transitions between looks at stop
)

func newDFA(p *Pattern, stop *atomic.Bool) *dfa {
	d := &dfa{prog: p.Prog, lines: p.Lines, crlf: p.CRLF, stop: stop}
	d.class.prog = p.Prog
	d.mark = make([]uint32, len(d.prog.Inst))
	d.trans, d.states = make([]uint32, 0, fewStates<<8), make([]state, 0, fewStates)
	for _, in := range d.prog.Inst {
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			d.loops = d.loops || in.Out == uint32(d.prog.Start)
		}
	}
	d.reset()
	return d
}

func (d *dfa) reset() {
	d.trans = append(d.trans[:0], make([]uint32, 256)...) // of idle
	d.wide = d.wide[:0]
	d.states = append(d.states[:0], state{})
	d.ids = map[string]uint32{}
	for k := range d.start {
		d.start[k] = d.intern([]uint32{uint32(d.prog.Start)}, kind(k))
	}
}

// compact forgets all states but those given, whose numbers it renews.
func (d *dfa) compact(live ...*uint32) {
	kept := make([]state, len(live))
	for i, s := range live {
		kept[i] = d.states[*s>>8]
	}
	d.reset()
	for i, s := range live {
		*s = d.intern(kept[i].pcs, kept[i].prev)
	}
}

func (d *dfa) full() bool { return len(d.states) > maxStates }

func (d *dfa) intern(pcs []uint32, prev kind) uint32 {
	k := append(d.key[:0], byte(prev))
	for _, pc := range pcs {
		k = binary.LittleEndian.AppendUint32(k, pc)
	}
	d.key = k
	if id, ok := d.ids[string(k)]; ok {
		return id
	}
	id := uint32(len(d.states)) << 8
	d.states = append(d.states, state{pcs: slices.Clone(pcs), prev: prev})
	n := len(d.trans)
	d.trans = slices.Grow(d.trans, 256)[:n+256]
	fill(d.trans[n:])
	d.ids[string(k)] = id
	return id
}

func fill(t []uint32) {
	for i := range t {
		t[i] = unknown
	}
}

// assertions returns which assertions hold between prev and the rune r.
func (d *dfa) assertions(prev kind, r rune) uint32 {
	var f syntax.EmptyOp
	if prev == textStart {
		f |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	// Between a carriage return and its newline no line starts or ends.
	within := prev == returnRune && r == '\n'
	if prev == newline || prev == returnRune && !within {
		f |= syntax.EmptyBeginLine
	}
	if r == runeEnd {
		f |= syntax.EmptyEndText
	}
	if (r == runeEnd || r == '\n' || r == '\r' && d.crlf) && !within {
		f |= syntax.EmptyEndLine
	}
	return uint32(f) | wordAssertions(prev, r)
}

// wordAssertions are those about words. Next to a byte that is not UTF-8 only those
// hold that speak of a word, as in Rust's regex crate.
func wordAssertions(prev kind, r rune) uint32 {
	before, after := prev == wordRune, IsWord(r)
	f := uint32(0)
	switch {
	case before != after:
		f = uint32(syntax.EmptyWordBoundary)
	case prev != badByte && r != runeInvalid:
		f = uint32(syntax.EmptyNoWordBoundary)
	}
	if before {
		f |= WordBefore
	} else {
		f |= NotWordBefore
	}
	if after {
		f |= WordAfter
	} else {
		f |= NotWordAfter
	}
	if prev != badByte {
		f |= ValidBefore
	}
	if r != runeInvalid {
		f |= ValidAfter
	}
	return f
}

func (d *dfa) kindOf(r rune) kind {
	switch {
	case r == '\n':
		return newline
	case r == '\r' && d.crlf:
		return returnRune
	case r == runeInvalid:
		return badByte
	case IsWord(r):
		return wordRune
	}
	return otherRune
}

// kindBefore is the kind of what precedes b[i].
func (d *dfa) kindBefore(b []byte, i int) kind {
	if i == 0 {
		return textStart
	}
	r, size := utf8.DecodeLastRune(b[:i])
	if r == utf8.RuneError && size <= 1 {
		r = runeInvalid
	}
	return d.kindOf(r)
}

// eats reports whether a match may contain the rune at all.
func (d *dfa) eats(r rune) bool {
	return r >= 0 && !(d.lines && (r == '\n' || r == '\r' && d.crlf))
}

// step computes the transition from a state by a rune.
func (d *dfa) step(id uint32, r rune) uint32 {
	st := &d.states[id>>8]
	holds := d.assertions(st.prev, r)
	eats := d.eats(r)
	d.gen++
	d.stack = append(d.stack[:0], st.pcs...)
	d.out = d.out[:0]
	found := uint32(0)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.mark[pc] == d.gen {
			continue
		}
		d.mark[pc] = d.gen
		switch in := &d.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, in.Out)
		case syntax.InstEmptyWidth:
			if in.Arg&^holds == 0 {
				d.stack = append(d.stack, in.Out)
			}
		case syntax.InstMatch:
			found = matched
		case syntax.InstFail:
		default:
			if eats && in.MatchRune(r) {
				d.out = append(d.out, in.Out)
			}
		}
	}
	if d.lines && r == '\n' {
		return d.start[newline] | found
	}
	d.out = append(d.out, uint32(d.prog.Start)) // a match may start anywhere
	slices.Sort(d.out)
	return d.intern(slices.Compact(d.out), d.kindOf(r)) | found
}

// advance computes the transition by the rune at b[i], and its length.
func (d *dfa) advance(s uint32, b []byte, i int) (uint32, int) {
	if d.slow++; d.slow%stopEvery == 0 && d.stop.Load() {
		panic(interrupted{})
	}
	if c := b[i]; c < utf8.RuneSelf {
		t := d.step(s, rune(c))
		d.trans[s|uint32(c)] = t
		return t, 1
	}
	r, size := utf8.DecodeRune(b[i:])
	if r == utf8.RuneError && size <= 1 {
		r = runeInvalid
	}
	k := d.class.of(r)
	if k >= maxClasses {
		return d.step(s, r), size
	}
	at := int(s>>8)*maxClasses + k
	for len(d.wide) <= at {
		n := len(d.wide)
		d.wide = slices.Grow(d.wide, maxClasses)[:n+maxClasses]
		fill(d.wide[n:])
	}
	if d.wide[at] == unknown {
		t := d.step(s, r)
		d.wide[at] = t
	}
	return d.wide[at], size
}

// ends reports whether a match ends at the end of the text.
func (d *dfa) ends(s uint32) bool {
	if d.states[s>>8].end == open {
		end := no
		if d.step(s, runeEnd)&matched != 0 { // a step may add a state, and so reallocate the states
			end = yes
		}
		d.states[s>>8].end = end
	}
	return d.states[s>>8].end == yes
}

// find returns the position by which some match of b has ended, or -1; the
// text starts after a rune of kind prev.
func (d *dfa) find(b []byte, prev kind) int {
	end, _ := d.findFrom(b, 0, prev, len(b), nil)
	return end
}

// findFresh finds a match that starts at from or later. It returns a position at or after the end of a match, or -1,
// and fresh: the last position before that at which no match was under way, so that the match starts at fresh or
// later. If jump is not nil, it returns the next position at which a match may start, or -1; it is called where no
// match is under way.
func (d *dfa) findFresh(b []byte, from int, jump func(int) int) (end, fresh int) {
	end, at := d.findFrom(b, from, d.kindBefore(b, from), stride, jump)
	if end < 0 {
		return -1, 0
	}
	_, fresh = d.findFrom(b, at, d.kindBefore(b, at), 1, nil)
	return end, fresh
}

// stride is how many bytes findFresh reads between checks for whether a match is under way.
const stride = 64

// findFrom starts at b[from], after a rune of kind prev. After every step bytes or a few more, it checks whether a
// match is under way. If none is, it sets fresh to that position.
func (d *dfa) findFrom(b []byte, from int, prev kind, step int, jump func(int) int) (end, fresh int) {
	s := d.start[prev]
	fresh = from
	for i := from; i < len(b); {
		if s <= lastStart && !d.loops {
			fresh = i
			if jump != nil {
				if fresh = jump(i); fresh < 0 {
					return -1, 0
				}
				if fresh > i {
					i = fresh
					s = d.start[d.kindBefore(b, i)]
				}
			}
		}
		for stop := min(i+step, len(b)); i < stop; {
			t := d.trans[s|uint32(b[i])]
			if int32(t) >= 0 {
				s = t
				i++
				continue
			}
			size := 1
			if t == unknown {
				t, size = d.advance(s, b, i)
			}
			if t&matched != 0 {
				return i, fresh
			}
			s = t
			i += size
			if d.full() {
				d.compact(&s)
			}
		}
	}
	if d.ends(s) {
		return len(b), fresh
	}
	return -1, fresh
}

// lastStart is the number of the last state in which no match is under way: reset makes such a state for each kind
// before all others.
const lastStart = kinds << 8

// interrupted is the panic value of a computation that has to stop.
type interrupted struct{}
