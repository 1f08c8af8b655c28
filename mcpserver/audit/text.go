package audit

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clipped returns the record with texts and lists of bounded length.
func (r Record) clipped() Record {
	for _, text := range []*string{&r.Principal, &r.Scope, &r.Tool, &r.Command, &r.Rule, &r.Source, &r.Error} {
		*text = Clip(*text)
	}
	r.Reads, r.Writes = clipAll(r.Reads), clipAll(r.Writes)
	return r
}

func clipAll(paths []string) []string {
	var all []string
	for i, path := range paths {
		if i == MaxPaths {
			return append(all, fmt.Sprintf("… and %d more", len(paths)-i))
		}
		all = append(all, Clip(path))
	}
	return all
}

// Clip cuts a text that is longer than [MaxText], between two characters, and marks that.
func Clip(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for end > MaxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// visible escapes in a line of JSON what encoding/json leaves as it is, and a terminal that shows the log would obey:
// control characters beyond ASCII, and marks that turn the direction of text or take no room.
func visible(line []byte) []byte {
	if !strings.ContainsFunc(string(line), hidden) {
		return line
	}
	var b strings.Builder
	for _, r := range string(line) {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

// hidden reports whether a character has no look of its own. It never is one of the syntax of JSON.
func hidden(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
