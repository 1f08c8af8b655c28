package pattern

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		pattern, msg, hint string
		pos                int
	}{
		{`(`, "unclosed group", `\(`, 0},
		{`a)`, "unopened group", `\)`, 1},
		{`foo\\(bar`, "unclosed group", `probably meant: foo\(bar`, 5},
		{`foo\\)`, "unopened group", `probably meant: foo\)`, 5},
		{`a(?=b)`, "look-ahead", "", 1},
		{`(?<!b)a`, "look-behind", "", 0},
		{`(a)\1`, "back-references", "", 3},
		{`\k<a>`, "back-references", "", 0},
		{`(?>a)`, "atomic", "(?:", 0},
		{`[a`, "unclosed character class", `\[`, 0},
		{`x[b-a]`, "backwards", `\-`, 2},
		{`[a-\d]`, "cannot end a range", "", 3},
		{`*a`, "nothing to repeat", `\*`, 0},
		{`a|+`, "nothing to repeat", `\+`, 2},
		{`a{3,2}`, "lower bound", "", 1},
		{`\pX`, "unknown Unicode class", "general categories", 0},
		{`é\Z`, `unknown escape \Z`, `\z`, 2},
		{`\`, "backslash at the end", `\\`, 0},
		{`\x{110000}`, "not the hexadecimal", "", 0},
		{`\xZZ`, "not the hexadecimal", "", 0},
		{`\x4`, "cut short", "", 0},
		{`a\nb`, "newline never matches", "multiline", 1},
		{`a[\n]`, "newline never matches", "multiline", 1},
		{`(?-u)\xFF`, "(?-u)", "", 3},
		{`(?z)`, "unknown flag", "", 2},
		{`(?-R)a$`, "(?-R)", `[^\r]$`, 3},
		{`a\x00`, "NUL character", "binary", 0},
		{`a|[\x00]`, "NUL character", "binary", 0},
		{`\p{scx=Greek}`, "unknown Unicode class", "scripts", 0},
		{`(a{1000}){1000}`, "too large", "", 0},
		{strings.Repeat("(", MaxNest+1), "nest deeper", "", MaxNest},
		{"a\xff", "not valid UTF-8", "", 1},
	} {
		_, err := Compile(tt.pattern, Options{})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("Compile(%.40q): %v", tt.pattern, err)
			continue
		}
		if !strings.Contains(e.Msg, tt.msg) || !strings.Contains(e.Hint, tt.hint) || e.Pos != tt.pos {
			t.Errorf("Compile(%.40q): at %d: %q, %q; want at %d %q, %q", tt.pattern, e.Pos, e.Msg, e.Hint, tt.pos,
				tt.msg, tt.hint)
		}
		if e.Error() == "" {
			t.Error("no text")
		}
	}
}

func TestErrorShowsThePlace(t *testing.T) {
	_, err := Compile("é(", Options{})
	want := "invalid pattern: unclosed group: a `(` without `)`, at character 2\n    é(\n     ^\nFor the character write \\(."
	if err == nil || err.Error() != want {
		t.Errorf("got %q\nwant %q", err, want)
	}
}

func TestLiterals(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		want    *Literals
	}{
		{`foo`, &Literals{Texts: []string{"foo"}, Exact: true}},
		{`(?i)Foo`, &Literals{Texts: []string{"foo"}, Fold: true, Exact: true}},
		{`\bfoo\b`, &Literals{Texts: []string{"foo"}, Before: WordBoundary, After: WordBoundary}},
		{`foo|bar`, &Literals{Texts: []string{"bar", "foo"}, Exact: true}},
		{`(?i:foo)Bar`, &Literals{Texts: []string{"foobar"}, Fold: true}},
		{`a(b|c)d`, &Literals{Texts: []string{"abd", "acd"}, Exact: true}},
		{`\w+Error\(`, &Literals{Texts: []string{"Error("}}},
		{`x*`, nil},
		{`(foo)?`, nil},
		{`\w+`, nil},
		{`(?i)é`, nil},
		{`(?i)éclair`, &Literals{Texts: []string{"clair"}, Fold: true}},
		{`foo.*barbaz`, &Literals{Texts: []string{"barbaz"}}},
		{`(foo\d)+`, &Literals{Texts: []string{"foo"}}},
		{`(foo\d){2,}`, &Literals{Texts: []string{"foo"}}},
		{`colou?r`, &Literals{Texts: []string{"color", "colour"}, Exact: true}},
		{`[^a]`, nil},
		{`^foo`, &Literals{Texts: []string{"foo"}, Before: LineBoundary, Exact: true}},
		{`^(foo|bar)$`, &Literals{Texts: []string{"bar", "foo"}, Before: LineBoundary, After: LineBoundary, Exact: true}},
		{`^\bfoo`, &Literals{Texts: []string{"foo"}, Before: LineBoundary}},
		{`\bfoo\(`, &Literals{Texts: []string{"foo("}, Before: WordBoundary}},
		{`\w+\bfoo\.\b`, &Literals{Texts: []string{"foo."}, Before: WordBoundary}},
		{`\<foo\>\s`, &Literals{Texts: []string{"foo"}, Before: WordBoundary, After: WordBoundary}},
		{`^\t+return$`, &Literals{Texts: []string{"\treturn"}, After: LineBoundary}},
		{`foo$|bar`, &Literals{Texts: []string{"bar", "foo"}}},
	} {
		p, err := Compile(tt.pattern, Options{})
		if err != nil {
			t.Errorf("Compile(%q): %v", tt.pattern, err)
			continue
		}
		if d := cmp.Diff(tt.want, p.Literals, cmpopts.IgnoreFields(Literals{}, "Prefix")); d != "" {
			t.Errorf("%q (-want +got)\n%s", tt.pattern, d)
		}
	}
}

func TestPrefix(t *testing.T) {
	for p, want := range map[string]bool{
		`func \w+`: true, `\bfoo`: true, `(foo|bar)\d`: true, `foo`: true, `\w+foo`: false, `x?foo\d`: true, `a\d*foobar`: false, `(?i)fo\d`: true,
	} {
		if c, err := Compile(p, Options{}); err != nil || c.Literals == nil || c.Literals.Prefix != want {
			t.Errorf("%q: %+v, %v; want %v", p, c.Literals, err, want)
		}
	}
}

func TestRuns(t *testing.T) {
	for src, want := range map[string]string{
		`[A-Z][0-9]x`: "A..Z 0..9 x", `\b[0-9]+[a-c]{3}[0-9]+\b`: "0..9 abc abc abc 0..9", `[ab]+[cd]e`: "ab cd e",
		`(?i)ABK`: "", `(?i)abc`: "Aa Bb Cc", `[ab]\d[ab]`: "", `^a[xy]z$`: "a xy z", `ab[xy]*cd`: "", `ab(x|yz)cd`: "",
		`(ab[xy])+c`: "a b xy,a b xy c", `[^a]bcd`: "b c d", `a.bc[de]`: "b c de",
	} {
		p, err := Compile(src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, run := range p.ByteRuns {
			var classes []string
			for _, c := range run {
				if len(c) > 3 {
					c = fmt.Appendf(nil, "%c..%c", c[0], c[len(c)-1])
				}
				classes = append(classes, string(c))
			}
			all = append(all, strings.Join(classes, " "))
		}
		if got := strings.Join(all, ","); got != want {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

func TestSets(t *testing.T) {
	for _, tt := range []struct{ class, in, out string }{
		{`[a-z&&[^aeiou]]`, "bz", "aeA"},
		{`[a-c--b]`, "ac", "b"},
		{`[a-c~~b-d]`, "ad", "bc"},
		{`[\w--\d]`, "aé_", "1٣"},
		{`[]a]`, "]a", "b"},
		{`[^]a]`, "b", "]a"},
		{`[a-]`, "a-", "b"},
		{`[-a]`, "a-", "b"},
		{`[--a]`, "-a", "b"},
		{`[[:^alpha:]]`, "1é", "a"},
		{`[[:digit:]x]`, "1x", "a"},
		{`[\]\-\\]`, `]-\`, "a"},
		{`[\x41-\u{43}]`, "ABC", "D"},
		{`[[a-c][x]]`, "bx", "d"},
		{`(?i)[k]`, "kK\u212a", "s"},
		{`(?i)[^k]`, "s", "kK\u212a"},
		{`\p{Greek}`, "α", "a"},
		{`\p{script=greek}`, "α", "a"},
		{`\P{L}`, "1", "aé"},
		{`\p{^L}`, "1", "aé"},
		{`\p{Uppercase_Letter}`, "A", "a"},
		{`\p{white space}`, "\u2003", "a"},
		{`\d`, "1٣", "a"},
		{`\s`, " \u00a0\u2028", "a"},
		{`\w`, "aé世\u200d\u0301", "-\u2010"},
		{`(?x)[ a b ]`, "ab", " "},
	} {
		p := parser{scanner: scanner{text: tt.class}, flags: flags{multi: true}}
		re, err := p.parse()
		if err != nil {
			t.Errorf("%s: %v", tt.class, err)
			continue
		}
		for _, r := range tt.in {
			if !set(re.Rune).has(r) {
				t.Errorf("%s lacks %q", tt.class, r)
			}
		}
		for _, r := range tt.out {
			if set(re.Rune).has(r) {
				t.Errorf("%s has %q", tt.class, r)
			}
		}
	}
}

func TestUnescape(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		changed  bool
	}{
		{`a\\.b`, `a\.b`, true}, {`a\.b`, `a\.b`, false}, {`\\\\`, `\\\\`, false}, {`\\d+`, `\d+`, true}, {`C:\\Users`, `C:\\Users`, false},
	} {
		if got, changed := Unescape(tt.in); got != tt.want || changed != tt.changed {
			t.Errorf("Unescape(%q) = %q, %v", tt.in, got, changed)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, p := range []string{`(?i)a|b{2,3}[^c&&d]`, `\p{L}\b{start}`, `(?x) a # b`, `[[:alpha:]--a]`, `\x{41}`, `{`,
		`a{,3}`, `(?P<n>a)`, `[a-[b]]`} {
		f.Add(p, true)
	}
	f.Fuzz(func(t *testing.T, p string, multiline bool) {
		if c, err := Compile(p, Options{Multiline: multiline}); err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos > len(e.Pattern) || e.Error() == "" {
				t.Errorf("Compile(%q): %v", p, err)
			}
		} else if len(c.Prog.Inst) > 4*MaxSteps {
			t.Errorf("Compile(%q): %d instructions", p, len(c.Prog.Inst))
		}
	})
}

