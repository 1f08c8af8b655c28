package jsontext

import "unicode/utf8"

// A Scanner reads a JSON text. Each of its methods reads what it is named for, with the space before it. It fails if
// the text has something else there; then the position of the scanner is undefined. The zero value has no text.
type Scanner struct {
	text  []byte
	at    int
	depth int // of the values that it is in
}

// NewScanner returns a scanner at the beginning of a text.
func NewScanner(text []byte) *Scanner { return &Scanner{text: text} }

// At is how many bytes of the text lie after the scanner.
func (s *Scanner) At() int { return s.at }

// End goes over the space at the end of the text.
func (s *Scanner) End() bool {
	s.space()
	return s.at == len(s.text)
}

// Value reads a value, and returns its text, or nil if it fails.
func (s *Scanner) Value() []byte {
	s.space()
	from := s.at
	if !s.value() {
		return nil
	}
	return s.text[from:s.at:s.at]
}

// Object reads an object. It calls member with each name, without quotes, when the value is next; member reads the
// value. Names that are spelt with escapes, or not in ASCII, may mean any name to another decoder: an object with one
// of them fails.
func (s *Scanner) Object(member func(name []byte) bool) bool {
	return s.list('{', '}', func() bool {
		name, ok := s.name()
		return ok && isPlain(name) && member(name)
	})
}

func (s *Scanner) space() {
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
func (s *Scanner) take(c byte) bool {
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *Scanner) value() bool {
	if s.at >= len(s.text) {
		return false
	}
	switch s.text[s.at] {
	case '"':
		return s.string()
	case '{':
		return s.list('{', '}', s.member)
	case '[':
		return s.list('[', ']', s.element)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *Scanner) element() bool {
	s.space()
	return s.value()
}

func (s *Scanner) member() bool {
	_, ok := s.name()
	return ok && s.element()
}

// list reads elements that are separated by commas, between two characters.
func (s *Scanner) list(open, end byte, element func() bool) bool {
	if s.depth == deepest || !s.take(open) {
		return false
	}
	s.depth++
	if !s.take(end) {
		for more := true; more; more = s.take(',') {
			if !element() {
				return false
			}
		}
		if !s.take(end) {
			return false
		}
	}
	s.depth--
	return true
}

// name goes over the name of a member, and the colon after it.
func (s *Scanner) name() (name []byte, ok bool) {
	s.space()
	from := s.at + 1
	if !s.string() {
		return nil, false
	}
	name = s.text[from : s.at-1]
	return name, s.take(':')
}

// isPlain reports whether a name is spelt as it reads.
func isPlain(name []byte) bool {
	for _, c := range name {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (s *Scanner) string() bool {
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

func (s *Scanner) escape() bool {
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

func (s *Scanner) word(word string) bool {
	end := s.at + len(word)
	if end > len(s.text) || string(s.text[s.at:end]) != word {
		return false
	}
	s.at = end
	return true
}

func (s *Scanner) number() bool {
	from := s.at
	_ = s.word("-")
	first := s.at
	if n := s.digits(); n == 0 || n > 1 && s.text[first] == '0' {
		return false
	}
	if s.word(".") && s.digits() == 0 {
		return false
	}
	if s.at-from > longestNumber {
		return false
	}
	if !s.word("e") && !s.word("E") {
		return true
	}
	_ = s.word("+") || s.word("-")
	n := s.digits()
	return n > 0 && n <= longestExponent
}

// digits goes over digits and returns how many there were.
func (s *Scanner) digits() int {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at - from
}
