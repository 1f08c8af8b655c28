package text

import "strings"

// Limits on how places of a text are shown.
const (
	// MaxPlaces is how many places of an old_string that is not unique are shown.
	MaxPlaces = 5
	// placeContext is how many lines are shown before and after a place.
	placeContext = 2
	// placeLines is up to how many lines a place is shown whole. Of a longer place only the lines around its ends are
	// shown.
	placeLines = 8
)

// An Excerpt is one place of a file with the lines around it.
type Excerpt struct {
	Shown       string // as Read shows it; the middle of a long place is left out
	First, Last int    // its lines, from 1
	Start       int64  // where Raw begins in the file
	Raw         []byte // its bytes in the file
}

// Excerpt returns the lines of a place and the lines around it. It reports false if the range begins or ends within a
// single character of the file.
func (t *Text) Excerpt(sp Span) (e Excerpt, ok bool) {
	from, end := linesAround(t.str, sp.Start, lastOf(t.str, sp), placeContext)
	var near mark
	start, ok1 := t.rawOffset(from, &near)
	stop, ok2 := t.rawOffset(end, &near)
	if !ok1 || !ok2 {
		return e, false
	}
	e.First = 1 + strings.Count(t.str[:from], "\n")
	e.Last = e.First + len(splitLines(t.str[from:end])) - 1
	e.Start, e.Raw = int64(start), t.raw[start:stop]
	e.Shown = showPlaces(t.str, []Span{sp})
	return e, true
}

// lastOf returns an offset on the last line of a place. If the place ends in a newline, that is the offset of this
// newline.
func lastOf(s string, sp Span) int {
	if sp.End > sp.Start && s[sp.End-1] == '\n' {
		return sp.End - 1
	}
	return sp.End
}

// showPlaces returns the lines of places, which are in ascending order, with the lines around them, numbered as Read
// does. No line is shown twice.
func showPlaces(s string, places []Span) string {
	var b strings.Builder
	line, at, shown := 1, 0, 0
	for _, place := range places {
		for _, part := range partsOf(s, place) {
			from, end := linesAround(s, part.Start, part.End, placeContext)
			if from = max(from, shown); from >= end {
				continue
			}
			if shown > 0 && from > shown {
				b.WriteString("     …\n")
			}
			line += strings.Count(s[at:from], "\n")
			at, shown = from, end
			var lines []Line
			for _, text := range splitLines(s[from:end]) {
				lines = append(lines, Line{Text: strings.TrimSuffix(text, "\r")})
			}
			Number(&b, lines, line, maxShownLine)
		}
	}
	return b.String()
}

// partsOf returns the place itself, or its two ends if it has many lines.
func partsOf(s string, place Span) []Span {
	last := lastOf(s, place)
	if strings.Count(s[place.Start:last], "\n") < placeLines {
		return []Span{{place.Start, last}}
	}
	return []Span{{place.Start, place.Start}, {last, last}}
}
