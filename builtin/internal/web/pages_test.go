package web

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/net/html"
	"golang.org/x/text/encoding/htmlindex"
)

var update = flag.Bool("update", false, "write the golden files")

// answer is a response with a body.
func answer(t testing.TB, contentType string, body []byte) *Response {
	t.Helper()
	u, err := url.Parse("https://example.com/dir/page.html")
	if err != nil {
		t.Fatal(err)
	}
	return &Response{URL: u, Status: 200, Header: http.Header{"Content-Type": {contentType}}, Body: body, documents: &documents{}}
}

// show is a document as a golden file holds it.
func show(d *Document) string {
	return fmt.Sprintf("Title: %s\nDate: %s\nType: %s\nNotes: %s\n\n%s", d.Title, d.Date, d.Type, strings.Join(d.Notes, " "), d.Text)
}

// TestPages converts pages of our own. A name with @ says in which charset the page is sent; the header names none.
func TestPages(t *testing.T) {
	file := filepath.Join("testdata", "pages.txtar")
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]string{}
	for _, f := range archive.Files {
		golden[f.Name] = string(f.Data)
	}
	var out []txtar.File
	pages := 0
	for _, f := range archive.Files {
		name, isPage := strings.CutSuffix(f.Name, ".html")
		if !isPage {
			continue
		}
		pages++
		t.Run(name, func(t *testing.T) {
			body := slices.Clone(f.Data)
			if _, charset, ok := strings.Cut(name, "@"); ok {
				enc, err := htmlindex.Get(charset)
				if err != nil {
					t.Fatal(err)
				}
				if body, err = enc.NewEncoder().Bytes(body); err != nil {
					t.Fatal(err)
				}
			}
			contentType := "text/html"
			if name == "wrong-header" {
				contentType = "text/html; charset=iso-8859-1"
			}
			d, err := answer(t, contentType, body).Document(false, "")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimRight(show(d), "\n") + "\n"
			out = append(out, f, txtar.File{Name: name + ".md", Data: []byte(got)})
			if !*update && got != golden[name+".md"] {
				t.Errorf("got:\n%s\nwant:\n%s", got, golden[name+".md"])
			}
			checkMain(t, string(f.Data), d.Text)
		})
	}
	if pages < 40 {
		t.Errorf("there are %d pages, 40 are expected", pages)
	}
	if *update {
		archive.Files = out
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkMain looks for every word of the main element that is seen.
func checkMain(t *testing.T, page, text string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Join(strings.Fields(text), "")
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "main" {
			continue
		}
		for c := range n.Descendants() {
			if c.Type != html.TextNode || slices.ContainsFunc([]string{"select", "textarea", "form", "iframe", "object"}, func(name string) bool { return within(c, name) }) ||
				hasAttr(c.Parent, "style") || hasAttr(c.Parent, "hidden") || hasAttr(c.Parent, "aria-hidden") || c.Parent.Data == "a" && attr(c.Parent, "class") == "headerlink" {
				continue
			}
			for _, w := range strings.Fields(c.Data) {
				w, _ = visible(strings.ReplaceAll(w, "|", `\|`))
				if !strings.Contains(text, w) && !strings.Contains(text, strings.ReplaceAll(w, `\|`, "|")) {
					t.Errorf("the word %q of main is lost", w)
				}
			}
		}
	}
}

