package pathname

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrMany reports that a wildcard names too many files to examine.
var ErrMany = errors.New("the wildcard names too many files")

// An Expansion is how a shell expands wildcards: as its options say. It finds what
// any shell may find, and more where shells, locales or lost quotes would tell
// patterns apart: what is judged must not be less than what is read.
type Expansion struct {
	Hidden bool // dotglob: names that begin with a dot too
	Deep   bool // globstar: ** is directories at any depth
	Fold   bool // nocaseglob

	Entries int // how many names in directories may be examined
	Most    int // how many files may be found
	found   []string
}

// Files returns the files that a pattern means which is relative to at, by absolute names.
func (g Expansion) Files(at, pattern string) ([]string, error) {
	err := g.walk(at, strings.Split(filepath.ToSlash(pattern), "/"))
	return g.found, err
}

// walk finds what the elements mean below at.
func (g *Expansion) walk(at string, elements []string) error {
	for len(elements) > 0 && !isWild(elements[0]) {
		if elements[0] != "" && elements[0] != "." {
			at += string(filepath.Separator) + elements[0] // not cleaned: what is before ".." may be a link
		}
		elements = elements[1:]
	}
	if len(elements) == 0 {
		if _, err := os.Lstat(at); err == nil {
			g.found = append(g.found, at)
		}
		if len(g.found) > g.Most {
			return ErrMany
		}
		return nil
	}
	element, rest := elements[0], elements[1:]
	if g.Deep && element == "**" {
		return g.below(at, rest)
	}
	names, err := g.list(at)
	if err != nil {
		return err
	}
	for _, name := range names {
		if g.shows(element, name) && Shell(element, name, g.Fold) {
			if err := g.walk(at+string(filepath.Separator)+name, rest); err != nil {
				return err
			}
		}
	}
	if strings.HasPrefix(element, ".") && len(rest) > 0 && Shell(element, "..", false) {
		return g.walk(at+string(filepath.Separator)+"..", rest) // to shells without globskipdots
	}
	return nil
}

// below is walk for ** with rest after it.
func (g *Expansion) below(at string, rest []string) error {
	if len(rest) == 0 { // the directory is one of them
		if err := g.walk(at, nil); err != nil {
			return err
		}
		rest = []string{"*"}
	}
	if err := g.walk(at, rest); err != nil {
		return err
	}
	names, err := g.list(at)
	if err != nil {
		return err
	}
	for _, name := range names {
		next := at + string(filepath.Separator) + name
		if info, err := os.Lstat(next); err != nil || !info.IsDir() || !g.shows("*", name) {
			continue
		}
		if err := g.below(next, rest); err != nil {
			return err
		}
	}
	return nil
}

func (g *Expansion) list(dir string) ([]string, error) {
	names, err := List(dir, g.Entries)
	g.Entries -= len(names)
	return names, err
}

// List returns at most most names in a directory. A directory that does not exist or cannot be read
// has none.
func List(dir string, most int) ([]string, error) {
	f, err := os.Open(dir + string(filepath.Separator))
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(most + 1)
	if len(names) > most {
		return nil, ErrMany
	}
	slices.Sort(names)
	return names, nil
}

func (g *Expansion) shows(element, name string) bool {
	return g.Hidden || name[0] != '.' || element[0] == '.'
}

// isWild reports whether the shell may take an element of a path for a pattern.
func isWild(element string) bool { return strings.ContainsAny(element, "*?[") }
