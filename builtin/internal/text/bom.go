package text

import (
	"errors"
	"strings"
)

// errMark is returned by [Find] if the edit would only remove the byte order mark.
var errMark = errors.New("the byte-order mark at the start of the file is not part of its text, and edits keep it. " +
	`A command takes it away: sed -i '1s/^\xEF\xBB\xBF//' FILE, or iconv if the file is not UTF-8`)

// findAtMark looks for an old that begins with a byte order mark, at the start of a file that begins with one too:
// Read does not show the mark, but other programs do. It returns nil, nil if there is no such match.
func findAtMark(t *Text, old, new string) (*Match, error) {
	bare, ok := strings.CutPrefix(old, bomChar)
	if !ok || t.bom == 0 {
		return nil, nil
	}
	new = strings.TrimPrefix(new, bomChar)
	switch {
	case bare == new:
		return nil, errMark
	case bare == "":
		return &Match{Spans: []Span{{}}, New: []string{new}, MatchKind: Mark}, nil
	case strings.HasPrefix(t.str, bare):
		return replacement(t, []Span{{0, len(bare)}}, bare, new, Mark)
	}
	for _, how := range []MatchKind{LineEndings, Quotes} {
		if spans := foldedSpans(t.str, bare, how == Quotes); len(spans) > 0 && spans[0].Start == 0 {
			return replacement(t, spans[:1], bare, new, Mark|how)
		}
	}
	return nil, nil
}
