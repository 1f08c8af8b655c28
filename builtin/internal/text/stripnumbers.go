package text

import (
	"regexp"
	"strconv"
	"strings"
)

// numberPrefix is what Read puts before each line, see [Number], or with a tab what cat -n and other hosts' tools do.
var numberPrefix = regexp.MustCompile(`^[ \t]*([0-9]+)(→|\t)`)

// stripNumbers removes the line number prefixes of s. It is not ok unless every line has one and something is
// left. Before tabs the numbers must be those of lines that follow one another: what a table has in its first
// column is no line number. Of a single line even that says little: at is where it must stand, else 0.
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

// standsAt reports whether a match begins on a line, counted from 1; 0 is any.
func (m *Match) standsAt(t *Text, line int) bool {
	return line == 0 || strings.Count(t.str[:m.Spans[0].Start], "\n")+1 == line
}
