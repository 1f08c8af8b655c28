package glob

import "strings"

// opKind is what one step of a pattern accepts.
type opKind uint8

const (
	opByte  opKind = iota // the byte c
	opAny                 // one byte, not a slash
	opClass               // one byte of the class (globset's classes take slashes)
	opStar                // any bytes but slashes
	opRest                // any bytes
	opDirs                // any number of whole directories, with their slashes
)

type op struct {
	kind  opKind
	c     byte
	class *[4]uint64
}

func (o op) in(c byte) bool { return o.class[c>>6]&(1<<(c&63)) != 0 }

// matcher backtracks, but never tries one pair of step and position twice:
// seen holds the pairs where a wildcard has failed.
type matcher struct {
	ops  []op
	path string
	seen []uint64
	few  [16]uint64
}

func matchOps(ops []op, path string) bool {
	m := matcher{ops: ops, path: path}
	return m.match(0, 0)
}

func (m *matcher) match(k, i int) bool {
	for ; k < len(m.ops); k++ {
		o := m.ops[k]
		switch o.kind {
		case opStar, opRest, opDirs:
			return m.wild(k, i)
		}
		if i >= len(m.path) {
			return false
		}
		c := m.path[i]
		switch o.kind {
		case opByte:
			if c != o.c {
				return false
			}
		case opAny:
			if c == '/' {
				return false
			}
		case opClass:
			if !o.in(c) {
				return false
			}
		}
		i++
	}
	return i == len(m.path)
}

// wild tries every length of text that the wildcard k can match from position i on.
func (m *matcher) wild(k, i int) bool {
	if m.enter(k, i) {
		return false
	}
	kind := m.ops[k].kind
	if kind != opDirs && k == len(m.ops)-1 {
		return kind == opRest || !strings.Contains(m.path[i:], "/")
	}
	for ; ; i++ {
		if m.match(k+1, i) {
			return true
		}
		if kind == opDirs {
			for i < len(m.path) && m.path[i] != '/' {
				i++
			}
		}
		if i >= len(m.path) || kind == opStar && m.path[i] == '/' {
			return false
		}
	}
}

// enter marks the pair of step k and position i, and reports whether it was marked before.
func (m *matcher) enter(k, i int) bool {
	if m.seen == nil {
		m.seen = m.few[:]
		if n := (len(m.ops)*(len(m.path)+1) + 63) / 64; n > len(m.seen) {
			m.seen = make([]uint64, n)
		}
	}
	at := k*(len(m.path)+1) + i
	was := m.seen[at>>6]&(1<<(at&63)) != 0
	m.seen[at>>6] |= 1 << (at & 63)
	return was
}
