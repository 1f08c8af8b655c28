package text

import (
	"fmt"
	"strings"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// UnmappableError reports text that the charset of the file cannot hold.
type UnmappableError struct {
	Char    rune
	Charset string
}

func (e *UnmappableError) Error() string {
	return fmt.Sprintf("the file is encoded in %s, which has no character %q (U+%04X); nothing was written. Use other "+
		"characters, or convert the file to UTF-8 first (iconv -f %[1]s -t utf-8)",
		e.Charset, e.Char, e.Char)
}

// sharedLen is the length from which a run of unchanged bytes is not copied: the new content then refers to the
// memory of the old one.
const sharedLen = 64 << 10

// Apply returns the content of the file with the replacements of m made. It returns the content in pieces, so that
// the unchanged parts of a large file are not held twice. Only bytes in the ranges change, and of those only the
// lines that differ. The error is an [*UnmappableError] if the charset lacks a character, or says that a range cannot
// be replaced without changing a byte next to it.
func Apply(t *Text, m *Match) ([][]byte, error) {
	if t.charset.enc == nil {
		return t.splice(m, sharedLen), nil
	}
	out, err := t.spliceMapped(m)
	if err != nil {
		return nil, err
	}
	// A stray lead byte before a range could merge with the first byte of the new text, so the result is decoded and
	// compared with what was intended.
	if got := t.With(out).str; got != m.result(t.str) {
		return nil, fmt.Errorf("the file has bytes next to the edit that are not valid %s and would merge with the new "+
			"text; nothing was written", t.charset.name)
	}
	return [][]byte{out}, nil
}

// splice makes the replacements in a UTF-8 text. Unchanged runs of at least that many bytes share the memory of the
// text.
func (t *Text) splice(m *Match, shared int) [][]byte {
	var pieces [][]byte
	var piece []byte // the last one, still growing
	keep := func(raw []byte) {
		if len(raw) < shared {
			if piece == nil {
				piece = make([]byte, 0, min(shared, len(t.raw)))
			}
			piece = append(piece, raw...)
			return
		}
		if len(piece) > 0 {
			pieces = append(pieces, piece)
		}
		pieces, piece = append(pieces, raw), nil
	}
	done := 0
	for i, sp := range m.Spans {
		keep(t.raw[done : sp.Start+t.bom])
		piece = append(piece, m.New[i]...)
		done = sp.End + t.bom
	}
	keep(t.raw[done:])
	if len(piece) > 0 {
		pieces = append(pieces, piece)
	}
	return pieces
}

// spliceMapped makes the replacements in any other charset.
func (t *Text) spliceMapped(m *Match) ([]byte, error) {
	var out []byte
	done := 0
	var at mark
	for i, sp := range m.Spans {
		for _, c := range changes(t.str[sp.Start:sp.End], m.New[i]) {
			start, ok1 := t.rawOffset(sp.Start+c.Start, &at)
			end, ok2 := t.rawOffset(sp.Start+c.End, &at)
			if !ok1 || !ok2 {
				return nil, fmt.Errorf("the edit begins or ends inside a character of the file (%s); include the whole character",
					t.charset.name)
			}
			enc, err := t.charset.encode(c.text)
			if err != nil {
				return nil, err
			}
			out = append(append(out, t.raw[done:start]...), enc...)
			done = end
		}
	}
	return append(out, t.raw[done:]...), nil
}

// change is a part of a replacement, with offsets in the text replaced.
type change struct {
	Span
	text string
}

// changes returns the parts in which old and new differ, line by line, without the common start and end of each pair
// of lines. So a character that does not change keeps its code in charsets that have two codes for it.
func changes(old, new string) []change {
	var out []change
	var deleted, inserted []string // the current run of changed lines
	at := 0
	flush := func() {
		out = appendRun(out, at, deleted, inserted)
		for _, line := range deleted {
			at += len(line)
		}
		deleted, inserted = nil, nil
	}
	for _, e := range textdiff.Edits(old, new, diffOptions(old, new)...) {
		switch e.Op {
		case diff.Delete:
			deleted = append(deleted, e.Line)
		case diff.Insert:
			inserted = append(inserted, e.Line)
		case diff.Match:
			flush()
			at += len(e.Line)
		}
	}
	flush()
	return out
}

// appendRun appends the changes that replace the deleted lines, which begin at offset at. It appends one change per
// line if as many lines were inserted as deleted, and otherwise a single one.
func appendRun(out []change, at int, deleted, inserted []string) []change {
	if len(deleted) != len(inserted) {
		deleted, inserted = []string{strings.Join(deleted, "")}, []string{strings.Join(inserted, "")}
	}
	for i, was := range deleted {
		text := inserted[i]
		p := commonPrefix(was, text)
		q := commonSuffix(was[p:], text[p:])
		out = append(out, change{Span{at + p, at + len(was) - q}, text[p : len(text)-q]})
		at += len(was)
	}
	return out
}

// result returns s with the replacements made.
func (m *Match) result(s string) string {
	var b strings.Builder
	done := 0
	for i, sp := range m.Spans {
		b.WriteString(s[done:sp.Start])
		b.WriteString(m.New[i])
		done = sp.End
	}
	b.WriteString(s[done:])
	return b.String()
}
