package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"toolhost/builtin/jsontext"
)

// cutArguments takes the arguments of a call out of its message, where they are nearly all of a long one: rest has an empty
// object in their place. The library decodes each message five times; what it is not shown is decoded once, when it is
// bound. Whenever two readers could find different arguments in a message, or one of them none, nothing is cut and ok is false.
func cutArguments(message []byte) (rest []byte, arguments json.RawMessage, ok bool) {
	s := jsonScanner{text: message}
	var from, to, params, given int
	walked := s.object(func(name []byte) bool {
		if !bytes.EqualFold(name, []byte("params")) {
			return s.value()
		}
		params++
		return string(name) == "params" && s.object(func(name []byte) bool {
			if !bytes.EqualFold(name, []byte("arguments")) {
				return s.value()
			}
			given++
			from = s.at
			done := string(name) == "arguments" && s.value()
			to = s.at
			return done
		})
	})
	if !walked || len(bytes.TrimSpace(message[s.at:])) > 0 || params != 1 || given != 1 {
		return nil, nil, false
	}
	arguments = json.RawMessage(message[from:to:to])
	if arguments[0] != '{' || !jsontext.Valid(arguments) {
		return nil, nil, false
	}
	return slices.Concat(message[:from], []byte("{}"), message[to:]), arguments, true
}

// A jsonScanner finds where values begin and end. It takes much for JSON that is none, but tells strings from the rest as
// JSON does; it gives up at what decoders may see in different ways.
type jsonScanner struct {
	text []byte
	at   int
}

const (
	// deepest is how far arguments may be nested; a decoder has a limit of its own for the message as a whole.
	deepest = 100
	// longestNumber is how long a number may be, in bytes, to fit into any decoder's type. None with an exponent is sure to.
	longestNumber = 300
)

// object walks an object. member gets each name, stands at the value behind it, and goes over that.
func (s *jsonScanner) object(member func(name []byte) bool) bool {
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
		// A name that is spelt with escapes, or with letters that some take for others, may be any name.
		if bytes.ContainsFunc(name, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) || !s.take(':') {
			return false
		}
		s.space()
		if !member(name) {
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

// value goes over a value, whatever it is.
func (s *jsonScanner) value() bool {
	for depth := 0; s.at < len(s.text); {
		switch c := s.text[s.at]; {
		case c == '"':
			if !s.string() {
				return false
			}
		case c == '{' || c == '[':
			s.at++
			if depth++; depth > deepest {
				return false
			}
			continue
		case c == '}' || c == ']':
			s.at++
			if depth--; depth < 0 {
				return false
			}
		case c == ',' || c == ':' || isSpace(c):
			s.at++
			continue // within an object or a list
		case !s.word():
			return false
		}
		if depth == 0 {
			return true
		}
	}
	return false
}

// string goes over a string.
func (s *jsonScanner) string() bool {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return false
	}
	for from := s.at + 1; ; {
		n := bytes.IndexByte(s.text[from:], '"')
		if n < 0 {
			return false
		}
		before := s.text[from : from+n]
		escapes := len(before) - len(bytes.TrimRight(before, `\`))
		if from += n + 1; escapes%2 == 0 {
			s.at = from
			return true
		}
	}
}

// word goes over a number, true, false or null.
func (s *jsonScanner) word() bool {
	from := s.at
	for s.at < len(s.text) && !isSpace(s.text[s.at]) && !strings.ContainsRune(`{}[]",:`, rune(s.text[s.at])) {
		s.at++
	}
	word := s.text[from:s.at]
	if c := word[0]; c == '-' || c >= '0' && c <= '9' {
		return len(word) <= longestNumber && !bytes.ContainsAny(word, "eE")
	}
	return true
}

// take goes over a character, and the space before it, if it comes next.
func (s *jsonScanner) take(c byte) bool {
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *jsonScanner) space() {
	for s.at < len(s.text) && isSpace(s.text[s.at]) {
		s.at++
	}
}

// isSpace reports whether JSON counts c as space.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
