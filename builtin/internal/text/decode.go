package text

import (
	"sort"
	"strings"
	"unsafe"
)

// chunkLen is the decoded length between two marks of a text's map.
const chunkLen = 16 << 10

// Text is the decoded content of a file, with a map from its offsets back to the bytes of the file.
type Text struct {
	raw     []byte
	str     string
	charset *charset
	bom     int // length of the byte order mark in raw
	eol     EOL
	marks   []mark // empty when str is raw without its mark
}

// mark says that offset str in the decoded string is offset raw in the file.
type mark struct{ str, raw int }

// Decode reads raw as text. The charset is found by the byte order mark, then
// UTF-16 by the parity of its NULs, then UTF-8 (also with a little damage),
// then by statistics; what nothing else explains is ISO-8859-1. Decode never
// fails: see [IsBinary] for what should not be read as text.
//
// Decode takes ownership of raw: for UTF-8 the string shares its memory, so
// that a file of a gigabyte is not held twice. raw must not be changed later.
func Decode(raw []byte) *Text {
	if cs := fromBOM(raw); cs != nil {
		return decodeAs(raw, cs, len(cs.bom))
	}
	return decodeAs(raw, detect(raw), 0)
}

// DecodeAs is [Decode] for raw that is known to be text in the named charset: no charset has to be guessed from a few
// characters. Decode is used if raw has a byte order mark or bytes that are invalid in the charset. DecodeAs returns
// nil if raw is then not text, see [IsBinary].
func DecodeAs(raw []byte, charset string) *Text {
	if cs := charsetIfFits(raw, charset); cs != nil {
		return decodeAs(raw, cs, 0)
	}
	if IsBinary(raw) {
		return nil
	}
	return Decode(raw)
}

// charsetIfFits returns the named charset, or nil if raw has a byte order mark or cannot be in that charset.
func charsetIfFits(raw []byte, charset string) *charset {
	if charset == "" || fromBOM(raw) != nil {
		return nil
	}
	if cs := charsetNamed(charset); cs != nil && len(raw)%cs.unit == 0 && decodesWhole(cs, raw) {
		return cs
	}
	return nil
}

// With decodes raw in the charset of t, without detection. It is for content
// that [Apply] or [Encode] made from t. Like Decode it takes ownership of raw.
func (t *Text) With(raw []byte) *Text {
	bom := 0
	if t.bom > 0 && strings.HasPrefix(shared(raw), t.charset.bom) {
		bom = t.bom
	}
	return decodeAs(raw, t.charset, bom)
}

func decodeAs(raw []byte, cs *charset, bom int) *Text {
	t := &Text{raw: raw, charset: cs, bom: bom}
	if cs.enc == nil {
		t.str = shared(raw[bom:])
	} else {
		t.decodeMapped()
	}
	t.eol = eolOf(t.str)
	return t
}

// shared returns the bytes as a string without copying them.
func shared(raw []byte) string { return unsafe.String(unsafe.SliceData(raw), len(raw)) }

// decodeMapped decodes chunk by chunk, and sets a mark where each chunk begins.
func (t *Text) decodeMapped() {
	dec := t.charset.enc.NewDecoder()
	var b strings.Builder
	b.Grow((len(t.raw) - t.bom) * 3 / 2)
	buf := make([]byte, chunkLen)
	for at := t.bom; at < len(t.raw); {
		n, used, _ := dec.Transform(buf, t.raw[at:], true)
		if used == 0 {
			break // cannot happen: the buffer holds any character
		}
		t.marks = append(t.marks, mark{b.Len(), at})
		b.Write(buf[:n])
		at += used
	}
	t.str = b.String()
}

// rawOffset returns the offset in the file for an offset in the string. It reports false if the offset lies within a
// single character of the file: some Big5 codes decode to a letter and a combining accent.
//
// near is a mark to start from, or zero. It is moved to the one found, so that ascending offsets are found in one
// pass.
func (t *Text) rawOffset(off int, near *mark) (int, bool) {
	if t.charset.enc == nil {
		return off + t.bom, true
	}
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].str > off }) - 1
	if i < 0 {
		return t.bom, off == 0
	}
	from := t.marks[i]
	if near.raw > from.raw && near.str <= off {
		from = *near
	}
	dec := t.charset.enc.NewDecoder()
	n, used, _ := dec.Transform(make([]byte, off-from.str), t.raw[from.raw:], true)
	*near = mark{from.str + n, from.raw + used}
	return near.raw, near.str == off
}

// Charset is the name of the charset, as [DecodeAs] takes it.
func (t *Text) Charset() string { return t.charset.name }

// String returns the decoded text: without byte order mark, with the line
// endings of the file. In UTF-8 invalid bytes are kept as they are, in other
// charsets they show as U+FFFD.
func (t *Text) String() string { return t.str }
