package pattern

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

// all returns the matching lines by the road that the matcher takes.
func all(m *Matcher, text string) (out []Span) {
	m.Reset([]byte(text), false)
	for s, ok := m.Next(); ok; s, ok = m.Next() {
		out = append(out, s)
	}
	return out
}

// byMachine finds the matching lines with the simulation, line by line.
func byMachine(p *Pattern, text string) (out []Span) {
	vm := newPikeVM(p, new(atomic.Bool))
	at := 0
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		if s, ok := vm.find([]byte(line), 0, len(line)); ok && s.Start <= len(body) {
			out = append(out, Span{at, at + len(body)})
		}
		at += len(line)
	}
	return out
}

var atoms = []string{"a", "b", "foo", "K", "s", "é", "ſ", ".", `\w`, `\d`, `\s`, `[^a]`, `[a-f]`, `\b`, `^`, `$`, `\B`, "(?i)k", "(?i:S)",
	"(foo|bar)", "(a|b|)", `\<`, `\>`, `\pL`, "世", "o", "bar", `\W`}

// TestRoadsAgree compares literals, automaton and simulation on random
// patterns and texts.
func TestRoadsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "b", "foo", "bar", "K", "k", "\u212a", "ſ", "S", "é", "世", " ", "\n", "\n", "\r\n", "\xff",
		"1", "_", "-", "\r", "FOO"}
	for range 1000 {
		var src strings.Builder
		for range 1 + r.IntN(5) {
			src.WriteString(atoms[r.IntN(len(atoms))])
			src.WriteString([]string{"", "", "", "*", "+", "?", "{2}", "*?"}[r.IntN(8)])
			if r.IntN(6) == 0 {
				src.WriteString("|")
			}
		}
		p, err := Compile(src.String(), Options{})
		if err != nil {
			continue
		}
		var text strings.Builder
		for range r.IntN(4000) {
			text.WriteString(words[r.IntN(len(words))])
		}
		want := byMachine(p, text.String())
		stop := new(atomic.Bool)
		if got := all(New(p, stop), text.String()); !slices.Equal(got, want) {
			t.Fatalf("%q with literals %+v:\n%v\nsimulation\n%v\n%.300q", src.String(), p.Literals, got, want,
				text.String())
		}
		m := New(p, stop)
		m.prefilter = nil
		if got := all(m, text.String()); !slices.Equal(got, want) {
			t.Fatalf("%q by scanning:\n%v\nsimulation\n%v\n%.300q", src.String(), got, want, text.String())
		}
	}
}

// TestSpansAgree compares what finds matches that span lines with the
// simulation alone.
func TestSpansAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	words := []string{"a", "b", "foo", "bar", "K", "\u212a", "é", " ", "\n", "\n", "\r\n", "\xff", "1"}
	for range 500 {
		src := []string{"foo", `\bfoo`, "a", "", "bar|foo", "(?i)k", `oo\nb`}[r.IntN(7)]
		for range r.IntN(5) {
			src += append(atoms, `\n`, "(?s:.)")[r.IntN(len(atoms)+2)] + []string{"", "", "*", "+?", "?"}[r.IntN(5)]
		}
		p, err := Compile(src, Options{Multiline: true})
		if err != nil || p.Lines {
			continue
		}
		var text strings.Builder
		for range r.IntN(600) {
			text.WriteString(words[r.IntN(len(words))])
		}
		m := New(p, new(atomic.Bool))
		m.Reset([]byte(text.String()), false)
		vm := newPikeVM(p, new(atomic.Bool))
		for from := 0; from <= text.Len(); {
			want, ok := vm.find([]byte(text.String()), from, text.Len())
			if got, found := m.NextMatch(from); found != ok || got != want {
				t.Fatalf("%q from %d: %v, %v; simulation %v, %v\n%.300q", src, from, got, found, want, ok,
					text.String())
			}
			if !ok {
				break
			}
			if from = want.End; want.End == want.Start {
				_, size := utf8.DecodeRuneInString(text.String()[from:])
				from += max(size, 1)
			}
		}
	}
}

// TestFullAutomaton makes the automaton start anew, again and again.
func TestFullAutomaton(t *testing.T) {
	p, err := Compile(`[ab]*a[ab]{14}c`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, 300_000)
	for i := range b {
		b[i] = "ab"[r.IntN(2)]
		if i%5000 == 4999 {
			b[i] = '\n'
		}
	}
	copy(b[200_000:], "abbbbbbbbbbbbbbc")
	m := New(p, new(atomic.Bool))
	m.prefilter = nil
	if got := all(m, string(b)); len(got) != 1 || got[0].Start > 200_000 || got[0].End < 200_000 {
		t.Errorf("got %v", got)
	}
	if n := len(m.dfa.states); n > maxStates+100 {
		t.Errorf("%d states", n)
	}
}

func TestStop(t *testing.T) {
	p, err := Compile(`[ab]*a[ab]{14}c`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := new(atomic.Bool)
	stop.Store(true)
	m := New(p, stop)
	r := rand.New(rand.NewPCG(5, 6))
	b := make([]byte, 100_000)
	for i := range b {
		b[i] = "ab"[r.IntN(2)]
	}
	if got := all(m, string(b)); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"a", "a"}, {"\xef\xbb\xbfa", "a"}, {"\xff\xfea\x00\n\x00", "a\n"}, {"\xfe\xff\x00a", "a"}, {"", ""},
		{"\xff\xfe\x3d\xd8\x00\xde", "\U0001F600"}, {"\xff\xfe\x3d\xd8a\x00", "\uFFFDa"}, {"\xff\xfea\x00b", "a\uFFFD"},
	} {
		if got := string(Decode([]byte(tt.raw))); got != tt.want {
			t.Errorf("Decode(%q) = %q, want %q", tt.raw, got, tt.want)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add(`fo+|\bbar$`, "foo\nbar\r\n\xffx", true)
	f.Add(`(?i)k|s{2}`, "\u212a\nſſ", false)
	f.Fuzz(func(t *testing.T, src, text string, fold bool) {
		p, err := Compile(src, Options{IgnoreCase: fold})
		if err != nil || len(p.Prog.Inst) > 500 || len(text) > 2000 {
			return
		}
		want := byMachine(p, text)
		if got := all(New(p, new(atomic.Bool)), text); !slices.Equal(got, want) {
			t.Errorf("%q on %q: %v, simulation %v", src, text, got, want)
		}
	})
}
