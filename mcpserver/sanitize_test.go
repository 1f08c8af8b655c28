package mcpserver

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
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
		if got := Sanitize(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("\x1b[31m\u202e\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Sanitize(s)
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(got) {
			t.Errorf("Sanitize(%q) = %q", s, got)
		}
		if again := Sanitize(got); again != got {
			t.Errorf("Sanitize(%q) changes to %q when it is shown again", got, again)
		}
	})
}
