package pattern

import (
	"regexp/syntax"
	"unicode/utf8"
)

// ByteRun is a sequence that every match contains: one character of each class of ASCII
// characters.
type ByteRun = [][]byte

// minRun is the shortest run that is used: an index knows three bytes in a row.
const minRun = 3

// byteRuns lists the runs of a simplified regexp.
func byteRuns(re *syntax.Regexp) []ByteRun {
	var f runCollector
	f.walk(re)
	f.end()
	return f.found
}

// runCollector collects runs.
type runCollector struct {
	found []ByteRun
	run   ByteRun
}

func (f *runCollector) end() {
	if len(f.run) >= minRun {
		f.found = append(f.found, f.run)
	}
	f.run = nil
}

// add adds a class to the current run; nil, for an unknown class, ends it.
func (f *runCollector) add(c []byte) {
	if c == nil {
		f.end()
		return
	}
	f.run = append(f.run, c)
}

func (f *runCollector) walk(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture:
		for _, s := range re.Sub {
			f.walk(s)
		}
	case syntax.OpPlus: // the first repetition follows what precedes, the last one precedes what follows
		f.walk(re.Sub[0])
		f.end()
		f.walk(re.Sub[0])
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			f.add(literalClass(r, re.Flags&syntax.FoldCase != 0))
		}
	case syntax.OpCharClass:
		f.add(classOf(set(re.Rune)))
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
	default:
		f.end()
	}
}

// literalClass returns the class of one character, or nil if the character may match one outside of ASCII.
func literalClass(r rune, fold bool) []byte {
	switch {
	case r >= utf8.RuneSelf || fold && (r|caseBit == 'k' || r|caseBit == 's'):
		return nil
	case fold && 'a' <= r|caseBit && r|caseBit <= 'z':
		return []byte{byte(r &^ caseBit), byte(r | caseBit)}
	}
	return []byte{byte(r)}
}

// caseBit is the bit in which a lower-case ASCII letter differs from its upper case.
const caseBit = 'a' - 'A'

// classOf returns a set as a class, or nil if the set is empty or has members outside of ASCII.
func classOf(s set) (c []byte) {
	for i := 0; i < len(s); i += 2 {
		if s[i+1] >= utf8.RuneSelf {
			return nil
		}
		for r := s[i]; r <= s[i+1]; r++ {
			c = append(c, byte(r))
		}
	}
	return c
}
