package pattern

import (
	"encoding/binary"
	"regexp/syntax"
)

// maxClasses is how many classes of runes outside of ASCII get a column of
// the automaton's table; the rest is computed each time.
const maxClasses = 64

// classes sorts runes by which instructions accept them and whether they are
// word characters: runes of one class lead to the same state from everywhere.
type classes struct {
	prog  *syntax.Prog
	basic []uint8        // class + 1 of the runes below 0x10000, 0: not known
	other map[rune]uint8 // of the others
	bad   int            // of runeInvalid
	ids   map[string]uint8
	key   []byte
}

func (c *classes) of(r rune) int {
	if c.ids == nil {
		c.basic = make([]uint8, 1<<16)
		c.other = map[rune]uint8{}
		c.ids = map[string]uint8{}
		c.bad = int(c.find(runeInvalid))
	}
	if r == runeInvalid {
		return c.bad
	}
	if 0 <= r && int(r) < len(c.basic) {
		if c.basic[r] == 0 {
			c.basic[r] = c.find(r) + 1
		}
		return int(c.basic[r] - 1)
	}
	k, ok := c.other[r]
	if !ok {
		k = c.find(r)
		c.other[r] = k
	}
	return int(k)
}

func (c *classes) find(r rune) uint8 {
	k := c.key[:0]
	switch {
	case r == runeInvalid:
		k = append(k, 'x')
	case IsWord(r):
		k = append(k, 'w')
	}
	for pc := range c.prog.Inst {
		switch in := &c.prog.Inst[pc]; in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if r >= 0 && in.MatchRune(r) {
				k = binary.LittleEndian.AppendUint32(k, uint32(pc))
			}
		}
	}
	c.key = k
	id, ok := c.ids[string(k)]
	if !ok && len(c.ids) < maxClasses {
		id = uint8(len(c.ids))
		c.ids[string(k)] = id
	} else if !ok {
		id = maxClasses
	}
	return id
}
