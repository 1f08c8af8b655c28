package text

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Span is a range of offsets in [Text.String], End excluded.
type Span struct{ Start, End int }

// MatchKind says which differences were ignored for a match. The zero value is [Exact].
type MatchKind uint8

// Exact is a match of exactly the same characters. The others can be combined.
const (
	Exact       MatchKind = 0
	LineEndings MatchKind = 1 << (iota - 1) // LF against CRLF or CR
	Quotes                                  // curly against straight quotes
	LineNumbers                             // the line number prefixes of a Read in the text searched for
	Mark                                    // the byte order mark in the text searched for
)

// Note returns the phrase for the result of an edit, "" for an exact match.
func (h MatchKind) Note() string {
	var notes []string
	if h&LineNumbers != 0 {
		notes = append(notes, "the line number prefixes of old_string were removed")
	}
	if h&Mark != 0 {
		notes = append(notes, "the byte-order mark in old_string is that of the file, which was kept")
	}
	if h&LineEndings != 0 {
		notes = append(notes, "matched with the line endings of the file, which were kept")
	}
	if h&Quotes != 0 {
		notes = append(notes, "matched with curly and straight quotes taken as equal; the style of the file was kept")
	}
	return strings.Join(notes, "; ")
}

// Match says what an edit replaces.
type Match struct {
	Spans     []Span   // where the text was found, ascending, never overlapping
	New       []string // what to put there, in the line endings and quotes of the file
	MatchKind MatchKind
}

// ErrUnchanged is returned by [Find] when replacing would change nothing.
var ErrUnchanged = errors.New("the file already has new_string at that place: the edit would change nothing")

// ErrEmpty is returned by [Find] for an empty old text and a file that is not
// empty.
var ErrEmpty = errors.New("old_string is empty, but the file is not: give the text to replace, or use Write to " +
	"replace the whole file")

// Find looks for old in t and prepares its replacement by new. It tries these steps in order, each only if those
// before found nothing: the exact text; other line endings; other quotes; old without its byte order mark at the
// start of a file with a mark; old without the line number prefixes of a Read, if all its lines have one.
//
// If all is set, every match is replaced. Otherwise there must be exactly one match: overlapping matches count as
// several, and so do matches that Read shows alike although their line endings differ. A match by quotes or without
// prefixes must always be the only one, because it is less certain. With all, matches that differ only in line
// endings are replaced too: in a file with mixed endings some would otherwise stay unchanged without notice.
//
// The errors are [*NotFoundError], [*AmbiguousError], [ErrUnchanged] and [ErrEmpty].
func Find(t *Text, old, new string, all bool) (*Match, error) {
	if old == "" {
		if t.str != "" {
			return nil, ErrEmpty
		}
		return &Match{Spans: []Span{{}}, New: []string{new}}, nil
	}
	if m, err := find(t, old, new, all); m != nil || err != nil {
		return m, err
	}
	if bare, at, ok := stripNumbers(old); ok {
		if replacement, _, ok := stripNumbers(new); ok {
			new = replacement
		}
		m, err := find(t, bare, new, false)
		if several := (*AmbiguousError)(nil); errors.As(err, &several) {
			several.MatchKind |= LineNumbers
		}
		if err != nil {
			return nil, err
		}
		if m != nil && m.standsAt(t, at) {
			m.MatchKind |= LineNumbers
			return m, nil
		}
		if at == 0 {
			old = bare
		}
	}
	return nil, diagnose(t, old)
}

// find tries the steps up to the byte order mark. It returns nil, nil if none matches.
func find(t *Text, old, new string, all bool) (*Match, error) {
	spans := exactSpans(t.str, old)
	how := Exact
	if t.eol != LF && t.eol != None || strings.Contains(old, "\r") {
		if len(spans) == 0 || all && strings.Contains(old, "\n") {
			if folded := t.spansByEnding(old); len(folded) > len(spans) {
				spans, how = folded, LineEndings
			}
		} else if alike := t.alike(old); len(alike) > len(spans) {
			spans, how = alike, LineEndings
		}
	}
	if at, ok := t.atMark(old); ok && len(spans) > 0 {
		spans, how = append([]Span{at}, spans...), how|Mark
	}
	if len(spans) == 0 {
		spans, how = foldedSpans(t.str, old, true), Quotes
		if len(spans) > 0 && fold(t.str[spans[0].Start:spans[0].End], false) != t.str[spans[0].Start:spans[0].End] {
			how |= LineEndings
		}
	}
	if len(spans) == 0 {
		return findAtMark(t, old, new)
	}
	if len(spans) > 1 && (!all || how&Quotes != 0) || len(spans) > maxMatches {
		return nil, newAmbiguous(t.str, spans, how)
	}
	return replacement(t, withoutOverlaps(spans), old, new, how)
}

// alike returns the places that Read shows exactly as it shows old: those that may have CRLF where old has LF. If old
// contains a CR, the caller knows the difference, and alike returns nil.
func (t *Text) alike(old string) []Span {
	if t.eol != Mixed || !strings.Contains(old, "\n") || strings.Contains(old, "\r") {
		return nil
	}
	return slices.DeleteFunc(foldedSpans(t.str, old, false), func(sp Span) bool {
		return strings.ReplaceAll(t.str[sp.Start:sp.End], "\r\n", "\n") != old
	})
}

// atMark returns the range of old at the start of a file, without the byte order mark that both have: the mark is not
// part of the text.
func (t *Text) atMark(old string) (Span, bool) {
	bare, ok := strings.CutPrefix(old, bomChar)
	return Span{0, len(bare)}, ok && t.bom > 0 && bare != "" && strings.HasPrefix(t.str, bare)
}

