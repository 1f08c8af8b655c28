package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
)

// shortJapanese returns Shift-JIS for a text with so little Japanese, such as one comment, that chardet does not
// recognise it, and which no Western charset explains; otherwise nil. All of its non-ASCII characters must be
// Japanese, and at least half of them must follow another one: in other charsets single bytes often look like
// Shift-JIS together with the letter after them. lines are the lines of raw that are not ASCII.
func shortJapanese(lines, raw []byte) *charset {
	cs := single("shift_jis", japanese.ShiftJIS)
	if !decodesWhole(cs, raw) {
		return nil
	}
	all, joined, run := 0, 0, 0
	for _, r := range cs.decode(lines) {
		if r < utf8.RuneSelf {
			run = 0
			continue
		}
		if !isJapanese(r) {
			return nil
		}
		all++
		if run++; run > 1 {
			joined++
		}
	}
	if all < 3 || joined*2 < all {
		return nil
	}
	return cs
}

// isJapanese reports whether a character is a Japanese one that Shift-JIS encodes in two bytes. The narrow kana take
// one byte, and do not count: other charsets have letters at these bytes.
func isJapanese(r rune) bool {
	return r >= 0x3000 && r < 0x3100 || r >= 0xff00 && r < 0xff61 || unicode.Is(unicode.Han, r)
}
