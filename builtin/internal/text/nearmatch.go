package text

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Limits of a diagnosis: how much is examined, and how much is shown.
const (
	maxDiagnosed    = 16 << 20 // bytes of the file
	maxOldLines     = 200      // lines of the text searched for that decide where it is
	maxRegionRows   = 40       // lines shown, of both texts together
	leadingRows     = 3        // lines shown before the first that differs
	maxShownLine    = 240      // characters shown of a line
	maxCandidates   = 8        // places compared in full
	minSimilarity   = 0.45     // below this nothing is shown: it would mislead
	lineTolerance   = 2        // lines that may be missing or added on one side
	maxSameLines    = 8        // up to how many places a line counts as a hint: lines such as "}" are everywhere
	gramTableSize   = 1 << 14  // slots of the set of trigrams, a power of two
	maxComparedLine = 2000     // bytes of a line that are compared
	sameKey         = 0.98     // weight of a line that differs in whitespace or case only
	alike           = 0.95     // greatest weight of a line that differs in more
)

// NotFoundError reports that a text to be replaced does not occur, and shows
// the place most like it.
type NotFoundError struct {
	// First and Last are the lines of the nearest place, from 1. They are 0 if
	// nothing is like the text.
	First, Last int

	// Region shows the lines of that place next to those of the text. Where they differ, whitespace is made visible.
	Region string

	// Reason says what all differences have in common, or is empty: "only the indentation differs: tabs in the file,
	// spaces in old_string".
	Reason string

	// Escaped says that the text was found once an escaping was added or removed. Reason says which.
	Escaped bool

	Partial bool // the file is so large that only its beginning was compared
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString("old_string was not found in the file")
	if e.Partial {
		fmt.Fprintf(&b, " (for a near miss only its first %d MiB were compared)", maxDiagnosed>>20)
	}
	if e.First == 0 {
		b.WriteString(", and no place is like it. Read the file again, or use Grep to find the text.")
		return b.String()
	}
	if e.Escaped {
		fmt.Fprintf(&b, ": %s. This is what it has there:\n%sNothing was changed. Give old_string, and new_string, as the "+
			"file has it.", e.Reason, e.Region)
		return b.String()
	}
	if e.First == e.Last {
		fmt.Fprintf(&b, ". The nearest text is line %d", e.First)
	} else {
		fmt.Fprintf(&b, ". The nearest text is lines %d-%d", e.First, e.Last)
	}
	if e.Reason != "" {
		b.WriteString("; " + e.Reason)
	}
	b.WriteString(" (- your old_string, + the file; in lines that differ · is a space at an end or next to another one, " +
		"⇥ a tab, ␍ a carriage return")
	if code := charCode.FindStringSubmatch(e.Region); code != nil {
		fmt.Fprintf(&b, `, %s the character \u%s`, code[0], strings.ToLower(code[1]))
	}
	b.WriteString("):\n" + e.Region + "Nothing was changed. Give old_string as it is in the file, without these marks.")
	return b.String()
}

// charCode matches a character that is shown as its code point.
var charCode = regexp.MustCompile(`<U\+([0-9A-F]{4})>`)

// diagnose finds the place in t most like old.
func diagnose(t *Text, old string) *NotFoundError {
	if e := diagnoseEscaped(t, old); e != nil {
		return e
	}
	e := &NotFoundError{}
	s := t.str
	if len(s) > maxDiagnosed {
		s, e.Partial = s[:maxDiagnosed], true
	}
	want, have := splitLines(old), splitLines(s)
	if !strings.Contains(old, "\r") { // then differing line endings do not matter
		for i := range have {
			have[i] = strings.TrimSuffix(have[i], "\r")
		}
	}
	if e.alike(old, want, have) {
		return e
	}
	sample := want[:min(len(want), maxOldLines)]
	best, score := 0, 0.0
	for _, at := range candidates(sample, have) {
		if got := similarity(sample, have[at:]); got > score {
			best, score = at, got
		}
	}
	if score < minSimilarity {
		return e
	}
	if e.Reason = reason(want, have[best:min(len(have), best+len(want))]); e.Reason == "" &&
		best+len(want) > len(have) {
		e.Reason = "the file ends before old_string does"
	}
	e.show(compareRegion(want, have, best))
	return e
}

func (e *NotFoundError) show(r *region) {
	e.First, e.Last = r.first, r.last
	e.Region = r.show()
}