// maxMatches bounds how many matches are replaced at once. Their positions need 32 bytes each.
const maxMatches = 5_000_000

// exactSpans returns the places of old in s, including overlapping ones, up to one more than maxMatches. A match that
// would begin between the two characters of a CRLF does not count: replacing it would split the line ending.
func exactSpans(s, old string) []Span {
	var spans []Span
	for at := 0; ; at++ {
		i := strings.Index(s[at:], old)
		if i < 0 || len(spans) > maxMatches {
			return spans
		}
		at += i
		if old[0] == '\n' && at > 0 && s[at-1] == '\r' {
			continue
		}
		spans = append(spans, Span{at, at + len(old)})
	}
}

// spansByEnding returns the places of old, with line endings ignored. If the text has only one kind of ending, it is
// put into old, which is several times faster than folding the text.
func (t *Text) spansByEnding(old string) []Span {
	if t.eol == Mixed {
		return foldedSpans(t.str, old, false)
	}
	return exactSpans(t.str, strings.ReplaceAll(fold(old, false), "\n", t.eol.sequence()))
}

// foldedSpans returns the places in s that equal old when both are folded.
func foldedSpans(s, old string, quotes bool) []Span {
	folded, needle := fold(s, quotes), fold(old, quotes)
	if folded == s && needle == old {
		return nil // nothing folds: the exact search has found all places
	}
	spans := exactSpans(folded, needle)
	starts, ends := make([]int, len(spans)), make([]int, len(spans))
	for i, sp := range spans {
		starts[i], ends[i] = sp.Start, sp.End
	}
	starts, ends = unfold(s, quotes, starts), unfold(s, quotes, ends)
	for i := range spans {
		spans[i] = Span{starts[i], ends[i]}
	}
	return spans
}

// withoutOverlaps returns the spans without those that overlap an earlier one, as a replacement from left to right
// would use them.
func withoutOverlaps(spans []Span) []Span {
	kept := spans[:1]
	for _, sp := range spans[1:] {
		if sp.Start >= kept[len(kept)-1].End {
			kept = append(kept, sp)
		}
	}
	return kept
}

func replacement(t *Text, spans []Span, old, new string, how MatchKind) (*Match, error) {
	m := &Match{Spans: spans, New: make([]string, len(spans)), MatchKind: how}
	changed := false
	// If old and new differ only in line endings or quotes, changing these is the purpose of the edit.
	literal := fold(old, true) == fold(new, true)
	for i, sp := range spans {
		with := new
		if sp.Start == 0 && t.bom > 0 && !strings.HasPrefix(t.str, bomChar) {
			with = strings.TrimPrefix(new, bomChar) // the file has it already
		}
		m.New[i] = restyle(t, sp, old, with, how, literal)
		changed = changed || m.New[i] != t.str[sp.Start:sp.End]
	}
	if !changed {
		return nil, ErrUnchanged
	}
	return m, nil
}

// maxLineList bounds how many line numbers an [AmbiguousError] lists.
const maxLineList = 20

// AmbiguousError reports that a text to be replaced once occurs several times,
// or that a text to be replaced everywhere occurs more than maxMatches times.
type AmbiguousError struct {
	Lines     []int     // the lines with a match, from 1; the first maxLineList and one more
	Count     int       // how many matches there are; counting stops after maxMatches
	MatchKind MatchKind // which differences were ignored to find them
	Places    string    // the first MaxPlaces matches with the lines around them, numbered
}

func newAmbiguous(s string, spans []Span, how MatchKind) *AmbiguousError {
	e := &AmbiguousError{Count: len(spans), MatchKind: how, Places: showPlaces(s, spans[:min(len(spans), MaxPlaces)])}
	line, at := 1, 0
	for _, sp := range spans {
		line += strings.Count(s[at:sp.Start], "\n")
		at = sp.Start
		if n := len(e.Lines); n > 0 && e.Lines[n-1] == line {
			continue
		}
		if e.Lines = append(e.Lines, line); len(e.Lines) > maxLineList {
			break // one more than is listed: Error shows an ellipsis for it
		}
	}
	return e
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	if e.Count > maxMatches {
		fmt.Fprintf(&b, "old_string occurs more than %d times", maxMatches)
	} else {
		fmt.Fprintf(&b, "old_string occurs %d times", e.Count)
	}
	b.WriteString(", on line")
	if len(e.Lines) > 1 {
		b.WriteByte('s')
	}
	b.WriteByte(' ')
	for i, n := range e.Lines {
		if i == maxLineList {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	switch {
	case e.Count > maxMatches:
		b.WriteString(": too many to replace at once. Use a command such as sed")
	case e.MatchKind&Quotes != 0:
		b.WriteString(" (curly and straight quotes taken as equal; none is exact). Give old_string with the quotes of the " +
			"file, and enough lines around it to be the only one")
	case e.MatchKind&LineNumbers != 0:
		b.WriteString(" (without its line number prefixes). Give old_string without them, and enough lines around it to be " +
			"the only one")
	case e.MatchKind&LineEndings != 0:
		b.WriteString(" (LF and CRLF taken as equal, which Read shows alike). Add lines around it until it is the only " +
			"one, or set replace_all to change every one, each with its own line endings")
	default:
		b.WriteString(". Add lines around it until it is the only one, or set replace_all to change every one")
	}
	if e.Places != "" {
		b.WriteString(":\n" + e.Places)
	}
	return b.String()
}
