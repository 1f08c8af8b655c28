package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// collect returns a collector with a spill.
func collect(limits Limits, open Spill) *Collector {
	c := NewCollector(limits)
	c.SpillTo(open)
	return c
}

func TestClean(t *testing.T) {
	long := strings.Repeat("x", lineMax+100)
	for _, test := range []struct{ name, in, want string }{
		{"plain", "a\tb\nc\n", "a\tb\nc\n"},
		{"colour", "\x1b[1;31mred\x1b[0m\n", "red\n"},
		{"title", "\x1b]0;title\x07text\n", "text\n"},
		{"hyperlink", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"},
		{"title without an end does not swallow the rest", "\x1b]0;title\nnext\n", "\nnext\n"},
		{"cursor", "a\x1b[2Ab\x1b[3;4Hc\x1b[?25l\n", "abc\n"},
		{"CR LF", "a\r\nb\r\n", "a\nb\n"},
		{"redraw", "10%\r20%\r100%\n", "100%\n"},
		{"redraw at the end", "10%\r20%\r", "20%"},
		{"erased", "10%\r\x1b[Kdone\n", "done\n"},
		{"erased and left", "10%\r\x1b[K\n", "\n"},
		{"colour reset after CR", "text\r\x1b[0m\n", "text\n"},
		{"shorter than before", "Downloading\rDone\n", "Done\n"},
		{"backspace", "abc\b\bx\n", "ax\n"},
		{"spinner", "|\b/\b-\bok\n", "ok\n"},
		{"overstrike", "N\bNA\bA_\bM\n", "NAM\n"},
		{"backspace over a wide character", "a€\bb\n", "ab\n"},
		{"backspace at the start", "\b\ba\n", "a\n"},
		{"NUL", "a\x00b\x00\n", "ab\n"},
		{"other controls", "a\x07\x0b\x0cb\x7f\n", "ab\n"},
		{"C1 controls", "a\u0085\u009b31mb\n", "a31mb\n"},
		{"invalid", "a\xff\xfeb\xe2\x82\n", "a\uFFFDb\uFFFD\n"},
		{"stray 8-bit CSI", "a\x9b31mb\n", "a\uFFFD31mb\n"},
		{"joined by a removed sequence", "\xc3\x1b[m\xa9\n", "\uFFFD\uFFFD\n"},
		{"title with a check mark", "\x1b]0;✓ œ done\x07text\n", "text\n"},
		{"letter inside a sequence", "\x1b[3é1m\n", "é1m\n"},
		{"half an escape", "a\x1b", "a"},
		{"long line", long + "\n", long + "\n"},
		{"long redraw", strings.Repeat(strings.Repeat("y", 1000)+"\r", 200) + "end\n", "end\n"},
		{"character across pieces", strings.Repeat("x", lineMax-1) + "€y\n", strings.Repeat("x", lineMax-1) + "€y\n"},
		{"sequence across pieces", strings.Repeat("x", lineMax-2) + "\x1b[31my\n", strings.Repeat("x", lineMax-2) + "y\n"},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := CleanText(test.in); got != test.want {
				t.Errorf("Clean(%.60q) = %.60q, want %.60q", test.in, got, test.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	const short = 2 * sequenceMax // so that inputs need not be long to be cut
	clean := func(in string, step uint) string {
		var out strings.Builder
		c := newCleaner(func(p []byte) { out.Write(p) })
		c.max = short
		for len(in) > 0 {
			n := min(int(step%7)+1, len(in))
			if step == 0 {
				n = len(in)
			}
			c.Write([]byte(in[:n]))
			in, step = in[n:], step*31
		}
		c.Flush()
		return out.String()
	}
	for _, s := range []string{
		"a\r\nb\x1b[31m", "10%\r\x1b[K\b\n", "\x1b]0;x\x07\x1b\\", "é\xc3\x1b[m\xa9\x9b", "\u009b1m\u0085", "\x1b]0;✓\x07",
		strings.Repeat("\xe2\x82\xac\x1b[m", short/5), strings.Repeat("x", short) + "\r\b\r\n",
		strings.Repeat("x", short-1) + "\xe2\x82",
	} {
		f.Add(s, uint(3))
	}
	f.Fuzz(func(t *testing.T, in string, step uint) {
		once := clean(in, 0)
		if !utf8.ValidString(once) {
			t.Fatalf("not valid UTF-8: %q", once)
		}
		if strings.ContainsAny(once, "\x00\x07\x08\x0b\x0c\r\x1b\x7f\u0085\u009b") {
			t.Fatalf("controls are left: %q", once)
		}
		if twice := clean(once, 0); twice != once {
			t.Fatalf("not idempotent: %q, then %q", once, twice)
		}
		if parts := clean(in, step|1); parts != once {
			t.Fatalf("in chunks %q, at once %q", parts, once)
		}
	})
}

// memory is a spill in memory that fails after max bytes.
type memory struct {
	bytes.Buffer
	max    int
	closed bool
}

func (m *memory) Write(p []byte) (int, error) {
	if m.max > 0 && m.Len()+len(p) > m.max {
		return 0, errors.New("no space left on device")
	}
	return m.Buffer.Write(p)
}

func (m *memory) Close() error { m.closed = true; return nil }

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %05d\n", i) // 11 bytes
	}
	return b.String()
}

func TestCollector(t *testing.T) {
	limits := Limits{Head: 33, Tail: 44, SpillMax: 1000}
	all := numbered(1, 50)
	for _, test := range []struct {
		name  string
		in    string
		want  Shown
		spill string
	}{
		{"fits", numbered(1, 7), Shown{Text: numbered(1, 7)}, ""},
		{"one too many", numbered(1, 8), Shown{
			Text: numbered(1, 3) + "… 2 lines / 22 bytes omitted …\n" + numbered(6, 8),
			Cut:  true, Spilled: "path"}, numbered(1, 8)},
		{"many", all, Shown{
			Text: numbered(1, 3) + "… 44 lines / 484 bytes omitted …\n" + numbered(48, 50),
			Cut:  true, Spilled: "path"}, all},
		{"more than the spill takes", numbered(1, 200), Shown{
			Text: numbered(1, 3) + "… 194 lines / 2,134 bytes omitted …\n" + numbered(198, 200),
			Cut:  true, Spilled: "path", SpillCut: true},
			numbered(1, 200)[:1000] + "\n… the output went on; only its first 1,000 bytes are kept …\n"},
		{"one long line", strings.Repeat("é", 100), Shown{
			Text: strings.Repeat("é", 16) + "\n… 124 bytes omitted …\n" + strings.Repeat("é", 22),
			Cut:  true, Spilled: "path"}, strings.Repeat("é", 100)},
		{"redraws are not output", strings.Repeat("50%\r", 1000) + "done\n", Shown{Text: "done\n"}, ""},
	} {
		for _, step := range []int{1, 7, 100000} {
			t.Run(fmt.Sprint(test.name, step), func(t *testing.T) {
				m := &memory{}
				c := collect(limits, func() (io.WriteCloser, string, error) { return m, "path", nil })
				for rest := []byte(test.in); len(rest) > 0; {
					n := min(step, len(rest))
					c.Write(rest[:n])
					rest = rest[n:]
				}
				got := c.Result()
				test.want.Bytes, test.want.Lines = int64(len(test.in)), strings.Count(test.in, "\n")
				if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Shown{}, "ends")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if m.String() != test.spill || m.closed != (test.spill != "") {
					t.Errorf("spill %q (closed %v), want %q", m.String(), m.closed, test.spill)
				}
			})
		}
	}
}

// TestSpillFails: head and tail come all the same, and the result says why the
// whole is missing.
func TestSpillFails(t *testing.T) {
	limits := Limits{Head: 33, Tail: 44, SpillMax: 1000}
	want := numbered(1, 3) + "… 44 lines / 484 bytes omitted …\n" + numbered(48, 50)
	full := &memory{max: 100}
	for name, test := range map[string]struct {
		open Spill
		path string
		err  string
	}{
		"none":           {nil, "", ""},
		"cannot open":    {func() (io.WriteCloser, string, error) { return nil, "", os.ErrPermission }, "", "could not be kept: permission denied"},
		"full meanwhile": {func() (io.WriteCloser, string, error) { return full, "path", nil }, "path", "could not be kept, only its first 0 bytes: no space left"},
		"full disk": {func() (io.WriteCloser, string, error) {
			f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			return f, "path", err
		}, "path", "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			c := collect(limits, test.open)
			c.Write([]byte(numbered(1, 50)))
			got := c.Result()
			if got.Text != want || !got.Cut || got.Spilled != test.path {
				t.Errorf("got %+v", got)
			}
			if got.SpillCut != (test.path != "") {
				t.Errorf("SpillCut is %v", got.SpillCut)
			}
			if test.err == "" && got.SpillErr != nil || test.err != "" &&
				(got.SpillErr == nil || !strings.Contains(got.SpillErr.Error(), test.err)) {
				t.Errorf("got error %v, want %q", got.SpillErr, test.err)
			}
		})
	}
	if !full.closed {
		t.Error("the spill that failed was not closed")
	}
}

