package web

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/net/html"

	plain "github.com/toolhost/toolhost/builtin/internal/text"
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
	return &Response{URL: u, Status: 200, Header: http.Header{"Content-Type": {contentType}}, Body: body,
		documents: &documents{}}
}

// show is a document as a golden file holds it.
func show(d *Document) string {
	return fmt.Sprintf("Title: %s\nDate: %s\nType: %s\nNotes: %s\n\n%s", d.Title, d.Date, d.Type,
		strings.Join(d.Notes, " "), d.Text)
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
				hasAttr(c.Parent, "style") || hasAttr(c.Parent, "hidden") || hasAttr(c.Parent, "aria-hidden") ||
				c.Parent.Data == "a" && attr(c.Parent, "class") == "headerlink" {
				continue
			}
			for _, w := range strings.Fields(c.Data) {
				w, _ = plain.Visible(strings.ReplaceAll(w, "|", `\|`))
				if !strings.Contains(text, w) && !strings.Contains(text, strings.ReplaceAll(w, `\|`, "|")) {
					t.Errorf("the word %q of main is lost", w)
				}
			}
		}
	}
}

// TestFragment begins with the part that the URL names.
func TestFragment(t *testing.T) {
	page := "<!doctype html><main><h1>One</h1><p>" + strings.Repeat("first text ", 100) +
		"</p><h2 id=two>Two</h2><p id=para>second text</p><table><tr id=row><td>cell</table><p>third<a name=old></a> text</p><dl><dt id=opt>-v<dd>verbose</dl></main>"
	for fragment, want := range map[string]string{"two": "## Two {#two}", "para": "second text", "old": "third text",
		"opt": "-v", "": "#"} {
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
		if err != nil || d.Type != tt.wantType || strings.TrimSpace(d.Text) != strings.TrimSpace(tt.want) &&
			tt.want != "" {
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
			if _, left := plain.Visible(d.Text); left > 0 || strings.Contains(d.Text, beginMark) || d.Begin < 0 ||
				d.Begin > len(d.Text) || strings.Contains(d.Title, "\n") {
				t.Errorf("%q: begins at %d, title %q", d.Text, d.Begin, d.Title)
			}
			d.Show("what is x", 0, 100)
		}
		_ = began
	})
}
