package pattern

import (
	"regexp/syntax"
	"unicode/utf8"
)

// ByteRun is a sequence that every match contains: one character of each class of ASCII
// characters.
type ByteRun = [][]byte

// minRun is how long a run is at least: as long as what an index knows of texts.
const minRun = 3

// byteRuns lists the runs of a simplified regexp.
func byteRuns(re *syntax.Regexp) []ByteRun {
	var f runCollector
	f.walk(re)
	f.end()
	return f.found
}

// runCollector gathers the run under way.
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

// add continues with a class; one that is not known ends the run.
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
	case syntax.OpPlus: // what precedes comes before the first, what follows after the last
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

// literalClass is the class of one character; nil if it may be one outside of ASCII.
func literalClass(r rune, fold bool) []byte {
	switch {
	case r >= utf8.RuneSelf || fold && (r|caseBit == 'k' || r|caseBit == 's'):
		return nil
	case fold && 'a' <= r|caseBit && r|caseBit <= 'z':
		return []byte{byte(r &^ caseBit), byte(r | caseBit)}
	}
	return []byte{byte(r)}
}

// caseBit is what a letter of ASCII has more in lower case.
const caseBit = 'a' - 'A'

// classOf is the class of a set; nil if that has members outside of ASCII, or none.
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