// TestShorten: what is left says how much is missing of the whole and knows the line with which that begins, and an output that is whole stays so.
func TestShorten(t *testing.T) {
	for _, test := range []struct {
		name, in string
		n        int
		want     string
		next     int
	}{
		{"whole", numbered(1, 7), 40, numbered(1, 7), 1},
		{"short enough", numbered(1, 50), 200, numbered(1, 3) + "… 44 lines / 484 bytes omitted …\n" + numbered(48, 50), 4},
		{"any length", numbered(1, 50), 0, numbered(1, 3) + "… 44 lines / 484 bytes omitted …\n" + numbered(48, 50), 4},
		{"shorter", numbered(1, 50), 60, numbered(1, 2) + "… 46 lines / 506 bytes omitted …\n" + numbered(49, 50), 3},
		{"one long line", strings.Repeat("é", 100), 30, strings.Repeat("é", 6) + "\n… 170 bytes omitted …\n" + strings.Repeat("é", 9), 1},
	} {
		c := collect(Limits{Head: 33, Tail: 44, SpillMax: 1000},
			func() (io.WriteCloser, string, error) { return &memory{}, "path", nil })
		c.Write([]byte(test.in))
		got := c.Result()
		if got.Shorten(test.n); got.Text != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got.Text, test.want)
		}
		if next := got.Next(); next != test.next {
			t.Errorf("%s: the first line left out is %d, want %d", test.name, next, test.next)
		}
	}
}

