package document

import (
	"encoding/json"
	"strings"
)

// JSON is edited by spans: the file is searched for the positions of members and elements, and only those ranges are
// written. Everything else stays unchanged.

// utf8BOM is the byte-order mark that some editors put before JSON.
var utf8BOM = []byte("\xef\xbb\xbf")

// A span is a range of bytes in the file.
type span struct{ start, end int }

func (s span) of(raw []byte) []byte { return raw[s.start:s.end] }

// A member is a key of an object with its value.
type member struct {
	name  string
	key   span // with its quotes
	value span
}

// members and elements expect valid JSON, which anything may follow.

// maxMembers is how many members of an object are read. A notebook has some dozens; a hostile one could have
// millions.
const maxMembers = 10_000

// members returns the members of the object at raw[at], at most maxMembers.
func members(raw []byte, at int) []member {
	var all []member
	for i := skipSpace(raw, at+1); raw[i] != '}' && len(all) < maxMembers; {
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
		m := member{key: span{i, skipValue(raw, i)}}
		m.name = unquote(m.key.of(raw))
		i = skipSpace(raw, m.key.end)
		i = skipSpace(raw, i+1) // the colon
		m.value = span{i, skipValue(raw, i)}
		all = append(all, m)
		i = skipSpace(raw, m.value.end)
	}
	return all
}

// elements returns the elements of the array at raw[at], at most so many.
func elements(raw []byte, at, most int) []span {
	var all []span
	for i := skipSpace(raw, at+1); raw[i] != ']' && len(all) < most; {
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
		e := span{i, skipValue(raw, i)}
		all = append(all, e)
		i = skipSpace(raw, e.end)
	}
	return all
}

// find returns the last member of that name, as JSON parsers do, or nil.
func find(all []member, name string) *member {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && isSpace(raw[i]) {
		i++
	}
	return i
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// skipValue returns the end of the value that starts at raw[i], or len(raw) if the value is incomplete.
func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue
		default:
			i = skipWord(raw, i)
		}
		if depth <= 0 {
			return min(i, len(raw))
		}
	}
	return len(raw)
}

func skipString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// skipWord skips a number, true, false or null.
func skipWord(raw []byte, i int) int {
	for i < len(raw) && !isSpace(raw[i]) && strings.IndexByte(`,:[]{}"`, raw[i]) < 0 {
		i++
	}
	return i
}

func unquote(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}
