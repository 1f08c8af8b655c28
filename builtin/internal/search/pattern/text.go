package pattern

import (
	"bytes"

	"golang.org/x/text/encoding/unicode"
)

// Decode returns the text of a file as UTF-8 without a byte-order mark: files
// in UTF-16 are known by theirs, as in ripgrep. The result may share memory
// with raw.
func Decode(raw []byte) []byte {
	switch {
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		return raw[3:]
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		return decode16(raw[2:], unicode.LittleEndian)
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		return decode16(raw[2:], unicode.BigEndian)
	}
	return raw
}

func decode16(raw []byte, order unicode.Endianness) []byte {
	out, _ := unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder().Bytes(raw) // it replaces what is invalid
	return out
}

// Window is the size in bytes of the buffer in which ripgrep reads a file: it
// decides by it how much of a binary file is still searched as text.
const Window = 64 << 10

// Limit returns the part of a text that ripgrep searches before it takes the file for binary, and whether it does so.
// A NUL byte ends the search: the lines in earlier buffers have been searched by then, those in the buffer with the
// NUL byte have not. So Limit follows the buffer of ripgrep: it is filled, its complete lines are searched, the rest
// moves to its start, and it doubles in size if a line does not fit.
func Limit(b []byte) ([]byte, bool) {
	nul := bytes.IndexByte(b, 0)
	if nul < 0 {
		return b, false
	}
	start, end, size := 0, 0, Window
	for {
		next := min(start+size, len(b))
		if nul < next {
			return b[:start], true
		}
		if k := bytes.LastIndexByte(b[max(end, start):next], '\n'); k >= 0 {
			start = max(end, start) + k + 1
		} else {
			size *= 2
		}
		end = next
	}
}