// TestLongLines: a long line that only follows or precedes a short one is shown as far as there is room.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 30_000) + "\n"
	for _, test := range []struct {
		name, in, head, tail string
		lines                string
		inside               int
	}{
		{"behind a header", "head\n" + long, "head\n" + long[:4995], long[len(long)-5000:], "1 line / 20,006 bytes", 5000},
		{"before an end", long + "end\n", long[:5000], long[len(long)-4996:] + "end\n", "20,005 bytes", 5000},
		{"between", "head\n" + long + "end\n", "head\n" + long[:4995], long[len(long)-4996:] + "end\n", "20,010 bytes", 5000},
		{"only a little of it", strings.Repeat("y\n", 2000) + long, strings.Repeat("y\n", 2000), long[len(long)-5000:], "25,001 bytes", 0},
	} {
		c := collect(Limits{Head: 5000, Tail: 5000, SpillMax: 100_000},
			func() (io.WriteCloser, string, error) { return &memory{}, "path", nil })
		c.Write([]byte(test.in))
		got := c.Result()
		_, rest, _ := strings.Cut(got.Text, "… ")
		if !strings.HasPrefix(got.Text, test.head) || !strings.HasSuffix(rest, " omitted …\n"+test.tail) {
			t.Errorf("%s: got %d bytes, %q", test.name, len(got.Text), rest[:40])
		}
		if n := got.Inside(2000); n != test.inside {
			t.Errorf("%s: within a line after %d, want %d", test.name, n, test.inside)
		}
		if n := got.Inside(5000); n != 0 {
			t.Errorf("%s: within a line of more than it has, after %d", test.name, n)
		}
	}
}

