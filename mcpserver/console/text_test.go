package console

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestVisible(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "a\tb\nc é 漢 👍", "a\tb\nc é 漢 👍"},
		{"terminal escape", "\x1b[2J\x1b]0;title\a", "␛[2J␛]0;title␇"},
		{"redrawn line", "safe\rrm -rf x", "safe␍rm -rf x"},
		{"erased text", "rm -rf x\b\b\b", "rm -rf x␈␈␈"},
		{"NUL", "a\x00b", "a␀b"},
		{"text turned around", "\u202egnp.exe", "⟨U+202E⟩gnp.exe"},
		{"isolate", "a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"},
		{"invisible", "ls\u200b -l\ufeff", "ls⟨U+200B⟩ -l⟨U+FEFF⟩"},
		{"hidden letters", "x\U000E0041", "x⟨U+E0041⟩"},
		{"blank that is none", "rm\u00a0x", "rm⟨U+00A0⟩x"},
		{"C1 control", "a\u009b2J", "a⟨U+009B⟩2J"},
		{"line separator", "a\u2028b", "a⟨U+2028⟩b"},
		{"not UTF-8", "a\xff\xfeb", "a\ufffdb"},
		{"HTML is escaped later", "<b>", "<b>"},
	}
	for _, tt := range tests {
		if got := Visible(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b[31m\u202e\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Visible(s)
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(got) {
			t.Errorf("Visible(%q) = %q", s, got)
		}
		if again := Visible(got); again != got {
			t.Errorf("Visible(%q) changes to %q when it is shown again", got, again)
		}
	})
}

func TestDiffLines(t *testing.T) {
	const text = "- not a diff yet\n\n--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n z\n"
	want := []line{{"", "- not a diff yet"}, {"", ""}, {"file", "--- a"}, {"file", "+++ a"}, {"hunk", "@@ -1 +1 @@"}, {"del", "-x"}, {"add", "+y"}, {"", " z"}}
	if diff := cmp.Diff(want, diffLines(text)); diff != "" {
		t.Error(diff)
	}
}

func TestFields(t *testing.T) {
	long := strings.Repeat("é", maxField)
	got := fields([]byte(`{"file_path":"a","old_string":"x\ny\n","n":5,"list":["a"],"content":"` + long + `"}`))
	if len(got) != 5 {
		t.Fatalf("got %d fields", len(got))
	}
	if last := got[4]; last.Cut != maxField/2 || last.Lines[0].Kind != "add" {
		t.Errorf("of the long field %d characters are not shown, want %d", last.Cut, maxField/2)
	}
	want := []field{
		{Name: "file_path", Lines: []line{{"", "a"}}}, {Name: "old_string", Lines: []line{{"del", "x"}, {"del", "y"}}},
		{Name: "n", Lines: []line{{"", "5"}}}, {Name: "list", Lines: []line{{"", `["a"]`}}},
	}
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Error(diff)
	}
	if got := fields([]byte(`"text"`)); len(got) != 1 || got[0].Name != "input" {
		t.Errorf("what is no object is shown as %+v", got)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s    string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"", 5, ""}} {
		if got := clip(tt.s, tt.most); got != tt.want {
			t.Errorf("clip(%q, %d) = %q, want %q", tt.s, tt.most, got, tt.want)
		}
	}
}
