package pathname

import (
	"strings"
	"unicode/utf8"
)

// Shell reports whether a shell could take pattern for name. A bracket is any
// character, or itself: [!a], [[:alpha:]] and [a-z] mean different things to
// different shells and locales.
func Shell(pattern, name string, fold bool) bool {
	if fold {
		pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	}
	m := wildMatch{pattern: pattern, name: name, failed: map[[2]int]bool{}}
	return m.from(0, 0)
}

type wildMatch struct {
	pattern, name string
	failed        map[[2]int]bool
}

// from matches what is left of the pattern and of the name.
func (m *wildMatch) from(p, n int) bool {
	key := [2]int{p, n}
	if m.failed[key] {
		return false
	}
	ok := m.try(p, n)
	if !ok {
		m.failed[key] = true
	}
	return ok
}

func (m *wildMatch) try(p, n int) bool {
	if p == len(m.pattern) {
		return n == len(m.name)
	}
	switch c := m.pattern[p]; {
	case c == '*':
		return m.from(p+1, n) || n < len(m.name) && m.from(p, n+1)
	case c == '?':
		return m.one(p+1, n)
	case n < len(m.name) && m.name[n] == c && m.from(p+1, n+1):
		return true
	case c == '[':
		for end := p + 1; end < len(m.pattern); end++ {
			if m.pattern[end] == ']' && m.one(end+1, n) {
				return true
			}
		}
	}
	return false
}

// one matches one character, or one byte, and continues in the pattern at p.
func (m *wildMatch) one(p, n int) bool {
	if n == len(m.name) {
		return false
	}
	_, size := utf8.DecodeRuneInString(m.name[n:])
	return m.from(p, n+1) || size > 1 && m.from(p, n+size)
}
