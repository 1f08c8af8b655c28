package text

import (
	"fmt"
	"strings"

	"znkr.io/diff/textdiff"
)

// UnmappableError reports text that the charset of the file cannot hold.
type UnmappableError struct {
	Char    rune
	Charset string
}

func (e *UnmappableError) Error() string {
	return fmt.Sprintf("the file is encoded in %s, which has no character %q (U+%04X); nothing was written. Use other characters, or convert the file to UTF-8 first (iconv -f %[1]s -t utf-8)",
		e.Charset, e.Char, e.Char)
}

// Apply returns the content of the file with the replacements of m made. Only
// the bytes in the ranges change, and of those only the lines that differ.
// The error is an [*UnmappableError] if the charset lacks a character, or says
// that a range cannot be replaced without touching a byte beside it.
func Apply(t *Text, m *Match) ([]byte, error) {
	if t.charset.enc == nil {
		return t.splice(m)
	}
	out, err := t.spliceMapped(m)
	if err != nil {
		return nil, err
	}
	// A stray lead byte before a range could join the first byte put after it:
	// what was written must read as what was meant.
	if got := t.With(out).str; got != m.result(t.str) {
		return nil, fmt.Errorf("the file has bytes beside the edit that are no valid %s and would merge with it; nothing was written", t.charset.name)
	}
	return out, nil
}

// splice makes the replacements in a UTF-8 text.
func (t *Text) splice(m *Match) ([]byte, error) {
	size := len(t.raw)
	for i, sp := range m.Spans {
		size += len(m.New[i]) - (sp.End - sp.Start)
	}
	out := make([]byte, 0, size)
	done := 0
	for i, sp := range m.Spans {
		out = append(out, t.raw[done:sp.Start+t.bom]...)
		out = append(out, m.New[i]...)
		done = sp.End + t.bom
	}
	return append(out, t.raw[done:]...), nil
}

// spliceMapped makes the replacements in any other charset.
func (t *Text) spliceMapped(m *Match) ([]byte, error) {
	var out []byte
	done := 0
	for i, sp := range m.Spans {
		for _, c := range changes(t.str[sp.Start:sp.End], m.New[i]) {
			start, ok1 := t.rawOffset(sp.Start + c.Start)
			end, ok2 := t.rawOffset(sp.Start + c.End)
			if !ok1 || !ok2 {
				return nil, fmt.Errorf("the edit begins or ends inside a character of the file (%s); include the whole character", t.charset.name)
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

// changes returns the parts in which old and new differ, line by line and
// without what a run of changed lines has in common at both ends: charsets
// with two codes for one character keep the one that the file has.
func changes(old, new string) []change {
	var out []change
	at := 0
	for _, h := range textdiff.Edits(old, new) {
		sp := Span{at, at}
		text := ""
		if h.LineNoX >= 0 {
			sp.End += len(h.Line)
			at = sp.End
		}
		if h.LineNoY >= 0 {
			text = h.Line
		}
		if n := len(out); n > 0 && out[n-1].End == sp.Start && (h.LineNoX < 0 || h.LineNoY < 0) {
			out[n-1].End = sp.End
			out[n-1].text += text
		} else if h.LineNoX < 0 || h.LineNoY < 0 {
			out = append(out, change{sp, text})
		}
	}
	for i, c := range out {
		was := old[c.Start:c.End]
		p := commonPrefix(was, c.text)
		q := commonSuffix(was[p:], c.text[p:])
		out[i] = change{Span{c.Start + p, c.End - q}, c.text[p : len(c.text)-q]}
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
