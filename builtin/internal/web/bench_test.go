package web

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// page200 is a page of 200 KB as documentation has it.
func page200() []byte {
	var b strings.Builder
	b.WriteString("<!doctype html><title>Reference</title><nav>" +
		strings.Repeat("<a href=/x>entry of the menu</a> ", 300) + "</nav><main><h1>Reference</h1>")
	for i := 0; b.Len() < 190_000; i++ {
		b.WriteString("<h2 id=s" + strings.Repeat("a", i%5) +
			">Section</h2><p>Some text with <code>code</code>, <a href='/link'>a link</a> and <b>bold</b> words, as there are in most pages.</p>" +
			"<ul><li>one</li><li>two</li></ul><pre class=language-go><code>x := f(1)\n</code></pre><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>")
	}
	return []byte(b.String() + "</main><footer>imprint</footer>")
}

// BenchmarkPage converts a page of 200 KB; BenchmarkKept shows one that was converted.
func BenchmarkPage(b *testing.B) {
	page := page200()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := answer(b, "text/html", page).Document(false, ""); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

func BenchmarkKept(b *testing.B) {
	c, p := NewClient("test"), policyOf(b, "allow WebFetch", "robots")
	r := answer(b, "text/html", page200())
	u, _ := Parse("https://example.com/")
	request := Request{URL: u, Caller: "a", Web: p.Web(), May: may(p)}
	hop, _, err := request.Hop(u)
	if err != nil {
		b.Fatal(err)
	}
	r.Hops = append(r.Hops, hop)
	c.cache.put("a", hop.URL, r)
	for b.Loop() {
		got, err := c.Fetch(b.Context(), request)
		if err != nil || !got.Cached {
			b.Fatal(err)
		}
		d, err := got.Document(false, "")
		if err != nil {
			b.Fatal(err)
		}
		d.Show("what is a section", 0, 29_000)
	}
}

// TestCorpus measures the choice of content on the pages of readability's own suite, whose directory is in TOOLHOST_READABILITY: words
// against those of its expected article.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("TOOLHOST_READABILITY")
	if dir == "" {
		t.Skip("TOOLHOST_READABILITY does not name the directory test-pages of go-readability")
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*", "source.html"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%v, %d pages", err, len(pages))
	}
	precision, recall := 0.0, 0.0
	for _, name := range pages {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := os.ReadFile(filepath.Join(filepath.Dir(name), "expected.html"))
		if err != nil {
			t.Fatal(err)
		}
		article, err := answer(t, "text/html", append([]byte("<!doctype html><meta charset=utf-8>"), expected...)).Document(true, "")
		if err != nil {
			t.Fatal(err)
		}
		d, err := answer(t, "text/html", source).Document(false, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, got := bag(article.Text), bag(d.Text)
		both, wanted, shown := 0, 0, 0
		for w, n := range want {
			wanted += n
			both += min(n, got[w])
		}
		for _, n := range got {
			shown += n
		}
		p, r := float64(both)/float64(max(shown, 1)), float64(both)/float64(max(wanted, 1))
		precision, recall = precision+p, recall+r
		if r < .9 {
			t.Logf("%s: precision %.2f, recall %.2f", filepath.Base(filepath.Dir(name)), p, r)
		}
	}
	t.Logf("%d pages: precision %.3f, recall %.3f", len(pages), precision/float64(len(pages)),
		recall/float64(len(pages)))
}

// bag counts the words of a text, without links' addresses.
func bag(text string) map[string]int {
	words := map[string]int{}
	for {
		at := strings.Index(text, "](")
		if at < 0 {
			break
		}
		end := strings.IndexByte(text[at:], ')')
		if end < 0 {
			break
		}
		text = text[:at] + " " + text[at+end+1:]
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \n\t\u00a0.,;:!?()[]{}*_`\"'#|<>", r) }) {
		words[w]++
	}
	return words
}