// splitLines splits s into lines without "\n"; a carriage return stays, since
// it may be what differs.
func splitLines(s string) []string {
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// squeeze returns a line with each run of whitespace replaced by one space, and none at its ends.
func squeeze(line string) string {
	return strings.Join(strings.Fields(line), " ")
}

// candidates returns the indices of lines at which want may begin. They are found by lines that are equal apart from
// whitespace, weighted by length, and by the lines that share most trigrams with the longest line of want.
func candidates(want, have []string) []int {
	index := make(map[string][]int, len(want))
	longest := 0
	for j, line := range want {
		k := key(line)
		if k != "" && len(index[k]) < maxSameLines {
			index[k] = append(index[k], j)
		}
		if len(k) > len(key(want[longest])) {
			longest = j
		}
	}
	grams := newGramSet(key(want[longest]))
	votes := make([]float64, len(have))
	var buf []byte
	for i, line := range have {
		buf = appendKey(buf[:0], line)
		for _, j := range index[string(buf)] {
			if i >= j {
				votes[i-j] += float64(len(buf))
			}
		}
		if i >= longest {
			votes[i-longest] += grams.similarity(buf) * float64(len(buf)) / 2
		}
	}
	return highest(votes, maxCandidates)
}

// key returns the form in which lines are compared: without differences in whitespace, in the case of ASCII letters,
// and in how accents are encoded.
func key(line string) string { return string(appendKey(nil, line)) }

// appendKey appends key(line) to buf.
func appendKey(buf []byte, line string) []byte {
	line = norm.NFC.String(line[:min(len(line), maxComparedLine)])
	for field := range strings.FieldsSeq(line) {
		if len(buf) > 0 {
			buf = append(buf, ' ')
		}
		buf = append(buf, field...)
	}
	for i, c := range buf {
		if 'A' <= c && c <= 'Z' {
			buf[i] = c + 'a' - 'A'
		}
	}
	return buf
}

// highest returns the indices of the n highest values above 0, in descending order of value. Among equal values the
// first comes first.
func highest(values []float64, n int) []int {
	var top []int
	for i, v := range values {
		if v <= 0 || len(top) == n && v <= values[top[n-1]] {
			continue
		}
		at := len(top)
		for at > 0 && values[top[at-1]] < v {
			at--
		}
		top = append(top, 0)
		copy(top[at+1:], top[at:])
		top[at] = i
		top = top[:min(len(top), n)]
	}
	return top
}

// similarity returns how similar want is to the beginning of have, from 0 to 1. Each line is compared with the lines
// of have at about the same index. Long lines count for more.
func similarity(want, have []string) float64 {
	total, sum := 0.0, 0.0
	for j, line := range want {
		a := key(line)
		weight := float64(len(a)) + 1
		total += weight
		grams, best := newGramSet(a), 0.0
		for i := max(0, j-lineTolerance); i <= min(len(have)-1, j+lineTolerance) && best < 1; i++ {
			switch k := key(have[i]); {
			case line == have[i]:
				best = 1
			case a == k:
				best = max(best, sameKey)
			default:
				best = max(best, alike*grams.similarity([]byte(k)))
			}
		}
		sum += weight * best
	}
	return sum / total
}

// A gramSet holds the trigrams of a line, by hash.
type gramSet struct {
	has   []bool
	count int
}

func newGramSet(line string) *gramSet {
	g := &gramSet{has: make([]bool, gramTableSize)}
	for i := 0; i+3 <= len(line); i++ {
		g.count++
		g.has[gram(line[i], line[i+1], line[i+2])] = true
	}
	return g
}

func gram(a, b, c byte) int {
	return int((uint32(a)*0x9e3779b1 ^ uint32(b)*0x85ebca6b ^ uint32(c)*0xc2b2ae35) >> 8 & (gramTableSize - 1))
}

// similarity returns the Dice coefficient of the trigrams of line and those of the set.
func (g *gramSet) similarity(line []byte) float64 {
	if g.count == 0 || len(line) < 3 {
		return 0
	}
	shared := 0
	for i := 0; i+3 <= len(line); i++ {
		if g.has[gram(line[i], line[i+1], line[i+2])] {
			shared++
		}
	}
	n := len(line) - 2
	return 2 * float64(min(shared, g.count)) / float64(n+g.count)
}

// reason says what all differences between want and have have in common, or returns "".
func reason(want, have []string) string {
	if len(have) < len(want) {
		return ""
	}
	same := func(norm func(string) string) bool {
		for j := range want {
			if norm(want[j]) != norm(have[j]) {
				return false
			}
		}
		return true
	}
	trimRight := func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }
	switch {
	case same(trimRight):
		return "only whitespace at the ends of lines differs"
	case same(strings.TrimSpace):
		return "only the indentation differs" + indentStyles(want, have)
	case same(squeeze):
		return "only whitespace differs"
	case same(LookAlike):
		return "only invisible or look-alike characters differ"
	case same(func(s string) string { return strings.ToLower(squeeze(s)) }):
		return "only upper and lower case differ"
	case same(skeleton):
		return "only whitespace, upper and lower case, and invisible or look-alike characters differ"
	}
	return ""
}

// indentStyles returns a note if one side indents with tabs and the other does not, otherwise "".
func indentStyles(want, have []string) string {
	tabs := func(lines []string) bool {
		for _, l := range lines {
			if strings.HasPrefix(strings.TrimLeft(l, " "), "\t") {
				return true
			}
		}
		return false
	}
	switch w, h := tabs(want), tabs(have); {
	case h && !w:
		return ": tabs in the file, spaces in old_string"
	case w && !h:
		return ": spaces in the file, tabs in old_string"
	}
	return ""
}
