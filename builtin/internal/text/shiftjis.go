package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
)

// shortJapanese returns Shift-JIS for a text that chardet does not recognise, because it has but a comment of it, and
// that no Western charset explains; else nil. All of its characters beyond ASCII must be Japanese, and most stand
// after another one: in what is not Shift-JIS a byte often becomes one together with the letter after it. The lines
// are those of raw that are not ASCII.
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

// isJapanese reports whether a character is one of those that two bytes of Shift-JIS stand for in Japanese. The
// narrow kana, which have one byte, are not: they are letters in other charsets.
func isJapanese(r rune) bool {
	return r >= 0x3000 && r < 0x3100 || r >= 0xff00 && r < 0xff61 || unicode.Is(unicode.Han, r)
}
