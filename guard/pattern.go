package guard

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// A pattern is one gitignore pattern, compiled. Its elements are compared one by
// one with those of a path below its base.
type pattern struct {
	rule    *rule
	order   int  // place among the patterns of its list
	carves  bool // begins with "!": what matches is not meant after all
	dirOnly bool // ends in "/": matches directories only
	// base is the directory the pattern is relative to, without a slash at its
	// end, so that "" is the root directory.
	base string
	// elements are the glob of each path element, "**" for any number of them. A
	// bare pattern has one, which matches the last element at any depth.
	elements []string
	bare     bool
	// tail is the literal end of the last element: a quick test before the
	// patient one.
	tail string
}

var errPattern = errors.New("the pattern can match nothing: it has an unclosed [ or ends in a backslash")

// compilePattern reads a gitignore pattern that is relative to base. A leading
// slash anchors it there.
func compilePattern(text, base string) (pattern, error) {
	p := pattern{base: strings.TrimSuffix(base, "/")}
	text = trimSpace(text)
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		p.carves, text = true, rest
	} else if strings.HasPrefix(text, `\!`) || strings.HasPrefix(text, `\#`) {
		text = text[1:]
	}
	if rest, ok := strings.CutSuffix(text, "/"); ok {
		p.dirOnly, text = true, rest
	}
	p.bare = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return p, errors.New("the pattern is empty")
	}
	p.elements = strings.Split(text, "/")
	for i, e := range p.elements {
		if !validGlob(e) {
			return p, errPattern
		}
		if len(e) > 1 && strings.Trim(e, "*") == "" {
			p.elements[i] = "**" // git takes more stars for two
			if p.bare {
				p.elements[i] = "*"
			}
		}
	}
	p.tail = literalTail(p.elements[len(p.elements)-1])
	return p, nil
}

// literalPattern makes the pattern that matches exactly the path text below
// base, whatever characters are in it.
func literalPattern(text, base string) pattern {
	p := pattern{base: strings.TrimSuffix(base, "/"), elements: strings.Split(quoteGlob(strings.Trim(text, "/")), "/")}
	p.bare = len(p.elements) == 1
	return p
}

// quoteGlob returns the glob that matches exactly text.
func quoteGlob(text string) string {
	if !hasMeta(text) {
		return text
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}

// matchRest reports whether the pattern's elements match rest, the elements of a
// path below its base.
func matchRest(elements []string, rest string) bool {
	for len(elements) > 0 {
		if elements[0] == "**" {
			if len(elements) == 1 {
				return rest != "" // everything inside, not the directory itself
			}
			for {
				if matchRest(elements[1:], rest) {
					return true
				}
				i := strings.IndexByte(rest, '/')
				if i < 0 {
					return false
				}
				rest = rest[i+1:]
			}
		}
		if rest == "" {
			return false
		}
		element, more, _ := strings.Cut(rest, "/")
		if !matchGlob(elements[0], element) {
			return false
		}
		elements, rest = elements[1:], more
	}
	return rest == ""
}

// matchGlob reports whether the glob matches all of name: * any text, ? one
// character, [a-z] and [!a-z] a set with POSIX classes, \ quotes. It takes time
// in proportion to the product of both lengths at worst.
func matchGlob(glob, name string) bool {
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

// inClass knows the POSIX classes for ASCII, as git does.
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

// validGlob reports whether a glob can match anything.
func validGlob(glob string) bool {
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

func hasMeta(glob string) bool { return strings.ContainsAny(glob, `*?[\`) }

// literalTail returns the text after the last special character of a glob.
func literalTail(glob string) string {
	if !hasMeta(glob) {
		return glob
	}
	if i := strings.LastIndexAny(glob, `*?]\`); i >= 0 && glob[i] != '\\' && !strings.Contains(glob, `\`) {
		return glob[i+1:]
	}
	return ""
}

// trimSpace takes trailing spaces off that no backslash quotes, as git does.
func trimSpace(text string) string {
	for strings.HasSuffix(text, " ") && !strings.HasSuffix(text, `\ `) {
		text = text[:len(text)-1]
	}
	return text
}