// TestDerivedProperties holds the sets to some members and some others.
func TestDerivedProperties(t *testing.T) {
	for _, tt := range []struct{ name, in, out string }{
		{"Emoji", "😀☃©7#", "a‖"}, {"Emoji_Presentation", "😀✅", "©7☃"}, {"EMod", "🏽", "👍"}, {"emoji_modifier_base", "👍", "🏽"},
		{"EComp", "🏽7*", "😀"}, {"Extended_Pictographic", "😀©☃", "7#🏽"}, {"Math", "+∑‖^", "a-"},
		{"ID_Start", "aé漢", "_7-"}, {"ID_Continue", "aé漢_7", "-$"}, {"XID_Start", "aé漢", "_7\u037a\u0e33"}, {"XIDC", "aé_7\u0e33", "\u037a-"},
	} {
		s, ok := property(tt.name)
		if !ok {
			t.Errorf("%s is unknown", tt.name)
			continue
		}
		for _, r := range tt.in {
			if !s.has(r) {
				t.Errorf("%s lacks %q", tt.name, r)
			}
		}
		for _, r := range tt.out {
			if s.has(r) {
				t.Errorf("%s has %q", tt.name, r)
			}
		}
		for i := 1; i < len(s); i++ {
			if s[i-1] > s[i] || i%2 == 0 && s[i-1]+1 >= s[i] {
				t.Errorf("%s is not in order at %U", tt.name, s[i])
			}
		}
	}
}
