package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clipped returns the record with texts and lists cut to the limits, as it is written.
func (r Record) Clipped() Record {
	for _, text := range []*string{&r.Principal, &r.Scope, &r.Tool, &r.Command, &r.Rule, &r.Source, &r.Summary,
		&r.Client, &r.ClientVersion, &r.Chain, &r.Error} {
		*text = Clip(*text)
	}
	r.Phases = slices.Clone(r.Phases[:min(len(r.Phases), maxPhases)])
	for i := range r.Phases {
		r.Phases[i].Note = Clip(r.Phases[i].Note)
	}
	r.Reads, r.Writes, r.Effects = clipAll(r.Reads), clipAll(r.Writes), clipAll(r.Effects)
	return r
}

func clipAll(paths []string) []string {
	var all []string
	for i, path := range paths {
		if i == maxPaths && len(paths) > maxPaths+1 { // naming one more path takes no more space than counting it
			return append(all, fmt.Sprintf("… and %d more", len(paths)-i))
		}
		all = append(all, Clip(path))
	}
	return all
}

// Clip cuts the middle out of a text longer than [maxText], between characters, and says how much.
func Clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	const end, mark = maxText / 4, 48 // what stays of the end, and the room for what is said
	head, tail := maxText-end-mark, len(s)-end
	for head > maxText-end-mark-utf8.UTFMax && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s)-end+utf8.UTFMax && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s…(%d bytes left out)…%s", s[:head], tail-head, s[tail:])
}

// line returns the record as a line of JSON. Besides what JSON requires it escapes what a terminal that shows the log
// would obey: control characters, directional marks and zero-width characters. Invalid UTF-8 becomes U+FFFD.
func (r Record) line() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return nil, fmt.Errorf("the record of a call of %s: %w", r.Tool, err)
	}
	if !bytes.ContainsFunc(b.Bytes(), hidden) {
		return b.Bytes(), nil
	}
	var line []byte
	for _, c := range b.String() {
		switch high, low := utf16.EncodeRune(c); {
		case !hidden(c):
			line = utf8.AppendRune(line, c)
		case c > 0xffff:
			line = fmt.Appendf(line, `\u%04x\u%04x`, high, low)
		default:
			line = fmt.Appendf(line, `\u%04x`, c)
		}
	}
	return line, nil
}

// hidden reports whether a character is invisible.
func hidden(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