// TestFlood passes the point from which output is not cleaned as it comes.
func TestFlood(t *testing.T) {
	m := &memory{}
	c := collect(Limits{Head: 1000, Tail: 1000, SpillMax: 5000},
		func() (io.WriteCloser, string, error) { return m, "path", nil })
	c.cleanMax = 1 << 20
	block := bytes.Repeat([]byte("\x1b[31mred\x1b[0m\n"), 1<<16) // 13 bytes a line
	total := 0
	for total <= 1<<20+len(block) {
		c.Write(block)
		total += len(block)
	}
	c.Write([]byte("last\n"))
	got := c.Result()
	if got.Bytes != int64(total)+5 || got.Lines != total/13+1 || !got.Cut || !got.SpillCut {
		t.Errorf("got %d bytes, %d lines, cut %v %v", got.Bytes, got.Lines, got.Cut, got.SpillCut)
	}
	if !strings.HasPrefix(got.Text, "red\nred\n") || !strings.HasSuffix(got.Text, "red\nlast\n") ||
		strings.Contains(got.Text, "\x1b") || len(got.Text) > 2100 {
		t.Errorf("got %q", got.Text)
	}
	if got.Shorten(400); len(got.Text) > 450 || !strings.HasPrefix(got.Text, "red\n") ||
		!strings.HasSuffix(got.Text, "red\nlast\n") {
		t.Errorf("shortened to %q", got.Text)
	}
	if m.Len() > 5100 {
		t.Errorf("the spill holds %d bytes", m.Len())
	}
	if cap(c.drain.buf)+cap(c.win.head)+cap(c.win.tail.buf)+cap(c.clean.line) > 2*lineMax+8000 {
		t.Error("memory grew with the output")
	}
}

func TestLastLines(t *testing.T) {
	c := NewCollector(Limits{Head: 20, Tail: 200})
	for _, step := range []struct{ in, want string }{
		{"", ""},
		{"one\ntwo", "one\ntwo"},
		{" more\n", "one\ntwo more"},
		{"10%\r20%", "one\ntwo more\n20%"},
		{"\r100%\n3\n4\n5\n6\n", "100%\n3\n4\n5\n6"},
		{strings.Repeat("x", 5000), strings.Repeat("x", progressBytes)},
	} {
		c.Write([]byte(step.in))
		if got := c.LastLines(); got != step.want {
			t.Errorf("after %.20q: got %.80q, want %.80q", step.in, got, step.want)
		}
	}
}

// TestFollowFromTheStart: what came before a command became a task can be read by offset, as long as all of it is there.
func TestFollowFromTheStart(t *testing.T) {
	for said, want := range map[string]string{"": "two\n", "one\n": "one\ntwo\n", strings.Repeat("x", 99) +
		"\n": "two\n"} {
		c := NewCollector(Limits{Head: 10, Tail: 20, SpillMax: 100})
		c.Write([]byte(said))
		soFar, offset := c.Follow(1000)
		c.Write([]byte("two\n"))
		text, from, _, _ := c.After(0)
		if text != want || from != offset+4-int64(len(want)) || len(said) < 10 && soFar != said {
			t.Errorf("after %.10q: %q from %d, want %q; so far %q to %d", said, text, from, want, soFar, offset)
		}
	}
}

// BenchmarkClean measures the cleaner alone.
func BenchmarkClean(b *testing.B) {
	for name, line := range map[string]string{
		"plain":  "a line of ordinary output, about sixty-four bytes in length ok\n",
		"colour": "\x1b[32mok\x1b[0m  \x1b[1mpackage/name\x1b[22m  0.123s  — cached results\n",
	} {
		b.Run(name, func(b *testing.B) {
			var text []byte
			for len(text) < 1<<20 {
				text = append(text, line...)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c := newCleaner(func([]byte) {})
				c.Write(text)
				c.Flush()
			}
		})
	}
}
