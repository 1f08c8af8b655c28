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

// aliases are names of languages that ripgrep knows by others.
var aliases = map[string]string{
	"javascript": "js", "node": "js", "golang": "go", "c++": "cpp", "cxx": "cpp", "c#": "csharp", "f#": "fsharp",
	"objective-c": "objc", "shell": "sh", "bash": "sh", "shellscript": "sh", "powershell": "ps", "text": "txt", "plaintext": "txt",
	"dockerfile": "docker", "makefile": "make", "latex": "tex", "visualbasic": "vb", "assembly": "asm",
	"restructuredtext": "rst", "emacs-lisp": "elisp", "hcl": "tf",
}

// globsOf returns the globs of a type: by the name that ripgrep has for it, in any case of its letters, by the name of
// the language, or by an extension that some type has. It returns nil for an unknown name.
func globsOf(types map[string][]string, name string) []string {
	if name == "all" {
		var all []string
		for _, g := range types {
			all = append(all, g...)
		}
		return all
	}
	plain := strings.ToLower(strings.TrimLeft(name, "*."))
	for _, known := range []string{name, plain, aliases[plain]} {
		if globs := types[known]; globs != nil {
			return globs
		}
	}
	for _, globs := range types {
		if ext := "*." + plain; slices.Contains(globs, ext) {
			return []string{ext}
		}
	}
	return nil
}

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
		globs := globsOf(types, name)
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

// suggest names the types that look like a wrong one.
func suggest(types map[string][]string, name string) string {
	var near []string
	for t := range types {
		if strings.HasPrefix(t, name) || len(t) > 1 && strings.HasPrefix(name, t) {
			near = append(near, t)
		}
	}
	if len(near) == 0 || name == "" {
		return "; pass a glob such as *." + name + " instead"
	}
	slices.Sort(near)
	return "; did you mean " + strings.Join(near, ", ") + "?"
}
