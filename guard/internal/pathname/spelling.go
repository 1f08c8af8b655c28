package pathname

import (
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A Spelling is how names are brought into the form they are compared in.
type Spelling uint8

const (
	// Exact compares bytes. An allow rule opens exactly what it names.
	Exact Spelling = iota
	// Composed takes the Unicode forms of one name as equal.
	Composed
	// Folded takes upper and lower case as equal too, as macOS, Windows and ext4
	// with casefold do, and drops characters that some of them do not see.
	Folded
)

// Of returns name in the form in which names are compared.
func (s Spelling) Of(name string) string {
	if isASCII(name) {
		if s == Folded {
			return strings.ToLower(name)
		}
		return name
	}
	switch s {
	case Composed:
		return norm.NFC.String(name)
	case Folded:
		return cases.Fold().String(strings.Map(visible, norm.NFD.String(name)))
	}
	return name
}

// visible drops the code points that file systems which fold case ignore: HFS+
// and ext4 take ".g\u200cit" as ".git".
func visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r) {
		return -1
	}
	return r
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// IgnoresCase reports whether the file system of dir takes upper and lower case
// as equal. It asks the file system: no list of kinds is complete.
func IgnoresCase(dir string) bool {
	if f, err := os.Open(dir); err == nil {
		names, _ := f.Readdirnames(64)
		f.Close()
		for _, name := range names {
			if other := swapCase(name); other != name {
				return sameName(filepath.Join(dir, name), filepath.Join(dir, other))
			}
		}
	}
	parent, base := filepath.Split(filepath.Clean(dir))
	other := swapCase(base)
	return other != base && sameName(filepath.Join(parent, base), filepath.Join(parent, other))
}

func sameName(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// Within reports whether path is dir or below it, element by element: "/ws-evil"
// is not within "/ws".
func Within(path, dir string) bool {
	if dir == "/" || dir == "" {
		return true
	}
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/' || dir[len(dir)-1] == '/')
}
