//go:build unix

package pathname

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMany holds that a wildcard that names more than is looked at names any.
func TestMany(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		entries, most int
		want          error
	}{{4, 4, nil}, {3, 4, ErrMany}, {4, 3, ErrMany}} {
		found, err := Expansion{Entries: tt.entries, Most: tt.most}.Files(dir, "*")
		if !errors.Is(err, tt.want) || err == nil && len(found) != 4 {
			t.Errorf("four files, of %d entries at most %d: %q, %v", tt.entries, tt.most, found, err)
		}
	}
}

func TestMatching(t *testing.T) {
	many := strings.Repeat("*a", 200) + "b"
	for _, tt := range []struct {
		pattern, name        string
		shell, element, text bool
	}{
		{"a", "a", true, true, true},
		{"a*c", "abc", true, true, true},
		{"a*c", "ab", false, false, false},
		{"a?", "ab", true, true, false},
		{"a?", "a\u00fc", true, true, false},
		{"[ab]", "b", true, true, false},
		{"[ab]", "c", true, false, false}, // shells and locales differ in what a set is
		{"[ab]", "[ab]", true, false, true},
		{"[!a]", "b", true, true, false},
		{"[[:digit:]]", "7", true, true, false},
		{"[a", "[a", true, false, true},
		{`\*`, "*", false, true, true},
		{`\*`, "x", false, false, false},
		{many, strings.Repeat("a", 255), false, false, false},
	} {
		shell, element, text := Shell(tt.pattern, tt.name, false), Element(tt.pattern, tt.name), Text(tt.pattern, tt.name)
		if shell != tt.shell || element != tt.element || text != tt.text {
			t.Errorf("%.20q and %.20q: shell %v, element %v, text %v; want %v, %v, %v", tt.pattern, tt.name, shell, element, text, tt.shell, tt.element, tt.text)
		}
	}
	for _, name := range []string{"a", "[slug]", "a*b?", `back\slash`, "[]"} {
		if glob := Quote(name); !Valid(glob) || !Element(glob, name) || HasMeta(name) == (glob == name) {
			t.Errorf("%q, quoted %q", name, glob)
		}
	}
}
