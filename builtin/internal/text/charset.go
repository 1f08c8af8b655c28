package text

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// A charset is one way to read bytes as text. Only stateless encodings are
// used: a character can then be found from any character boundary. The
// stateful ones (ISO-2022, HZ) are plain ASCII bytes and read as UTF-8.
type charset struct {
	name string
	enc  encoding.Encoding // nil for UTF-8, whose bytes are the string
	unit int               // bytes of a code unit: 2 for UTF-16, 4 for UTF-32, else 1
	bom  string            // its byte order mark, if it has one
}

const (
	// SniffLen is how much of a file decides whether it is binary: the 8,000
	// bytes that git looks at (buffer_is_binary in xdiff-interface.c).
	SniffLen = 8000

	// detectLen is how many bytes of lines the statistical detection gets. More than a few thousand characters do not
	// improve its result.
	detectLen = 64 << 10

	// utf8Bias is how many valid multi-byte sequences there must be per invalid byte for a text to count as damaged
	// UTF-8. In Chinese or Japanese legacy text at most one pair in eight looks like UTF-8.
	utf8Bias = 4
)

func utf8Charset() *charset { return &charset{name: "utf-8", unit: 1, bom: "\xef\xbb\xbf"} }

func utf16Charset(big bool) *charset {
	if big {
		return &charset{"utf-16be", xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM), 2, "\xfe\xff"}
	}
	return &charset{"utf-16le", xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM), 2, "\xff\xfe"}
}

