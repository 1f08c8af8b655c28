package text

import (
	"strings"
	"testing"
	"unicode"
)

func TestVisible(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"ASCII", "a b\n\tc", "a b\n\tc"},
		{"line breaks", "a\r\nb\rc\vd\fe\u0085f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"},
		{"a grapheme joiner", "a\u034fb", "ab"},
		{"zero width", "a\u200b\u2060\ufeff\u00adb", "ab"},
		{"joiners in Latin", "a\u200db\u200cc", "abc"},
		{"directions", "a\u202e\u2066\u200e\u200f\u061cb", "ab"},
		{"tags", "a\U000e0001\U000e0041\U000e007fb", "ab"},
		{"variation selectors", "a\ufe00\ufe0f\U000e0100\U000e01efb", "ab"},
		{"Hangul fillers", "a\u115f\u1160\u3164\uffa0b", "ab"},
		{"Khmer vowels", "a\u17b4\u17b5b", "ab"},
		{"Mongolian", "a\u180b\u180eb", "ab"},
		{"shorthand and music", "a\U0001bca0\U0001d173b", "ab"},
		{"unassigned", "a\U000e0fff\ufff0b", "ab"},
		{"escapes", "a\x1b[31m\x00\x07\x7f\u009bb", "a[31mb"},
		{"annotation", "a\ufff9b\ufffac\ufffb", "abc"},
		{"Braille blank", "a\u2800b", "ab"},

		{"Persian", "می\u200cخواهم", "می\u200cخواهم"},
		{"Persian, doubled", "می\u200c\u200c\u200dخ", "می\u200cخ"},
		{"Devanagari", "क्\u200dष क्\u200cष", "क्\u200dष क्\u200cष"},
		{"Malayalam at the end of a word", "അവന്\u200d ", "അവന്\u200d "},
		{"Sinhala", "ශ්\u200dරී", "ශ්\u200dරී"},
		{"Arabic number sign", "\u0600١", "\u0600١"},
		{"a family", "👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"},
		{"a flag", "🏳\ufe0f\u200d🌈", "🏳\ufe0f\u200d🌈"},
		{"skin", "👩🏽\u200d💻", "👩🏽\u200d💻"},
		{"a heart", "❤\ufe0f", "❤\ufe0f"},
		{"a heart with bits", "❤\ufe0f\ufe0f\ufe00\ufe0e", "❤\ufe0f"},
		{"a keycap", "1\ufe0f\u20e3", "1\ufe0f\u20e3"},
		{"arrows", "↔\ufe0f ▶\ufe0e", "↔\ufe0f ▶\ufe0e"},
		{"a smile with hidden words", "😀\U000e0148\U000e0149", "😀"},
		{"Mongolian forms", "\u182d\u180b\u1820", "\u182d\u180b\u1820"},
		{"other text", "äöß 中文 한국어 עברית ไทย é", "äöß 中文 한국어 עברית ไทย é"},
	} {
		got, removed := Visible(tt.in)
		if got != tt.want {
			t.Errorf("%s: %+q, want %+q", tt.name, got, tt.want)
		}
		if again, more := Visible(got); more > 0 || again != got {
			t.Errorf("%s: twice: %+q, %d removed", tt.name, again, more)
		}
		if (removed > 0) != (len([]rune(strings.ReplaceAll(tt.in, "\r\n", "\n"))) > len([]rune(got))) {
			t.Errorf("%s: %d removed", tt.name, removed)
		}
	}
}

// TestVisibleAll: no character that programs ignore is left between letters.
func TestVisibleAll(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		ignored := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
		if got, _ := Visible("a" + string(r) + "b"); ignored && strings.ContainsRune(got, r) {
			t.Errorf("%U is left", r)
		} else if !ignored && !strings.ContainsRune(got, r) && !isInvisible(r) && !isLineBreak(r) &&
			(r < 0xd800 || r > 0xdfff) {
			t.Errorf("%U is taken out", r)
		}
	}
}
