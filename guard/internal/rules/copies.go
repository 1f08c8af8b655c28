package rules

import (
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// copies returns the patterns for copies of the files that a pattern means. They consist of a name of Copy, and of
// the part of the pattern that is below a name of CopyOf.
func (c *Compiler) copies(p pattern) (out []pattern) {
	if c.CopyOf.Given == "" {
		return nil
	}
	base := pathname.Quote(strings.Trim(p.base, "/"))
	elements := p.elements
	if p.bare {
		elements = append([]string{"**"}, elements...)
	}
	if base != "" {
		elements = slices.Concat(strings.Split(base, "/"), elements)
	}
	for _, of := range c.CopyOf.Names() {
		rests := map[string][]string{}
		below(elements, strings.Split(strings.Trim(of, "/"), "/"), rests)
		for _, rest := range rests {
			for _, to := range c.Copy.Names() {
				q := p
				if q.base, q.elements, q.bare = to, rest, false; len(rest) == 0 {
					q.base, q.elements, q.tail = path.Dir(to), []string{pathname.Quote(path.Base(to))}, ""
				}
				if q.base = strings.TrimSuffix(q.base, "/"); !slices.ContainsFunc(out,
					func(o pattern) bool { return o.base == q.base && slices.Equal(o.elements, q.elements) }) {
					out = append(out, q)
				}
			}
		}
	}
	return out
}

// below collects what is left of the elements of a pattern after they have matched the elements of a directory.
// Nothing is left if the pattern means the directory itself, or one above it.
func below(elements, dir []string, rests map[string][]string) {
	switch {
	case len(dir) == 0 || len(elements) == 0:
		rests[strings.Join(elements, "/")] = elements
	case elements[0] == "**":
		below(elements[1:], dir, rests)
		below(elements, dir[1:], rests)
	case pathname.Element(elements[0], dir[0]):
		below(elements[1:], dir[1:], rests)
	}
}
