package pathname

import "strings"

// Text reports whether text matches a pattern in which * stands for any
// text and \* for a star.
func Text(pattern, text string) bool {
	star, mark, p, t := -1, 0, 0, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, t
			p++
			continue
		}
		if p < len(pattern) {
			w := 1
			if pattern[p] == '\\' && p+1 < len(pattern) && pattern[p+1] == '*' {
				w = 2
			}
			if pattern[p+w-1] == text[t] {
				p += w
				t++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, t = star+1, mark
	}
	return strings.Trim(pattern[p:], "*") == ""
}
