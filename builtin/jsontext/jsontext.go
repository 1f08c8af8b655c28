// Package jsontext goes over JSON without decoding it: what encoding/json does character by character, it does eight at a time within
// strings, which are nearly all of a long message. It may refuse what is JSON, and is then to be asked no further; what it accepts,
// encoding/json accepts and reads in the same way. Tests hold the two against each other.
package jsontext

import (
	"math/bits"
	"unicode/utf8"
)

// deepest is how far values may be nested.
const deepest = 1000

// Valid reports whether a text is sure to be one value of JSON.
func Valid(text []byte) bool {
	s := scanner{text: text}
	s.space()
	if !s.value(deepest) {
		return false
	}
	s.space()
	return s.at == len(text)
}

// Object hands the members of an object to a function, in their order: names without their quotes, values as they stand there. It is
// false when the text is no object, a name is spelt with escapes or not in ASCII, or the function returned false.
func Object(text []byte, member func(name, value []byte) bool) bool {
	s := scanner{text: text}
	s.space()
	if !s.object(deepest, member) {
		return false
	}
	s.space()
	return s.at == len(text)
}

// String decodes a string, given with its quotes. It is false where decoding it needs more than to replace escapes of one character.
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

// unescaped is what stands for an escape of one character.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// special is how many bytes stand before the first that may not stand in a string as it is.
func special(text []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		s := text[i : i+8]
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		quote, slash := w^'"'*ones, w^'\\'*ones
		// What a subtraction borrows falses only bytes behind the first that is found.
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

// A scanner goes over a text. Each of its methods goes over what it is named for, and is false if that does not stand there.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// take goes over a character, and the space before it.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) value(depth int) bool {
	if s.at >= len(s.text) || depth == 0 {
		return false
	}
	switch s.text[s.at] {
	case '"':
		return s.string()
	case '{':
		return s.object(depth, nil)
	case '[':
		return s.list(depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) object(depth int, member func(name, value []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		s.space()
		from := s.at
		if !s.string() {
			return false
		}
		name := s.text[from+1 : s.at-1]
		if !s.take(':') {
			return false
		}
		s.space()
		from = s.at
		if !s.value(depth - 1) {
			return false
		}
		if member != nil && (!plain(name) || !member(name, s.text[from:s.at:s.at])) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// plain reports whether a name is spelt as it reads.
func plain(name []byte) bool {
	for _, c := range name {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (s *scanner) list(depth int) bool {
	if !s.take('[') {
		return false
	}
	if s.take(']') {
		return true
	}
	for {
		s.space()
		if !s.value(depth - 1) {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) string() bool {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return false
	}
	for s.at++; ; {
		s.at += special(s.text[s.at:])
		if s.at >= len(s.text) {
			return false
		}
		switch s.text[s.at] {
		case '"':
			s.at++
			return true
		case '\\':
			if !s.escape() {
				return false
			}
		default:
			return false
		}
	}
}

func (s *scanner) escape() bool {
	rest := s.text[s.at+1:]
	if len(rest) > 0 && unescaped[rest[0]] != 0 {
		s.at += len(`\n`)
		return true
	}
	const digits = 4
	if len(rest) <= digits || rest[0] != 'u' {
		return false
	}
	for _, c := range rest[1 : 1+digits] {
		if (c < '0' || c > '9') && (c|' ' < 'a' || c|' ' > 'f') {
			return false
		}
	}
	s.at += len(`\u0000`)
	return true
}

func (s *scanner) word(word string) bool {
	end := s.at + len(word)
	if end > len(s.text) || string(s.text[s.at:end]) != word {
		return false
	}
	s.at = end
	return true
}

func (s *scanner) number() bool {
	if s.text[s.at] == '-' {
		s.at++
	}
	from := s.at
	if n := s.digits(); n == 0 || n > 1 && s.text[from] == '0' {
		return false
	}
	if s.word(".") && s.digits() == 0 {
		return false
	}
	if s.word("e") || s.word("E") {
		_ = s.word("+") || s.word("-")
		return s.digits() > 0
	}
	return true
}

// digits goes over digits and returns how many there were.
func (s *scanner) digits() int {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at - from
}
