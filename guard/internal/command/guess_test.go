package command

import (
	"slices"
	"testing"
)

// TestPrinted holds what is known of what the commands in a word print.
func TestPrinted(t *testing.T) {
	tests := []struct {
		word string
		want []string
	}{
		{"$(echo a)", []string{"a"}},
		{"x$(echo -n a b)", []string{"xa", "b"}},
		{`"$(echo a b)"`, []string{"a b"}},
		{`$(echo -e 'a\x62')`, []string{"ab"}},
		{"`printf a`", []string{"a"}},
		{`$(printf -- '-%s' r f)`, []string{"-r-f"}},
		{`$(printf '\056env')`, []string{".env"}},
		{"$(printf '%d%%' 5)", []string{"5%"}},
		{"$(printf '%9999d' 5)", nil},
		{"$(printf %*d 9 5)", nil},
		{"$(printf -v x a)", nil},
		{"$(echo $x)", nil},
		{"$(echo *)", nil},
		{"$(echo ~)", nil},
		{"$(echo {a,b})", nil},
		{"$(echo a; echo b)", nil},
		{"$(echo a | rev)", nil},
		{"$(echo a > b)", nil},
		{"$(cat a)", nil},
		{"$(<a)", nil},
		{"$()", nil},
	}
	for _, tt := range tests {
		got := Analyze("x " + tt.word).Commands[0].Args[1].Guesses()
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.word, got, tt.want)
		}
	}
	a := Analyze("x=$(echo a); y $x")
	if w := a.Commands[len(a.Commands)-1].Args[1]; a.Names(w) || !slices.Equal(w.Guesses(), []string{"a"}) {
		t.Errorf("%q is known for sure, which an echo of another shell prints", w.Guesses())
	}
}
