package glob

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// table is the output of `rg --type-list` of Version, unchanged.
//
//go:embed types.txt
var table string

// Version is the ripgrep whose list is embedded.
const Version = "15.0.0"

// ErrUnknown is wrapped by Select's error.
var ErrUnknown = errors.New("unknown file type")

// load parses the table when it is first asked for.
var load = sync.OnceValue(func() map[string][]string {
	types := map[string][]string{}
	for line := range strings.Lines(table) {
		name, globs, _ := strings.Cut(strings.TrimSpace(line), ": ")
		types[name] = strings.Split(globs, ", ")
	}
	return types
})

// A Set selects files by their name.
type Set struct{ globs []*Pattern }

// Select returns the set of the named types, or nil for no names. The special
// name "all" means every type of the list, as in ripgrep. An unknown name is
// an error that lists the similar ones.
func Select(names []string) (*Set, error) {
	if len(names) == 0 {
		return nil, nil
	}
	types := load()
	s := &Set{}
	for _, name := range names {
		globs := types[name]
		if name == "all" {
			for _, g := range types {
				globs = append(globs, g...)
			}
		}
		if globs == nil {
			return nil, fmt.Errorf("%w %q%s", ErrUnknown, name, suggest(types, name))
		}
		for _, g := range globs {
			p, err := Compile("**/"+g, Options{})
			if err != nil {
				return nil, fmt.Errorf("file type %s: pattern %q: %w", name, g, err)
			}
			s.globs = append(s.globs, p)
		}
	}
	return s, nil
}

// Match reports whether a file of this base name is of one of the types.
func (s *Set) Match(name string) bool {
	return slices.ContainsFunc(s.globs, func(g *Pattern) bool { return g.Match(name) })
}

// suggest names the types that carry the wrong name as their extension, or
// that look like it.
func suggest(types map[string][]string, name string) string {
	ext := "*." + strings.ToLower(strings.TrimLeft(name, "*."))
	var near []string
	for t, globs := range types {
		if slices.Contains(globs, ext) || strings.HasPrefix(t, name) || len(t) > 1 && strings.HasPrefix(name, t) {
			near = append(near, t)
		}
	}
	if len(near) == 0 || name == "" {
		return "; pass a glob such as *." + name + " instead"
	}
	slices.Sort(near)
	return "; did you mean " + strings.Join(near, ", ") + "?"
}