func utf32Charset(big bool) *charset {
	if big {
		return &charset{"utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), 4, "\x00\x00\xfe\xff"}
	}
	return &charset{"utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), 4, "\xff\xfe\x00\x00"}
}

// latin1 returns the charset of last resort: every byte is a character, and encodes back to the same byte. (The
// "iso-8859-1" of the WHATWG index is windows-1252, for which that is not true.)
func latin1() *charset { return single("iso-8859-1", charmap.ISO8859_1) }

func single(name string, enc encoding.Encoding) *charset {
	return &charset{name: name, enc: enc, unit: 1}
}

// legacy returns the charsets to try, in order, for a name given by chardet.
// Names that are left out are left out on purpose: chardet proposes macintosh
// and the Cyrillic code pages for short texts in other charsets.
func legacy(name string) []*charset {
	switch strings.ToLower(name) {
	case "gb2312", "gbk", "gb18030":
		return []*charset{single("gbk", simplifiedchinese.GBK), single("gb18030", simplifiedchinese.GB18030)}
	case "big5":
		return []*charset{single("big5", traditionalchinese.Big5)}
	case "shift_jis", "cp932":
		return []*charset{single("shift_jis", japanese.ShiftJIS)}
	case "euc-jp":
		return []*charset{single("euc-jp", japanese.EUCJP)}
	case "euc-kr", "cp949":
		return []*charset{single("euc-kr", korean.EUCKR)}
	case "koi8-r":
		return []*charset{single("koi8-r", charmap.KOI8R)}
	case "ibm866":
		return []*charset{single("ibm866", charmap.CodePage866)}
	case "tis-620", "windows-874":
		return []*charset{single("windows-874", charmap.Windows874)}
	}
	return european(strings.ToLower(name))
}

// european returns the single-byte charset of that name. Each ISO part is
// followed by the Windows code page that differs from it only where the ISO
// part has control characters.
func european(name string) []*charset {
	switch name {
	case "iso-8859-1", "windows-1252":
		return []*charset{single("windows-1252", charmap.Windows1252)}
	case "iso-8859-2":
		return []*charset{single("iso-8859-2", charmap.ISO8859_2)}
	case "windows-1250":
		return []*charset{single("windows-1250", charmap.Windows1250)}
	case "iso-8859-5":
		return []*charset{single("iso-8859-5", charmap.ISO8859_5)}
	case "windows-1251":
		return []*charset{single("windows-1251", charmap.Windows1251)}
	case "iso-8859-7", "windows-1253":
		return []*charset{single("windows-1253", charmap.Windows1253)}
	case "iso-8859-8", "windows-1255":
		return []*charset{single("windows-1255", charmap.Windows1255)}
	case "iso-8859-9", "windows-1254":
		return []*charset{single("windows-1254", charmap.Windows1254)}
	case "windows-1256":
		return []*charset{single("windows-1256", charmap.Windows1256)}
	case "windows-1257":
		return []*charset{single("windows-1257", charmap.Windows1257)}
	}
	return nil
}

// charsetNamed returns the charset whose name a [Text] or a [Page] has returned, or nil if there is none.
func charsetNamed(name string) *charset {
	known := []*charset{latin1(), utf16Charset(false), utf16Charset(true), utf32Charset(false), utf32Charset(true)}
	for _, cs := range append(known, legacy(name)...) {
		if cs.name == name {
			return cs
		}
	}
	return nil
}

// fromBOM returns the charset whose byte order mark raw begins with. UTF-32
// comes first: its little-endian mark begins with that of UTF-16.
func fromBOM(raw []byte) *charset {
	if len(raw) < 2 || raw[0] != 0 && raw[0] < 0xef {
		return nil // as nearly every file begins: nothing is made to be compared with it
	}
	for _, cs := range []*charset{utf8Charset(), utf32Charset(false), utf32Charset(true), utf16Charset(false),
		utf16Charset(true)} {
		if bytes.HasPrefix(raw, []byte(cs.bom)) {
			return cs
		}
	}
	return nil
}

// detect finds the charset of raw, which has no byte order mark.
func detect(raw []byte) *charset {
	if cs := byNULs(raw); cs != nil {
		return cs
	}
	if mostlyUTF8(raw) {
		return utf8Charset()
	}
	lines := highLines(raw)
	for _, guess := range chardet.DetectAll(lines) {
		name := guess.Charset
		if name == "x-mac-cyrillic" && cyrillicWords(lines) {
			name = "windows-1251" // the small letters are the same, and old Macs are rare
		}
		for _, cs := range legacy(name) {
			if decodesWhole(cs, raw) {
				return centralEuropean(western(cs, raw), lines, raw)
			}
		}
	}
	if cs := shortJapanese(lines, raw); cs != nil {
		return cs
	}
	return centralEuropean(latin1(), lines, raw)
}

// cyrillicWords reports whether the bytes that are letters in windows-1251 form words. In a text in Latin letters
// such bytes stand alone between ASCII letters.
func cyrillicWords(text []byte) bool {
	letters, joined := 0, 0
	for i, b := range text {
		if b >= 0xc0 {
			letters++
			if i > 0 && text[i-1] >= 0xc0 || i+1 < len(text) && text[i+1] >= 0xc0 {
				joined++
			}
		}
	}
	return letters > 0 && joined*4 >= letters*3
}

// western corrects what chardet often confuses: windows-1252 and windows-1254 differ in a few letters, which are
// Icelandic in the former and Turkish in the latter. A text without these letters counts as windows-1252, the more
// common one. A text with several of them is Turkish unless it has vowels that only Icelandic has.
func western(cs *charset, raw []byte) *charset {
	if cs.name != "windows-1252" && cs.name != "windows-1254" {
		return cs
	}
	var has [256]bool
	for _, b := range raw {
		has[b] = true
	}
	count := func(letters string) (n int) {
		for i := range len(letters) {
			if has[letters[i]] {
				n++
			}
		}
		return n
	}
	other := cs
	switch differ := count("\xd0\xdd\xde\xf0\xfd\xfe"); {
	case differ == 0:
		other = single("windows-1252", charmap.Windows1252)
	case differ > 1 && count("\xe1\xe6\xed\xf3\xfa") == 0:
		other = single("windows-1254", charmap.Windows1254)
	}
	if decodesWhole(other, raw) {
		return other
	}
	return cs
}

// byNULs recognises the charsets whose texts hold NULs, without a mark.
func byNULs(raw []byte) *charset {
	if cs := utf16ByParity(raw); cs != nil {
		return cs
	}
	return utf32ByUnits(raw)
}

// utf32ByUnits recognises UTF-32 without a mark: at least two units, all of them
// printable characters.
func utf32ByUnits(raw []byte) *charset {
	head := raw[:min(len(raw), SniffLen)&^3]
	if len(head) < 8 || head[0] != 0 && head[3] != 0 {
		return nil
	}
	big := head[0] == 0
	for i := 0; i < len(head); i += 4 {
		unit := binary.LittleEndian.Uint32(head[i:])
		if big {
			unit = binary.BigEndian.Uint32(head[i:])
		}
		if r := rune(unit); unit > unicode.MaxRune || r == utf8.RuneError || !unicode.IsPrint(r) &&
			!unicode.IsSpace(r) {
			return nil
		}
	}
	return utf32Charset(big)
}

// utf16ByParity recognises UTF-16 without a mark: Latin text has NULs at the odd offsets (little-endian) or at the
// even ones. At least two units, and one in three, must have a NUL at one parity, and none at the other. All units
// must decode to printable characters, and half of those with a NUL to ASCII, so that binary tables of small numbers
// are not taken for text.
func utf16ByParity(raw []byte) *charset {
	head := raw[:min(len(raw), SniffLen)&^1]
	if bytes.IndexByte(head, 0) < 0 {
		return nil
	}
	var nul [2]int
	for i, b := range head {
		if b == 0 {
			nul[i&1]++
		}
	}
	big := nul[0] > 0
	count := nul[0] + nul[1]
	if nul[0] > 0 && nul[1] > 0 || count < 2 || count*6 < len(head) {
		return nil
	}
	units := make([]uint16, len(head)/2)
	for i := range units {
		hi, lo := head[2*i+1], head[2*i]
		if big {
			hi, lo = lo, hi
		}
		units[i] = uint16(hi)<<8 | uint16(lo)
	}
	if len(head) < len(raw) && utf16.IsSurrogate(rune(units[len(units)-1])) {
		units = units[:len(units)-1] // the second half of this surrogate pair comes after the prefix
	}
	ascii := 0
	for _, r := range utf16.Decode(units) {
		if r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return nil
		}
		if r < utf8.RuneSelf {
			ascii++
		}
	}
	if ascii*2 < count {
		return nil
	}
	return utf16Charset(big)
}

// mostlyUTF8 reports whether raw is UTF-8, or UTF-8 with some damage.
func mostlyUTF8(raw []byte) bool {
	if utf8.Valid(raw) {
		return true
	}
	valid, invalid := countUTF8(raw)
	return valid >= utf8Bias*invalid
}

// countUTF8 counts the multi-byte sequences of raw and the bytes that belong
// to no sequence.
func countUTF8(raw []byte) (valid, invalid int) {
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			invalid++
		} else {
			valid++
		}
		i += n
	}
	return valid, invalid
}

