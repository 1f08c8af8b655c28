package resultstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// noticePattern finds the notice of a cut result; the line end before it belongs to it only where a line is cut.
var noticePattern = regexp.MustCompile(`\n?\[… \d+ of \d+ lines [^\n]*\]\n`)

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestFitLeavesShortResults(t *testing.T) {
	dir := t.TempDir()
	sh := open(t, Config{Dir: dir}).For("p")
	for _, tt := range []struct {
		name, text string
		limit      int
	}{
		{"empty", "", 10},
		{"at the limit", "0123456789", 10},
		{"at the limit in characters", strings.Repeat("é", 10), 10},
		{"at the limit in broken bytes", strings.Repeat("\xff", 10), 10},
		{"no limit", numbered(1, 10_000), 0},
	} {
		got, err := sh.Fit(tt.text, tt.limit)
		if want := (fitted{Text: tt.text}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want it unchanged", tt.name, got, err)
		}
	}
	for _, path := range everything(t, dir) {
		if strings.HasSuffix(path, ".txt") {
			t.Errorf("%s was kept for nothing", path)
		}
	}
}

// TestFitShows holds the whole text of cut results.
func TestFitShows(t *testing.T) {
	long := strings.Repeat("0123456789", 20)
	tests := []struct {
		name, text string
		limit      int
		want       string
	}{
		{
			"lines", numbered(1, 200), 700,
			numbered(1, 30) +
				"[… 144 of 200 lines (1227 of 1692 bytes) are left out here. The whole is kept in PATH. Next part: Read {\"file_path\":\"PATH\",\"offset\":31}. To search it: Grep {\"pattern\":\"…\",\"path\":\"PATH\"}.]\n" +
				numbered(175, 200),
		},
		{
			"one line", long, 50,
			long[:13] + "\n[… 1 of 1 lines (175 of 200 bytes) are left out here, from inside line 1, after byte 13. The whole is kept in PATH. Next part: Read {\"file_path\":\"PATH\",\"offset\":1}. To search it: Grep {\"pattern\":\"…\",\"path\":\"PATH\"}.]\n" + long[len(long)-12:],
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := cut(tt.text, kept{Path: "PATH", Stored: int64(len(tt.text))}, tt.limit)
			if diff := cmp.Diff(tt.want, got.Text); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkFitted holds what Fit promises of a cut text.
func checkFitted(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, limit int, got fitted) {
	t.Helper()
	if !got.Cut {
		if got.Text != text || utf8.RuneCountInString(text) > limit {
			t.Fatalf("uncut, but not the short text it was")
		}
		return
	}
	places := noticePattern.FindAllStringIndex(got.Text, -1)
	if len(places) == 0 {
		t.Fatalf("no notice in %q", got.Text)
	}
	ok := false
	var head, tail, notice string
	for _, at := range places { // the text itself may hold something like a notice
		for _, from := range []int{at[0], at[0] + 1} {
			if h, n := got.Text[:from], got.Text[at[1]:]; !ok && strings.HasPrefix(text, h) &&
				strings.HasSuffix(text, n) && len(h)+len(n) < len(text) {
				ok, head, tail, notice = true, h, n, got.Text[from:at[1]]
			}
		}
	}
	if !ok {
		t.Fatalf("what is shown of %q is not its head and tail:\n%s", text, got.Text)
	}
	if runes, most := utf8.RuneCountInString(got.Text), max(limit,
		limit/2+utf8.RuneCountInString(notice)+40); runes > most {
		t.Fatalf("%d characters at a limit of %d, notice %d", runes, limit, utf8.RuneCountInString(notice))
	}
	if h, n := utf8.RuneCountInString(head), utf8.RuneCountInString(tail); h+n >= 12 && 3*n < h+n-3 {
		t.Fatalf("tail of %d characters after a head of %d", n, h)
	}
	if utf8.ValidString(text) && !utf8.ValidString(got.Text) {
		t.Fatalf("cut inside a character: %q", got.Text)
	}
	kept, err := os.ReadFile(got.Path)
	if err != nil || string(kept) != text {
		t.Fatalf("kept %d bytes, %v, want the %d of the text", len(kept), err, len(text))
	}
}

func genText() *rapid.Generator[string] {
	line := rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom([]rune("aé世🙂\t\r "))),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("é", n) }),
	)
	return rapid.Map(rapid.SliceOfN(line, 0, 60), func(lines []string) string { return strings.Join(lines, "\n") })
}

