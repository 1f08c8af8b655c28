package rules

import (
	"errors"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A pattern is a compiled gitignore pattern. Its elements are compared one by one with those of a path below its
// base.
type pattern struct {
	rule    *Rule
	order   int  // position among the patterns of its list
	carves  bool // begins with "!": an exception to earlier patterns
	dirOnly bool // ends in "/": matches directories only
	// base is the directory that the pattern is relative to, without a slash at its end: "" is the root directory.
	base string
	// elements has a glob for each path element; "**" stands for any number of elements. A bare pattern has a single
	// glob, which matches the last element at any depth.
	elements []string
	bare     bool
	// tail is the literal end of the last element, for a quick test before the slow one.
	tail string
}

var errPattern = errors.New("the pattern can match nothing: it has an unclosed [ or ends in a backslash")

// compilePattern compiles a gitignore pattern that is relative to base. A leading slash anchors it there.
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
	p.elements = pathname.Split(text)
	for i, e := range p.elements {
		if !pathname.Valid(e) {
			return p, errPattern
		}
		if len(e) > 1 && strings.Trim(e, "*") == "" {
			p.elements[i] = "**" // git takes more stars for two
			if p.bare {
				p.elements[i] = "*"
			}
		}
	}
	p.tail = pathname.Tail(p.elements[len(p.elements)-1])
	return p, nil
}

// literalPattern returns a pattern that matches exactly the path text below base, whatever characters it has.
func literalPattern(text, base string) pattern {
	p := pattern{base: strings.TrimSuffix(base, "/"),
		elements: strings.Split(pathname.Quote(strings.Trim(text, "/")), "/")}
	p.bare = len(p.elements) == 1
	return p
}

// matchRest reports whether the pattern's elements match rest, the elements of a
// path below its base.
func matchRest(elements []string, rest string) bool {
	for len(elements) > 0 {
		if elements[0] == "**" {
			if len(elements) == 1 {
				return rest != "" // everything in the directory, but not the directory itself
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
		if !pathname.Element(elements[0], element) {
			return false
		}
		elements, rest = elements[1:], more
	}
	return rest == ""
}

// trimSpace removes trailing spaces that are not escaped, as git does.
func trimSpace(text string) string {
	for strings.HasSuffix(text, " ") && !quotesNext(text[:len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

// quotesNext reports whether a text ends in a backslash that is not escaped itself.
func quotesNext(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}
