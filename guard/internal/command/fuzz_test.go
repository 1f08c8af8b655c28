package command

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// FuzzAnalyze asks that no text makes the analysis fail, that its parts agree,
// and that a decided analysis loses no program that is named literally.
func FuzzAnalyze(f *testing.F) {
	for _, name := range []string{"tricky.txt", "commands.txt", "benign.txt"} {
		for _, text := range corpus(f, name) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := Analyze(text)
		if slices.Contains(a.Undecidable, failed) {
			t.Fatal(failed)
		}
		if a.Hiding && len(a.Undecidable) == 0 {
			t.Error("hiding without a reason")
		}
		for i, c := range a.Commands {
			check(t, a, i, c)
		}
		if len(a.Undecidable) == 0 {
			namesAreListed(t, a, text)
		}
	})
}

// check asks that one command is whole, and calls what a guard would call.
func check(t *testing.T, a *Analysis, i int, c Simple) {
	if len(c.Args) == 0 || c.Outer >= i || c.Text != join(c.Args) {
		t.Errorf("command %d is not whole: %+v", i, c)
	}
	if c.Name == "" && !a.Hiding {
		t.Errorf("command %d has no name, but nothing hides", i)
	}
	for _, reason := range c.Undecidable {
		if !slices.Contains(a.Undecidable, reason) {
			t.Errorf("reason %q is missing from the analysis", reason)
		}
	}
	if c.ReadOnly() && len(c.Undecidable) > 0 {
		t.Errorf("undecidable command %d is read-only", i)
	}
	c.Forms()
	c.Files()
}

// namesAreListed walks the text anew and asks for every literal name.
func namesAreListed(t *testing.T, a *Analysis, text string) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("decided, but not parsed: %v", err)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		name := call.Args[0].Lit()
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
			return true
		}
		if !slices.ContainsFunc(a.Commands, func(c Simple) bool { return c.Name == name }) {
			t.Errorf("%q is not listed for %q", name, text)
		}
		return true
	})
}

// BenchmarkAnalyze reports the median and the 99th percentile over the commands
// of testdata. The aim is 25 and 200 µs.
func BenchmarkAnalyze(b *testing.B) {
	texts := append(corpus(b, "benign.txt"), corpus(b, "commands.txt")...)
	times := make([]float64, len(texts))
	b.ReportAllocs()
	for b.Loop() {
		for i, text := range texts {
			start := time.Now()
			Analyze(text)
			times[i] = time.Since(start).Seconds() * 1e6
		}
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50-µs")
	b.ReportMetric(times[len(times)*99/100], "p99-µs")
}
