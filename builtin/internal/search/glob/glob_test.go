package glob

import (
	"errors"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no []string
	}{
		{"**/*.go", []string{"a.go", "x/y/a.go", ".go"}, []string{"a.gox", "go"}},
		{"**/foo", []string{"foo", "a/foo"}, []string{"afoo", "foo/a"}},
		{"**/foo*", []string{"foo", "a/foob"}, []string{"foo/b"}},
		{"**/*foo*", []string{"afoob", "x/foo"}, []string{"foo/x"}},
		{"**/x*.go", []string{"x.go", "a/xy.go"}, []string{"x.gox", "ax.go", "x/a.go", "x"}},
		{"**/ab*ba", []string{"abba", "x/ab_ba"}, []string{"aba", "ab/ba"}},
		{"a/*", []string{"a/b"}, []string{"a/b/c", "a", "b/b"}},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a", "ab"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"a/xb", "ab"}},
		{"**", []string{"a", "a/b"}, nil},
		{"**/", []string{"a", "a/b"}, nil},
		{"a**b", []string{"ab", "axxb"}, []string{"a/b"}},
		{"a?c", []string{"abc"}, []string{"a/c", "ac"}},
		{"[!a]x", []string{"bx", "/x"}, []string{"ax"}},
		{"[]a]", []string{"]", "a"}, []string{"b"}},
		{"[a-]", []string{"a", "-"}, []string{"b"}},
		{`\*`, []string{"*"}, []string{"a"}},
		{"{a,b/*}.c", []string{"a.c", "b/x.c"}, []string{"b.c"}},
		{"{a,{b,c}}", []string{"a", "b", "c"}, []string{"d"}},
		{"{,a}b", []string{"ab"}, []string{"b"}}, // globset drops empty alternatives
		{"[{]", []string{"{"}, nil},
		{"", []string{""}, []string{"a"}},
	} {
		p, err := Compile(tt.pattern, Options{})
		if err != nil {
			t.Errorf("Compile(%q): %v", tt.pattern, err)
			continue
		}
		for _, s := range tt.yes {
			if !p.Match(s) {
				t.Errorf("%q does not match %q", tt.pattern, s)
			}
		}
		for _, s := range tt.no {
			if p.Match(s) {
				t.Errorf("%q matches %q", tt.pattern, s)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		want    error
	}{
		{"{a", ErrUnclosed}, {"a}", ErrUnopened}, {"[a", ErrClass}, {"[", ErrClass}, {"[!", ErrClass}, {"[b-a]", ErrRange}, {`a\`, ErrEscape},
		{strings.Repeat("{a,b}", 11), ErrTooMany}, {strings.Repeat("{a,b}", 10) + strings.Repeat("?x", 3000), ErrExpanded}, {strings.Repeat("{", 4000) + strings.Repeat("}", 4000), nil},
		{strings.Repeat("a", MaxLength+1), ErrTooLong},
	} {
		if _, err := Compile(tt.pattern, Options{}); !errors.Is(err, tt.want) {
			t.Errorf("Compile(%.20q): %v, want %v", tt.pattern, err, tt.want)
		}
	}
}

func TestDir(t *testing.T) {
	for pattern, want := range map[string]string{
		"a/b/*.go": "a/b", "a/b": "a", "*.go": "", "**/a": "", "a/{b,c}/d": "a", "{a/b,a/c}/d": "a", "a*/b": "",
	} {
		p, err := Compile(pattern, Options{})
		if err != nil || p.Dir() != want {
			t.Errorf("Dir of %q is %q, want %q (%v)", pattern, p.Dir(), want, err)
		}
	}
}

// TestHostile: time is in proportion to pattern × path.
func TestHostile(t *testing.T) {
	p, err := Compile(strings.Repeat("*a", 200)+"b", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Match(strings.Repeat("a", 4000)) {
		t.Error("matches")
	}
	p, err = Compile(strings.Repeat("**/a/", 100)+"b", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Match(strings.Repeat("a/", 2000) + "c") {
		t.Error("matches")
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("**/{a,b[c-d]}*?", "a/b")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		for _, open := range []bool{false, true} {
			if p, err := Compile(pattern, Options{OpenClass: open}); err == nil && len(path) < 5000 {
				p.Match(path)
				p.Dir()
			}
		}
	})
}
