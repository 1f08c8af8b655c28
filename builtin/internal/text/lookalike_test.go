package text

import (
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestLookAlike(t *testing.T) {
	for _, tt := range []struct {
		a, b              string
		indistinct, alike bool
	}{
		{"a b", "a\u00a0b", true, true},
		{"a b", "a\u202fb", true, true},
		{"a b", "a\tb", true, true},
		{"한국어", norm.NFD.String("한국어"), true, true},
		{"é", "e\u0301", true, true},
		{"ab", "a\u200bb", true, true},
		{"ab", "a\ufeffb", true, true},
		{"ab", "a\u00adb", true, true},
		{"❤", "❤\ufe0f", true, true},
		{"ab", "ab \u00a0", true, true},
		{"ab", " ab", false, false},
		{"a-b", "a\u2013b", false, true},
		{"a-b", "a\u2011b", false, true},
		{"d'e", "d\u2019e", false, true},
		{"\"a\"", "\u201ca\u201d", false, true},
		{"a", "A", false, false},
		{"a", "b", false, false},
		{"é", "e", false, false},
	} {
		if got := Indistinct(tt.a) == Indistinct(tt.b); got != tt.indistinct {
			t.Errorf("%q and %q: indistinct %v, want %v", tt.a, tt.b, got, tt.indistinct)
		}
		if got := LookAlike(tt.a) == LookAlike(tt.b); got != tt.alike {
			t.Errorf("%q and %q: look alike %v, want %v", tt.a, tt.b, got, tt.alike)
		}
	}
}

func TestEscaped(t *testing.T) {
	for s, want := range map[string]string{
		"a b": "a b", " a ": `\u0020a\u0020`, "a\u202fb": `a\u202fb`, "😀": `\ud83d\ude00`, "a\x01": `a\u0001`,
	} {
		if got := Escaped(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