// TestHardPages converts pages that are made to be hard.
func TestHardPages(t *testing.T) {
	line := "<p>" + strings.Repeat("word ", lineWords) + "</p>"
	var styles strings.Builder
	for i := range 400 {
		fmt.Fprintf(&styles, "<b id=%d>", i)
	}
	for name, tt := range map[string]struct {
		page, want string
	}{
		"one line":        {"<!doctype html><title>x</title>" + line, "word word"},
		"nested":          {"<!doctype html>" + strings.Repeat("<div>", 10_000) + "deep" + strings.Repeat("</div>", 10_000), "deep"},
		"nested lists":    {"<!doctype html>" + strings.Repeat("<ul><li>", 240) + "deep", "deep"},
		"nested quotes":   {"<!doctype html>" + strings.Repeat("<blockquote>", 400) + "deep", "deep"},
		"nested spans":    {"<!doctype html><p>" + strings.Repeat("<b><i>", 200) + "deep", "deep"},
		"many attributes": {"<!doctype html><p " + strings.Repeat("a=b ", 200_000) + ">text", "text"},
		"unclosed":        {"<!doctype html>" + strings.Repeat("<p><b><a href=x>y", 5_000), "y"},
		"wide table":      {"<!doctype html><table><tr>" + strings.Repeat("<td>c", 3_000) + "</table>", "c"},
		"great span":      {"<!doctype html><table><tr><td colspan=100000000 rowspan=100000000>c<td>d<tr><td>e</table>", "c"},
		"only signs":      {"<!doctype html><p>" + strings.Repeat("[*_`(", 50_000), "[*_"},
		"many headings":   {"<!doctype html>" + strings.Repeat("<h2 id=a>t</h2>", lineWords/50), "{#a}"},
		"spanned text":    {"<!doctype html><table><tr><td colspan=20 rowspan=20>" + line + "</table>", "word word"},
		"spanned cells":   {"<!doctype html><table>" + strings.Repeat("<tr>"+strings.Repeat("<td colspan=20 rowspan=20>c", 10), 2_000), "c"},
		"filled table":    {"<!doctype html><table><tr>" + strings.Repeat("<td>c", 900) + strings.Repeat("<tr><td>x", 30_000), "x"},
		"nested tables":   {"<!doctype html>" + strings.Repeat("<table><tr><td colspan=20 rowspan=20>c<td>", 100) + line, "word word"},
		"nested cells":    {"<!doctype html><table><tr><td><math>" + strings.Repeat("<td>", 400) + line, "word word"},
		"quoted lines":    {"<!doctype html>" + strings.Repeat("<blockquote>", 400) + strings.Repeat("x<br>", 200_000), "x"},
		"quoted code":     {"<!doctype html>" + strings.Repeat("<blockquote>", 400) + "<pre>" + strings.Repeat("x\n", 200_000), "x"},
		"long base":       {"<!doctype html><base href=/" + strings.Repeat("a", 500_000) + "/>" + strings.Repeat("<p><a href=x>y</a>", 20_000), "y"},
		"long id":         {"<!doctype html>" + strings.Repeat("<h1><div>", 200) + "<b id=" + strings.Repeat("a", 1_000_000) + ">x", "x"},
		"long language":   {"<!doctype html><div data-lang=" + strings.Repeat("a", 500_000) + ">" + strings.Repeat("<code>x</code> ", 20_000), "x"},
		"open styles":     {"<!doctype html>" + styles.String() + strings.Repeat("<p>x", 100_000), "x"},
		"open attributes": {"<!doctype html><b " + strings.Repeat("a ", 200_000) + ">" + strings.Repeat("<p>x", 100_000), "x"},
		"nested JSON":     {strings.Repeat("[", 9_000) + strings.Repeat("0,", 200_000) + "0" + strings.Repeat("]", 9_000), "0,0"},
		"many hidden":     {"<!doctype html>" + strings.Repeat("<div hidden>h", 200) + strings.Repeat("<p hidden>x</p>", 20_000), "x"},
	} {
		if testing.Short() && !strings.HasPrefix(name, "nested") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d, err := answer(t, "text/html", []byte(tt.page)).Document(false, "")
			runtime.ReadMemStats(&after)
			if err != nil || !strings.Contains(d.Text, tt.want) {
				t.Fatalf("%v, %d bytes without %q", err, len(d.Text), tt.want)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 2<<30 {
				t.Errorf("%d MiB were allocated", got>>20)
			}
			if len(d.Text) > maxGrowth*len(tt.page)+growthRoom {
				t.Errorf("%d bytes became %d", len(tt.page), len(d.Text))
			}
			t.Logf("%d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
		})
	}
}

// TestFragment begins with the part that the URL names.
func TestFragment(t *testing.T) {
	page := "<!doctype html><main><h1>One</h1><p>" + strings.Repeat("first text ", 100) + "</p><h2 id=two>Two</h2><p id=para>second text</p><table><tr id=row><td>cell</table><p>third<a name=old></a> text</p><dl><dt id=opt>-v<dd>verbose</dl></main>"
	for fragment, want := range map[string]string{"two": "## Two {#two}", "para": "second text", "old": "third text", "opt": "-v", "": "#"} {
		r := answer(t, "text/html", []byte(page))
		d, err := r.Document(false, fragment)
		if err != nil || !strings.HasPrefix(strings.TrimSpace(d.Text[d.Begin:]), want) {
			t.Errorf("#%s: %v, begins %.60q", fragment, err, d.Text[d.Begin:])
		}
		if strings.Contains(d.Text, beginMark) {
			t.Errorf("#%s: the mark is left", fragment)
		}
	}
	d, err := answer(t, "text/html", []byte(page)).Document(false, "missing")
	if err != nil || d.Begin != 0 || len(d.Notes) != 1 {
		t.Errorf("a missing part: %v, %d, %v", err, d.Begin, d.Notes)
	}
}