// highLines returns the lines of raw that are not pure ASCII, up to detectLen bytes: in source code a single comment
// would get lost among thousands of ASCII lines.
func highLines(raw []byte) []byte {
	var out []byte
	for len(raw) > 0 && len(out) < detectLen {
		line := raw
		if i := bytes.IndexByte(raw, '\n'); i >= 0 {
			line = raw[:i+1]
		}
		raw = raw[len(line):]
		if i := bytes.IndexFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }); i >= 0 {
			// Of a very long line, the part that begins shortly before that character is used.
			line = line[max(0, i-80):]
			out = append(out, line[:min(len(line), detectLen-len(out))]...)
		}
	}
	return out
}

// decodesWhole reports whether every byte of raw is valid in cs.
func decodesWhole(cs *charset, raw []byte) bool {
	dec := cs.enc.NewDecoder()
	buf := make([]byte, chunkLen)
	for {
		n, used, err := dec.Transform(buf, raw, true)
		if bytes.Contains(buf[:n], []byte(string(utf8.RuneError))) {
			return false
		}
		if err == nil || used == 0 {
			return err == nil
		}
		raw = raw[used:]
	}
}

// controlShare is the share of control characters (one in controlShare bytes) from which content that is not valid
// UTF-8 counts as binary. In compressed data it is one in ten; legacy text has none.
const controlShare = 33

// IsBinary reports whether raw is not text, by its content alone. It looks
// only at a prefix. UTF-16 and UTF-32 are text.
func IsBinary(raw []byte) bool {
	if fromBOM(raw) != nil {
		return false
	}
	head := raw[:min(len(raw), SniffLen)]
	if bytes.IndexByte(head, 0) >= 0 {
		return byNULs(raw) == nil
	}
	if mostlyUTF8(head) {
		return false
	}
	control := 0
	for _, b := range head {
		if b < 0x20 && !bytes.ContainsRune([]byte("\t\n\v\f\r\x1b"), rune(b)) {
			control++
		}
	}
	return control*controlShare > len(head)
}
