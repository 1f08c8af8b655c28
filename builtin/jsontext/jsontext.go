// Package jsontext goes over JSON without decoding it: what encoding/json does character by character, it does eight
// at a time within strings, which are nearly all of a long message. It may refuse what is JSON, and is then to be
// asked no further; what it accepts, encoding/json accepts and reads in the same way. Tests hold the two against each
// other.
//
// Its Go API is not stable.
package jsontext

import (
	"math/bits"
	"unicode/utf8"
)

const (
	// deepest is how far values may be nested; every decoder has a limit of its own, which lies beyond this one.
	deepest = 100
	// longestNumber is how many bytes a number may take without its exponent, longestExponent how many digits that may
	// have: what is longer may be too large for a float64.
	longestNumber   = 200
	longestExponent = 2
)

// Object hands the members of an object to a function, in their order: names without their quotes, values as they
// stand there. It is false when the text is no object, a name is spelt with escapes or not in ASCII, or the function
// returned false.
func Object(text []byte, member func(name, value []byte) bool) bool {
	s := NewScanner(text)
	return s.Object(func(name []byte) bool {
		value := s.Value()
		return value != nil && member(name, value)
	}) && s.End()
}

// String decodes a string, given with its quotes. It reports false for a string that is not valid, or has other escapes
// than those of one letter, such as \n.
func String(quoted []byte) (string, bool) {
	n := len(quoted)
	if n < 2 || quoted[0] != '"' || quoted[n-1] != '"' {
		return "", false
	}
	raw := quoted[1 : n-1]
	next := special(raw)
	if next == len(raw) {
		return string(raw), utf8.Valid(raw)
	}
	out := make([]byte, 0, len(raw))
	for {
		out = append(out, raw[:next]...)
		if raw = raw[next:]; len(raw) == 0 {
			break
		}
		if raw[0] != '\\' || len(raw) < 2 {
			return "", false
		}
		c := unescaped[raw[1]]
		if c == 0 {
			return "", false
		}
		out, raw = append(out, c), raw[2:]
		next = special(raw)
	}
	return string(out), utf8.Valid(out)
}

// unescaped is the character that each escape of one character stands for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// special returns how many bytes come before the first that a JSON string may contain only as an escape.
func special(text []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		s := text[i : i+8]
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		quote, slash := w^'"'*ones, w^'\\'*ones
		// A borrow of the subtraction corrupts only bytes after the first match.
		if found := ((w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}
