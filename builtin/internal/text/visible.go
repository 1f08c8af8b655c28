package text

import (
	"strings"
	"unicode"
)

// Visible returns a text without invisible characters, which can carry words that no person reads. It keeps a joiner
// or a variation selector where it changes how the letters or the emoji before it look, and replaces every line break
// by a newline. removed is how many characters were removed.
func Visible(s string) (visible string, removed int) {
	if isPlain(s) {
		return s, 0
	}
	var out strings.Builder
	out.Grow(len(s))
	runes := []rune(s)
	var last, letter rune // the last character kept, and the last one that is not a combining mark
	for i, r := range runes {
		next := rune(-1)
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case r == '\r' && next == '\n':
			continue
		case isLineBreak(r):
			r = '\n'
		case r == '\t', !isInvisible(r), shapes(r, last, letter, next):
		default:
			removed++
			continue
		}
		if last = r; !unicode.Is(unicode.Mn, r) {
			letter = r
		}
		out.WriteRune(r)
	}
	return out.String(), removed
}

// isPlain reports whether a text is ASCII without control characters except newlines and tabs.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c > '~' || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// isLineBreak reports whether programs that show text begin a new line at a character (UAX 14).
func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// isInvisible reports whether a character is a control or format character or is ignored by programs that show text:
// by the property Default_Ignorable_Code_Point, which the tables of Go do not have as one. It includes the blank of
// Braille.
func isInvisible(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' '
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // Arabic signs, which are visible
		return false
	case r >= 0xfff0 && r <= 0xfff8, r >= 0xe0000 && r <= 0xe0fff, r == 0x2800:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	textStyle          = '\ufe0e'
	emojiStyle         = '\ufe0f'
	keycap             = '\u20e3'
)

// shapes reports whether an invisible character r changes how the text looks. last and next are the characters before
// and after it; letter is the last one before it that is not a combining mark.
func shapes(r, last, letter, next rune) bool {
	switch {
	case r == emojiStyle, r == textStyle:
		return last != emojiStyle && isPictograph(last) || next == keycap && strings.ContainsRune("0123456789#*", last)
	case r == zeroWidthJoiner && isPictograph(letter) && isPictograph(next):
		return last != zeroWidthJoiner
	case r == zeroWidthJoiner, r == zeroWidthNonJoiner:
		return unicode.In(letter, joining...) && last != zeroWidthJoiner && last != zeroWidthNonJoiner
	case r >= 0x180b && r <= 0x180f: // selectors of the forms of Mongolian letters
		return unicode.Is(unicode.Mongolian, last) && unicode.IsLetter(last)
	}
	return false
}

// joining are the scripts whose letters change their form next to each other.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Nko, unicode.Mongolian, unicode.Phags_Pa,
	unicode.Hanifi_Rohingya, unicode.Adlam, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
	unicode.Sinhala, unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Balinese, unicode.Javanese,
	unicode.Tai_Tham, unicode.Newa, unicode.Grantha, unicode.Tirhuta, unicode.Modi, unicode.Brahmi,
	unicode.Chakma, unicode.Kaithi, unicode.Sharada,
}

// isPictograph reports whether a character may be shown as an emoji or be a part of one.
func isPictograph(r rune) bool {
	switch {
	case unicode.Is(unicode.So, r), r >= 0x1f3fb && r <= 0x1f3ff, r == emojiStyle: // with the tones of skin
		return true
	case unicode.Is(unicode.Sm, r):
		return r >= 0x2190 && r <= 0x21ff || r >= 0x25a0 && r <= 0x2bff
	}
	switch r {
	case 0x203c, 0x2049, 0x2139, 0x3030, 0x303d:
		return true
	}
	return false
}