// TestKinds looks at what is made of contents that are no page.
func TestKinds(t *testing.T) {
	for _, tt := range []struct{ header, body, wantType, want string }{
		{"application/json", `{"a":[1,2],"b":"<p>"}`, "application/json", "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": \"<p>\"\n}"},
		{"text/html", `{"a":1}`, "text/html", "{\n  \"a\": 1\n}"},
		{"application/json", "{\n\"a\":1}", "application/json", "{\n\"a\":1}"},
		{"application/json", `{"a":`, "application/json", `{"a":`},
		{"text/plain", "<!doctype html><p>page</p>", "text/html", "page"},
		{"text/plain", "<h1 align=center>Readme</h1>\n# x", "text/plain", "<h1 align=center>Readme</h1>\n# x"},
		{"text/markdown", "# Title\n\ntext", "text/markdown", "# Title\n\ntext"},
		{"text/csv", "a,b\r\n1,2\r\n", "text/csv", "a,b\n1,2\n"},
		{"", "plain words", "text/plain", "plain words"},
		{"text/html; charset=nonsense", "<p>é", "text/html", "é"},
		{"bad/type/x;;", "plain words", "text/plain", "plain words"},
		{"application/xml", `<?xml version="1.0"?><a><b>x</b></a>`, "application/xml", `<?xml version="1.0"?><a><b>x</b></a>`},
		{"text/plain", "a\x1b[31mred\x07 \u202eevil\u200b", "text/plain", "a[31mred evil"},
		{"application/rss+xml", `<?xml version="1.0"?><rss><channel><title>News</title><item><title>One</title><link>/1</link><pubDate>Mon</pubDate></item><item><title>Two &amp; half</title><link>https://x.example/2</link></item></channel></rss>`,
			"application/rss+xml", "- [One](https://example.com/1), Mon\n- [Two & half](https://x.example/2)\n"},
		{"text/xml", `<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title><entry><title>E</title><link rel="self" href="/self"/><link rel="alternate" href="/e"/><updated>2026-01-01</updated></entry></feed>`,
			"text/xml", "- [E](https://example.com/e), 2026-01-01\n"},
		{"text/xml", `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><rss><channel><item><title>&b;</title></item></channel></rss>`, "text/xml", ""},
	} {
		d, err := answer(t, tt.header, []byte(tt.body)).Document(false, "")
		if err != nil || d.Type != tt.wantType || strings.TrimSpace(d.Text) != strings.TrimSpace(tt.want) && tt.want != "" {
			t.Errorf("%s %.40q: %v, type %s, text %q", tt.header, tt.body, err, d.Type, d.Text)
		}
	}
}

// FuzzDocument: nothing that a server sends makes the conversion panic, or show what cannot be seen.
func FuzzDocument(f *testing.F) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "pages.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		if strings.HasSuffix(file.Name, ".html") {
			f.Add("text/html", file.Data, "two")
		}
	}
	f.Add("application/rss+xml", []byte(`<rss><channel><item><title>x</title></item></channel></rss>`), "")
	f.Add("text/html", []byte("<table><tr><td rowspan=3><table><caption>x<tr><td colspan=0></table></table>"), "")
	f.Fuzz(func(t *testing.T, header string, body []byte, fragment string) {
		began := time.Now()
		for _, raw := range []bool{false, true} {
			d, err := answer(t, header, body).Document(raw, fragment)
			if err != nil {
				continue
			}
			if _, left := visible(d.Text); left > 0 || strings.Contains(d.Text, beginMark) || d.Begin < 0 || d.Begin > len(d.Text) || strings.Contains(d.Title, "\n") {
				t.Errorf("%q: begins at %d, title %q", d.Text, d.Begin, d.Title)
			}
			d.Show("what is x", 0, 100)
		}
		_ = began
	})
}
