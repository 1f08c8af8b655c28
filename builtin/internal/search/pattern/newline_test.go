package pattern

import "testing"

// TestNewlineInClass: within lines a newline in a class is none of its members. As one of a few it was taken
// for a text to search for, and found at the end of every line.
func TestNewlineInClass(t *testing.T) {
	for _, tt := range []struct{ pattern, same string }{
		{`[a\n]`, `a`}, {`[\na]b`, `ab`}, {`x[a\x0ab]`, `x[ab]`}, {`(?x)[ a \n ]`, `a`}, {`[a\n-\n]`, `a`}, {`[a[\n]]`, `a`},
	} {
		got, err := Compile(tt.pattern, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		want, err := Compile(tt.same, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Prog.String() != want.Prog.String() {
			t.Errorf("%s:\n%swant, as of %s:\n%s", tt.pattern, got.Prog, tt.same, want.Prog)
		}
	}
	if p, err := Compile(`[a\n]`, Options{Multiline: true}); err != nil || p.Lines {
		t.Errorf("multiline: %v, within lines: %t", err, p != nil && p.Lines)
	}
}
