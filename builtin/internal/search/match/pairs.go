package match

import (
	"encoding/binary"
	"regexp/syntax"
	"unicode/utf8"

	"toolhost/builtin/internal/search/pattern"
)

const (
	// pairsFrom is after how many bytes of scanning an automaton goes by pairs: what
	// leads there takes as long as to scan some ten thousands.
	pairsFrom = 192 << 10
	// maxPairClasses is how many classes of bytes there may be for a pair to fit a byte,
	// and maxPairProg how many instructions of a program they are looked for in.
	maxPairClasses = 16
	maxPairProg    = 400
)

// pairUp makes the automaton go over two bytes at once, if few classes of bytes tell
// all that the program asks of them.
func (d *dfa) pairUp() {
	d.paired = true
	classes, n := d.byteClasses()
	if n > maxPairClasses {
		return
	}
	d.pairs = new([1 << 16]uint8)
	for second := range classes {
		row := d.pairs[second<<8:][:256]
		high := classes[second] * maxPairClasses
		for first := range row {
			row[first] = high + classes[first]
		}
	}
	d.growTwin()
}

// growTwin makes room for the transitions by pairs of all states.
func (d *dfa) growTwin() {
	if d.pairs == nil {
		return
	}
	n := len(d.twin)
	d.twin = append(d.twin, make([]uint32, len(d.trans)-n)...)
	if fill(d.twin[n:]); n == 0 {
		clear(d.twin[:256]) // idle
	}
}

// byteClasses sorts bytes by what the program and its assertions tell apart, and returns
// how many classes there are. All that is not ASCII is one.
func (d *dfa) byteClasses() (class [256]uint8, n int) {
	if len(d.prog.Inst) > maxPairProg {
		return class, maxPairClasses + 1
	}
	ids := map[string]uint8{}
	for c := range class {
		key := string(rune(utf8.RuneError))
		if c < utf8.RuneSelf {
			key = d.accepting(rune(c))
		}
		id, ok := ids[key]
		if !ok {
			if len(ids) == maxPairClasses {
				return class, maxPairClasses + 1
			}
			id = uint8(len(ids))
			ids[key] = id
		}
		class[c] = id
	}
	return class, len(ids)
}

// accepting tells runes apart by what accepts them.
func (d *dfa) accepting(r rune) string {
	key := []byte{byte(d.kindOf(r)), 0}
	if pattern.IsWord(r) {
		key[1] = 1
	}
	for pc := range d.prog.Inst {
		switch in := &d.prog.Inst[pc]; in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if in.MatchRune(r) {
				key = binary.LittleEndian.AppendUint16(key, uint16(pc))
			}
		}
	}
	return string(key)
}

// word is how many bytes are loaded at once.
const word = 8

// pairwise is lockstep by pairs of bytes, until no lane has a word left.
func (d *dfa) pairwise(b []byte, ls *[lanes]lane) {
	pairs := d.pairs
	for {
		live, n := leader(ls, word)
		if live < 0 {
			return
		}
		at, s := along(ls, live, word)
		b0, b1, b2, b3 := b[at[0]:][:n], b[at[1]:][:n], b[at[2]:][:n], b[at[3]:][:n]
		s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
		var t0, t1, t2, t3 uint32
		stopped := false
		twin := d.twin
		i := 0
	words:
		for ; i+word <= n; i += word {
			x0, x1 := binary.LittleEndian.Uint64(b0[i:]), binary.LittleEndian.Uint64(b1[i:])
			x2, x3 := binary.LittleEndian.Uint64(b2[i:]), binary.LittleEndian.Uint64(b3[i:])
			for j := 0; j < word; j += 2 {
				t0, t1 = twin[s0|uint32(pairs[uint16(x0)])], twin[s1|uint32(pairs[uint16(x1)])]
				t2, t3 = twin[s2|uint32(pairs[uint16(x2)])], twin[s3|uint32(pairs[uint16(x3)])]
				if int32(t0|t1|t2|t3) < 0 {
					i += j
					stopped = true
					break words
				}
				s0, s1, s2, s3 = t0, t1, t2, t3
				x0, x1, x2, x3 = x0>>16, x1>>16, x2>>16, x3>>16
			}
		}
		for k, s := range [lanes]uint32{s0, s1, s2, s3} {
			if l := &ls[k]; s != idle {
				l.at += i
				l.state = s
				if stopped {
					d.step2(b, l)
				}
			}
		}
		if d.full() {
			d.compact(&ls[0].state, &ls[1].state, &ls[2].state, &ls[3].state)
		}
	}
}

// notASCII are the bits that a pair of ASCII characters has not.
const notASCII = utf8.RuneSelf<<8 | utf8.RuneSelf

// step2 goes over a pair of bytes, and notes where it leads. It does not where a match
// has ended, and for what is not ASCII.
func (d *dfa) step2(b []byte, l *lane) {
	from, state, hits := l.at, l.state, len(l.hits)
	pair := binary.LittleEndian.Uint16(b[from:])
	t := d.twin[state|uint32(d.pairs[pair])]
	if int32(t) >= 0 {
		l.at, l.state = from+2, t
		return
	}
	d.step1(b, l)
	if l.at != from+1 || len(l.hits) > hits {
		return
	}
	d.step1(b, l)
	if pair&notASCII == 0 && l.at == from+2 && len(l.hits) == hits {
		d.twin[state|uint32(d.pairs[pair])] = l.state
	}
}
