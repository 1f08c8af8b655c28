package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// chardet never proposes a charset of Central Europe or the Baltic: it takes their texts for windows-1252 or
// windows-1254. It does not consider which letters a language has, nor that signs such as ³ do not occur within
// words. The functions here do.

// A script is a charset, with the non-ASCII letters of the languages written in it, in lower case.
type script struct {
	name    string
	decoder *charmap.Charmap
	letters []string
}

// westernScripts are the scripts that a text in windows-1252 or windows-1254 may be in. Languages that often occur in
// one file share a string.
var westernScripts = []script{
	{"windows-1252", charmap.Windows1252, []string{
		"àâåçéèêëîïôœùûüÿäößìòñ", // French, German, Italian, Dutch, loans in English
		"áéíóúüñàâãçêôõèïò",      // Spanish, Portuguese, Catalan
		"åäöæøéüßáðíóþúýõšž",     // Scandinavia, Iceland, Finland, Estonia, German
	}},
	{"windows-1254", charmap.Windows1254, []string{"çğıöşüâîû"}}, // Turkish
}

var easternScripts = []script{
	{"windows-1250", charmap.Windows1250, centralLetters},
	{"iso-8859-2", charmap.ISO8859_2, centralLetters},
	{"windows-1257", charmap.Windows1257, []string{"ąčęėįšųūž", "āčēģīķļņšūž"}}, // Lithuanian, Latvian
}

var centralLetters = []string{
	"ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ", // Polish, Czech, Slovak, Hungarian, Croatian and Slovene, Romanian
}

// centralEuropean returns the Central European or Baltic charset of a text that was taken for a Western one, or cs if
// nothing suggests such a charset: nearly all of its letters must belong to one language there, and a good part of
// them to no Western one. Letters that both charsets encode alike, such as those in names, count less. lines are the
// lines of raw that are not ASCII.
func centralEuropean(cs *charset, lines, raw []byte) *charset {
	switch cs.name {
	case "windows-1252", "windows-1254", "iso-8859-1":
	default:
		return cs
	}
	var h highBytes
	h.count(lines)
	west := h.foreignCount(westernScripts, nil)
	best, least := cs, west+1
	for i, s := range easternScripts {
		strange := h.foreignCount(easternScripts[i:i+1], nil)
		if strange >= least || strange*10 > h.all {
			continue
		}
		here, there := h.foreignCount(easternScripts[i:i+1], &s), h.foreignCount(westernScripts, &s)
		differ := there >= here+2 && there*12 >= h.differing(&s)
		if !differ && (west < strange+4 || west*5 < h.all) {
			continue
		}
		if found := single(s.name, s.decoder); decodesWhole(found, raw) {
			best, least = found, strange
		}
	}
	return best
}

// highBytes counts the bytes of a text that are not ASCII.
type highBytes struct {
	all    int
	of     [256]int
	inWord [256]int // how many of them have letters on both sides
}

func (h *highBytes) count(raw []byte) {
	isLetter := func(b byte) bool { return b >= 0xc0 || 'a' <= b|0x20 && b|0x20 <= 'z' } // in each of these charsets
	for i, b := range raw {
		if b < utf8.RuneSelf {
			continue
		}
		h.all++
		h.of[b]++
		if i > 0 && i+1 < len(raw) && isLetter(raw[i-1]) && isLetter(raw[i+1]) {
			h.inWord[b]++
		}
	}
}

// foreignCount counts the characters that do not fit the language that suits the text best: letters that it does not
// have, and signs within words, which count twice. If other is not nil, only bytes are examined that stand for
// another character in it.
func (h *highBytes) foreignCount(scripts []script, other *script) int {
	least := 2 * h.all
	for _, s := range scripts {
		for _, letters := range s.letters {
			n := 0
			for b := utf8.RuneSelf; b < len(h.of); b++ {
				if h.of[b] > 0 && other.differs(b) {
					n += h.strangeAs(b, s.decoder.DecodeByte(byte(b)), letters)
				}
			}
			least = min(least, n)
		}
	}
	return least
}

// betweenLetters are signs that occur within words in any language.
const betweenLetters = "\u00a0\u00ad’‘·–—"

func (h *highBytes) strangeAs(b int, r rune, letters string) int {
	switch {
	case r == utf8.RuneError || unicode.IsControl(r):
		return 2 * h.of[b]
	case strings.ContainsRune(betweenLetters, r):
		return 0
	case !unicode.IsLetter(r):
		return 2 * h.inWord[b]
	case strings.ContainsRune(letters, unicode.ToLower(r)):
		return 0
	}
	return h.of[b]
}

// differing counts the bytes that stand for another character in a script than in windows-1252.
func (h *highBytes) differing(s *script) (n int) {
	for b := utf8.RuneSelf; b < len(h.of); b++ {
		if s.differs(b) {
			n += h.of[b]
		}
	}
	return n
}

// differs reports whether a byte stands for another character in the script than in windows-1252. For a nil script it
// reports true.
func (s *script) differs(b int) bool {
	return s == nil || s.decoder.DecodeByte(byte(b)) != charmap.Windows1252.DecodeByte(byte(b))
}
