package pathname

import (
	"strings"
	"unicode/utf8"
)

// Element reports whether the glob matches all of name: * any text, ? one
// character, [a-z] and [!a-z] a set with POSIX classes, \ quotes. It takes time
// in proportion to the product of both lengths at worst.
func Element(glob, name string) bool {
	star, mark := -1, 0
	g, n := 0, 0
	for n < len(name) {
		if g < len(glob) {
			if glob[g] == '*' {
				star, mark = g, n
				g++
				continue
			}
			if gw, nw, ok := matchOne(glob[g:], name[n:]); ok {
				g += gw
				n += nw
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, w := utf8.DecodeRuneInString(name[mark:])
		mark += w
		g, n = star+1, mark
	}
	return strings.Trim(glob[g:], "*") == ""
}

// matchOne matches the first item of a glob against the first character of name
// and returns how many bytes of each it took.
func matchOne(glob, name string) (int, int, bool) {
	switch glob[0] {
	case '?':
		_, w := utf8.DecodeRuneInString(name)
		return 1, w, true
	case '[':
		r, w := utf8.DecodeRuneInString(name)
		n, in := matchSet(glob, r)
		return n, w, in
	case '\\':
		return 2, 1, len(glob) > 1 && glob[1] == name[0]
	}
	return 1, 1, glob[0] == name[0]
}

// matchSet reports whether r is in the set at the start of glob, and the length
// of the set. A set that is not closed has length 0.
func matchSet(glob string, r rune) (int, bool) {
	i, negated, in := 1, false, false
	if i < len(glob) && (glob[i] == '!' || glob[i] == '^') {
		negated = true
		i++
	}
	for first := true; i < len(glob); first = false {
		if glob[i] == ']' && !first {
			return i + 1, in != negated
		}
		if strings.HasPrefix(glob[i:], "[:") {
			end := strings.Index(glob[i:], ":]")
			if end < 0 {
				return 0, false
			}
			in = in || inClass(glob[i+2:i+end], r)
			i += end + 2
			continue
		}
		lo, w := setRune(glob[i:])
		i += w
		hi := lo
		if i+1 < len(glob) && glob[i] == '-' && glob[i+1] != ']' {
			hi, w = setRune(glob[i+1:])
			i += 1 + w
		}
		in = in || lo <= r && r <= hi
	}
	return 0, false
}

func setRune(s string) (rune, int) {
	if s[0] == '\\' && len(s) > 1 {
		r, w := utf8.DecodeRuneInString(s[1:])
		return r, w + 1
	}
	return utf8.DecodeRuneInString(s)
}

// inClass reports whether a character is in a POSIX class. Like git it knows the classes for ASCII only.
func inClass(class string, r rune) bool {
	lower, upper, digit := 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9'
	switch class {
	case "alpha":
		return lower || upper
	case "alnum":
		return lower || upper || digit
	case "digit":
		return digit
	case "lower":
		return lower
	case "upper":
		return upper
	case "xdigit":
		return digit || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F'
	case "blank":
		return r == ' ' || r == '\t'
	case "space":
		return r == ' ' || '\t' <= r && r <= '\r'
	case "cntrl":
		return r < ' ' || r == 0x7f
	case "print":
		return ' ' <= r && r < 0x7f
	case "graph":
		return ' ' < r && r < 0x7f
	case "punct":
		return ' ' < r && r < 0x7f && !lower && !upper && !digit
	}
	return false
}

// Valid reports whether a glob can match anything.
func Valid(glob string) bool {
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			if i++; i == len(glob) {
				return false
			}
		case '[':
			n, _ := matchSet(glob[i:], 0)
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return true
}

// Split returns the elements of a gitignore pattern. A slash in a set separates nothing: it belongs to the set, and
// never matches.
func Split(pattern string) []string {
	var elements []string
	start := 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			n, _ := matchSet(pattern[i:], 0)
			i += max(n-1, 0)
		case '/':
			elements = append(elements, pattern[start:i])
			start = i + 1
		}
	}
	return append(elements, pattern[start:])
}

// HasMeta reports whether a text has a character that a pattern gives another meaning.
func HasMeta(glob string) bool { return strings.ContainsAny(glob, `*?[\`) }

// Tail returns the text after the last special character of a glob.
func Tail(glob string) string {
	if !HasMeta(glob) {
		return glob
	}
	if i := strings.LastIndexAny(glob, `*?]\`); i >= 0 && glob[i] != '\\' && !strings.Contains(glob, `\`) {
		return glob[i+1:]
	}
	return ""
}

// Quote returns the glob that matches exactly text.
func Quote(text string) string {
	if !HasMeta(text) {
		return text
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}
