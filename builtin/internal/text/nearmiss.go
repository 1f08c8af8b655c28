package text

import (
	"fmt"
	"strings"
	"unicode"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// A region compares the text that was searched for with a place in the file.
type region struct {
	rows        []row
	first, last int // its lines in the file, from 1
}

// row is a line of a region. Its mark is '-' if only the text has the line, '+' if only the file has it, ' ' if both
// have it.
type row struct {
	mark   byte
	text   string
	number int // its line in the file, 0 for '-'
	differ int // where the two lines of a pair begin to differ, -1 for a line without a pair
}

// compareRegion compares want with the lines of the file that begin at index at. The place in the file may have a few
// lines more or fewer.
func compareRegion(want, have []string, at int) *region {
	from, to := max(0, at-lineTolerance), min(len(have), at+len(want)+lineTolerance)
	r := &region{}
	a, b := strings.Join(want, "\n")+"\n", strings.Join(have[from:to], "\n")+"\n"
	var deleted, inserted []int
	matched := false
	for _, e := range textdiff.Edits(a, b, diffOptions(a, b)...) {
		switch e.Op {
		case diff.Delete:
			deleted = append(deleted, e.LineNoX)
		case diff.Insert:
			inserted = append(inserted, from+e.LineNoY)
		case diff.Match:
			if !matched { // lines before the first common one are only in the range because of lineTolerance
				inserted = inserted[max(0, len(inserted)-len(deleted)):]
			}
			r.addRun(want, have, deleted, inserted)
			deleted, inserted, matched = nil, nil, true
			r.add(row{mark: ' ', text: want[e.LineNoX], number: from + e.LineNoY + 1, differ: -1})
		}
	}
	if !matched {
		inserted = inserted[min(at-from, len(inserted)):]
	}
	r.addRun(want, have, deleted, inserted[:min(len(inserted), len(deleted))])
	return r
}

// comparePlace compares want with a place that looks like it. The first and last lines of place may be parts of
// lines; number is the number of the first.
func comparePlace(want, place []string, number int) *region {
	r := &region{}
	if len(want) != len(place) {
		for _, line := range want {
			r.add(row{mark: '-', text: line, differ: -1})
		}
		for i, line := range place {
			r.add(row{mark: '+', text: line, number: number + i, differ: -1})
		}
		return r
	}
	for i, line := range place {
		if want[i] == line {
			r.add(row{mark: ' ', text: line, number: number + i, differ: -1})
		} else {
			r.addPair(want[i], line, number+i)
		}
	}
	return r
}

func (r *region) add(l row) {
	if l.number > 0 {
		if r.first == 0 {
			r.first = l.number
		}
		r.last = l.number
	}
	r.rows = append(r.rows, l)
}

// addRun adds lines that differ: in pairs if both sides have the same number of lines.
func (r *region) addRun(want, have []string, deleted, inserted []int) {
	if len(deleted) == len(inserted) {
		for k, j := range deleted {
			r.addPair(want[j], have[inserted[k]], inserted[k]+1)
		}
		return
	}
	for _, j := range deleted {
		r.add(row{mark: '-', text: want[j], differ: -1})
	}
	for _, i := range inserted {
		r.add(row{mark: '+', text: have[i], number: i + 1, differ: -1})
	}
}

// addPair adds a line of the text that was searched for, and the line of the file in the same place.
func (r *region) addPair(want, have string, number int) {
	p := commonPrefix(want, have)
	if LookAlike(visible(want)) == LookAlike(visible(have)) {
		same := commonSuffix(want[p:], have[p:])
		want, have = markUnlike(want, p, same), markUnlike(have, p, same)
	}
	r.add(row{'-', want, 0, p})
	r.add(row{'+', have, number, p})
}

// markUnlike replaces the printable non-ASCII characters of a line by their code points, except in the first p and
// the last q bytes.
func markUnlike(line string, p, q int) string {
	var b strings.Builder
	b.WriteString(line[:p])
	for _, c := range line[p : len(line)-q] {
		if c < 0x7f || !unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "<U+%04X>", c)
		}
	}
	b.WriteString(line[len(line)-q:])
	return b.String()
}

// show returns the rows, beginning a few before the first that differs.
func (r *region) show() string {
	start := 0
	for start < len(r.rows) && r.rows[start].mark == ' ' {
		start++
	}
	start = max(0, start-leadingRows)
	end := min(len(r.rows), start+maxRegionRows)
	var b strings.Builder
	if start > 0 {
		fmt.Fprintf(&b, "       … %s before this equal\n", counted(start, "line"))
	}
	for _, l := range r.rows[start:end] {
		l.show(&b)
	}
	if end < len(r.rows) {
		fmt.Fprintf(&b, "       … %s\n", counted(len(r.rows)-end, "more line"))
	}
	return b.String()
}

func (l row) show(b *strings.Builder) {
	shown := shorten(l.text, max(0, l.differ))
	switch l.mark {
	case ' ':
		fmt.Fprintf(b, "  %5d→%s\n", l.number, shown)
	case '-':
		fmt.Fprintf(b, "-      →%s\n", visible(shown))
	case '+':
		fmt.Fprintf(b, "+ %5d→%s\n", l.number, visible(shown))
		if l.differ >= 0 {
			fmt.Fprintf(b, "        %s^ differs from here\n", strings.Repeat(" ", caret(l.text, l.differ)))
		}
	}
}

// shorten returns a piece of a long line that contains offset at.
func shorten(line string, at int) string {
	runes := []rune(line)
	if len(runes) <= maxShownLine {
		return line
	}
	start := shownFrom(line, at)
	out := string(runes[start:min(len(runes), start+maxShownLine)])
	if start > 0 {
		out = "…" + out
	}
	if start+maxShownLine < len(runes) {
		out += "…"
	}
	return out
}

// shownFrom returns the index of the first character that shorten shows.
func shownFrom(line string, at int) int {
	n := len([]rune(line))
	if n <= maxShownLine {
		return 0
	}
	return max(0, min(len([]rune(line[:at]))-maxShownLine/2, n-maxShownLine))
}

// caret returns the column of offset at in the line as shown.
func caret(line string, at int) int {
	start := shownFrom(line, at)
	column := len([]rune(visible(string([]rune(line[:at])[start:]))))
	if start > 0 {
		column++ // the ellipsis
	}
	return column
}

// visible replaces invisible characters. A single space between two words stays, because it cannot be mistaken for
// anything else.
func visible(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r == ' ' && i > 0 && i+1 < len(runes) && !unicode.IsSpace(runes[i-1]) && !unicode.IsSpace(runes[i+1]):
			b.WriteByte(' ')
		case r == ' ':
			b.WriteRune('·')
		case r == '\t':
			b.WriteRune('⇥')
		case r == '\r':
			b.WriteRune('␍')
		case unicode.Is(unicode.Zs, r) || !unicode.IsPrint(r) || 0x300 <= r && r < 0x370: // an accent of its own
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