func TestFitProperties(t *testing.T) {
	sh := open(t, Config{Dir: t.TempDir()}).For("p")
	rapid.Check(t, func(rt *rapid.T) {
		text, limit := genText().Draw(rt, "text"), rapid.IntRange(1, 2000).Draw(rt, "limit")
		got, err := sh.Fit(text, limit)
		if err != nil {
			rt.Fatal(err)
		}
		checkFitted(rt, text, limit, got)
		if got.Path != "" {
			if err := os.Remove(got.Path); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func FuzzFit(f *testing.F) {
	f.Add(numbered(1, 300), 500)
	f.Add(strings.Repeat("🙂", 500), 100)
	f.Add("a\n"+strings.Repeat("b", 3000)+"\nc", 60)
	f.Add("[… 1 of 2 lines x]\n"+strings.Repeat("\xe4\xb8", 900), 20)
	sh := open(f, Config{Dir: f.TempDir()}).For("p")
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 {
			return
		}
		got, err := sh.Fit(text, limit)
		if err != nil {
			t.Fatal(err)
		}
		checkFitted(t, text, limit, got)
		if got.Path != "" {
			if err := os.Remove(got.Path); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestOneLineOf5MB(t *testing.T) {
	text := strings.Repeat("世", 5<<20/3)
	got, err := open(t, Config{Dir: t.TempDir()}).For("p").Fit(text, 30_000)
	if err != nil {
		t.Fatal(err)
	}
	checkFitted(t, text, 30_000, got)
	if n := utf8.RuneCountInString(got.Text); n < 29_500 {
		t.Errorf("only %d characters shown", n)
	}
}

// Of a line that Read would not show the rest of, a command shows it.
func TestNoticeOfALongLine(t *testing.T) {
	for shown, want := range map[int]string{
		2000: `Next part: Read {"file_path":"/it's","offset":2}. To`,
		2001: `Next part: Bash {"command":"tail -c +2007 '/it'\\''s' | head -c 20000"}. To`,
	} {
		whole := elision{ofBytes: 9000, ofLines: 3}
		head, tail := "head\n"+strings.Repeat("x", shown), "x\nend\n"
		if got := notice(kept{Path: "/it's", Stored: 9000}, whole.between(head, tail)); !strings.Contains(got, want) {
			t.Errorf("%d shown: %s", shown, got)
		}
	}
}

func TestNoticeQuotesPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `a "b" & <c>`)
	got, err := open(t, Config{Dir: dir}).For("p").Fit(numbered(1, 100), 50)
	if err != nil {
		t.Fatal(err)
	}
	if want := `a \"b\" & <c>`; !strings.Contains(got.Text, want) {
		t.Errorf("%q does not hold %q", got.Text, want)
	}
}

func TestTooLargeToKeep(t *testing.T) {
	text := numbered(1, 1000)
	got, err := open(t, Config{Dir: t.TempDir(), MaxOne: 1000}).For("p").Fit(text, 100)
	if err == nil {
		t.Error("no error")
	}
	kept, readErr := os.ReadFile(got.Path)
	if readErr != nil || string(kept) != text[:1000] {
		t.Errorf("kept %d bytes, %v, want the first 1000", len(kept), readErr)
	}
	if want := "Only the first 1000 bytes are kept (the result is larger than one kept result may be) in "; !strings.Contains(got.Text, want) {
		t.Errorf("%q does not say %q", got.Text, want)
	}
}

func BenchmarkFit(b *testing.B) {
	for name, text := range map[string]string{"10 MB": strings.Repeat(numbered(1, 1000), 10<<20/8893),
		"10 MB in one line": strings.Repeat("x", 10<<20)} {
		b.Run(name, func(b *testing.B) {
			sh := open(b, Config{Dir: b.TempDir()}).For("p")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				got, err := sh.Fit(text, 30_000)
				if err != nil {
					b.Fatal(err)
				}
				if err := os.Remove(got.Path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestRunes compares the ways to count characters, which look at several bytes at once, with the plain one.
func TestRunes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "plain text", "ä", "漢字", "🙂", "\xff", "\xe6\xbc", "\n",
		"a longer run of ASCII in between\n"}
	for range 5_000 {
		var text string
		for range r.IntN(8) {
			text += pieces[r.IntN(len(pieces))]
		}
		var ends []int // of each character
		for i := range text {
			ends = append(ends, i)
		}
		ends = append(ends, len(text))
		n := r.IntN(len(ends))
		if got, want := runePrefix(text, n), text[:ends[n]]; got != want {
			t.Fatalf("the first %d of %q: %q, want %q", n, text, got, want)
		}
		if got, want := runeSuffix(text, n), text[ends[len(ends)-1-n]:]; got != want {
			t.Fatalf("the last %d of %q: %q, want %q", n, text, got, want)
		}
	}
}
