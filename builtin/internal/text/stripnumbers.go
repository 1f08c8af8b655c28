package text

import (
	"regexp"
	"strconv"
	"strings"
)

// numberPrefix matches what Read puts before each line, see [Number], or the number and tab of cat -n and of other
// hosts' tools.
var numberPrefix = regexp.MustCompile(`^[ \t]*([0-9]+)(→|\t)`)

// stripNumbers removes the line number prefixes of s. It reports false unless every line has one and some text is
// left. Numbers before tabs must be consecutive, because the first column of a table may hold numbers too. For a
// single line with a tab that is weak evidence: at is then the line where the match must be, otherwise 0.
func stripNumbers(s string) (bare string, at int, ok bool) {
	var b strings.Builder
	next, lines := 0, 0
	for line := range strings.Lines(s) {
		m := numberPrefix.FindStringSubmatch(line)
		if m == nil {
			return "", 0, false
		}
		if n, err := strconv.Atoi(m[1]); m[2] == "\t" {
			if err != nil || n == 0 || lines > 0 && n != next {
				return "", 0, false
			}
			next = n + 1
		}
		lines++
		b.WriteString(line[len(m[0]):])
	}
	if lines == 1 && next > 0 {
		at = next - 1
	}
	return b.String(), at, b.Len() > 0
}

// standsAt reports whether a match begins on the given line, counted from 1. With 0 any line will do.
func (m *Match) standsAt(t *Text, line int) bool {
	return line == 0 || strings.Count(t.str[:m.Spans[0].Start], "\n")+1 == line
}
