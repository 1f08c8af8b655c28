package guard

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ word, want string }{
		{"a/b-c.d", "a/b-c.d"}, {"", "''"}, {"--dry-run prod", "'--dry-run prod'"}, {"it's", `'it'\''s'`}, {"$x;`y`", "'$x;`y`'"}, {"é", "'é'"},
		{"a\nb", `$'a\nb'`}, {"\x1b[2K", `$'\x1b[2K'`}, {"\u202ex", `$'\U0000202ex'`}, {"\xff'", `$'\xff\''`}, {"\u3164", `$'\U00003164'`}, {"\u2800", `$'\U00002800'`},
		{"a\u00a0b", `$'a\U000000a0b'`}, {"\\\t", `$'\\\t'`}, {"\U000e0141", `$'\U000e0141'`}, {"✔️", "'✔️'"},
	} {
		if got := Quote(tt.word); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.word, got, tt.want)
		}
		bash := exec.Command("bash", "-c", "printf %s "+Quote(tt.word))
		bash.Env = []string{"LC_ALL=C.UTF-8"}
		if out, err := bash.Output(); err == nil && string(out) != tt.word {
			t.Errorf("%q comes back as %q", tt.word, out)
		}
	}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("a", 500) + "--force" + strings.Repeat("b", 500)
	for _, most := range []int{0, 1, 40, 79, 80, 200, 1006, 1007} {
		got := Shorten(long, most)
		if n := utf8.RuneCountInString(got); n > max(most, 1) {
			t.Errorf("%d: %d characters", most, n)
		}
		if most >= 80 && most < len(long) && (!strings.HasPrefix(got, "aa") || !strings.HasSuffix(got, "bb") ||
			!strings.Contains(got, "characters left out")) {
			t.Errorf("%d: %s", most, got)
		}
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{" a\nb\tc ": "a⏎b c", "\x1b[1m": "␛[1m", "x\u200by": "x⟨U+200B⟩y",
		"\u3164": "⟨U+3164⟩", "\xff": "\ufffd", "é ✔️": "é ✔️"} {
		if got := OneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
