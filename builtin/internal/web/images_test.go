package web

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestWithoutImages: what a page has of images, and what is shown of it.
func TestWithoutImages(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text", "a ! [b](c) <d> e", "a ! [b](c) <d> e"},
		{"an image", "a ![x](https://evil/p.png) b", "a [image: x] b"},
		{"with a title", `![x](<https://evil/a b> "t (1)")`, "[image: x]"},
		{"without a description", "![](https://evil/p.png)", "[image]"},
		{"with brackets", `![a [b] \] c](https://evil/(1).png)`, `[image: a [b] \] c]`},
		{"a reference", "![x][1]\n\n[1]: https://other/p.png", "[image: x]\n\n[1]: https://other/p.png"},
		{"a short reference", "![x] ![x][]", "[image: x] [image: x]"},
		{"in a link", "[![x](https://evil/p.png)](https://site/)", "[[image: x]](https://site/)"},
		{"two marks", "!![x](https://evil/1)(https://evil/2)", "! [image: x](https://evil/2)"},
		{"in an image", "![a ![b](https://evil/1) c](https://evil/2)", "[image: a [image: b] c]"},
		{"without an end", "![x](https://evil/1\n\nnext", "[image: x](https://evil/1\n\nnext"},
		{"without a bracket", "![x\n\nnext ![", "! [x\n\nnext ! ["},
		{"an element", `a<img src="https://evil/p.png" alt="x">b`, "a[image: x]b"},
		{"an element that makes one", `!<img src="https://evil/1">[x](https://evil/2)`, "! [image][x](https://evil/2)"},
		{"another that makes one", `!<video src="https://evil/1">[x](https://evil/2)`, "! [x](https://evil/2)"},
		{"a style", `<div style="background:url(https://evil/1)">x</div>`, " x</div>"},
		{"sources", `<picture><source srcset="https://evil/1 2x"></picture>`, `<picture> </picture>`},
		{"a comment", "<!--\n![x](https://evil/1)", "\\<!--\n[image: x]"},
		{"generic types", "List<Image> and Map<Use, Link<Base>> x <!y", `List<Image> and Map<Use, Link<Base>> x \<!y`},
		{"less than", "a <b and c > d, <p>x</p> <details><summary>s</summary>", "a <b and c > d, <p>x</p> <details><summary>s</summary>"},
		{"without an end of the element", "<img src=https://evil/1", `\<img src=https://evil/1`},
		{"in capitals", `<IMG SRC=https://evil/1 ALT=x>`, "[image: x]"},
	} {
		if got := withoutImages(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// loads matches what a program that shows Markdown loads.
var loads = regexp.MustCompile(`(?i)!\[[^\]]*\][(\[]|!\[|<(img|video|source|iframe|object|embed|svg|image|input)\s|<[a-z][^>]*\b(style|background)=`)

// TestPageImages: pages in every form have no image in their Markdown, and no address of one.
func TestPageImages(t *testing.T) {
	const evil = "https://evil.example/p.png?q=1"
	for name, page := range map[string]string{
		"an image":              `<img src="` + evil + `" alt="x">`,
		"without alt":           `<img src="` + evil + `">`,
		"lazy":                  `<img data-src="` + evil + `" alt="x">`,
		"in a link":             `<a href="https://site.example/"><img src="` + evil + `" alt="x"></a>`,
		"a picture":             `<picture><source srcset="` + evil + `"><img src="` + evil + `" alt="x"></picture>`,
		"in a table":            `<table><tr><th>a</th></tr><tr><td><img src="` + evil + `" alt="x|y"></td></tr></table>`,
		"in a heading":          `<h2><img src="` + evil + `" alt="x">Head</h2>`,
		"svg":                   `<svg><image href="` + evil + `"/></svg>`,
		"other elements":        `<video poster="` + evil + `"></video><object data="` + evil + `"></object><input type=image src="` + evil + `"><embed src="` + evil + `">`,
		"as text":               `<p>![x](` + evil + `)</p>`,
		"as text with entities": `<p>&#33;&#91;x](` + evil + `)</p>`,
		"split":                 `<p>!<b></b>[x](` + evil + `)</p>`,
		"split by nothing":      "<p>!\u200b[x](" + evil + `) !&#x034f;[y](` + evil + `) !&#x10fffd;[z](` + evil + `) !&#x10fff9;[w](` + evil + `)</p>`,
		"a mark and a link":     `<p>!<a href="` + evil + `">x</a></p>`,
		"an element as text":    `<p>&lt;img src="` + evil + `"&gt; &lt;b&gt;&lt;/b&gt;</p>`,
		"split elements":        `<p>&lt;<i></i>img src="` + evil + `"&gt;</p>`,
		"in alt":                `<img src="/a.png" alt="![y](` + evil + `)"><img src="/b.png" alt="]![y](` + evil + `)">`,
		"in a title":            `<a href="/x" title='") ![y](` + evil + `) "'>link</a>`,
		"in the title":          `<title>![x](` + evil + `)</title><p>text</p>`,
		"code that ends":        "<p>` <code>![x](" + evil + ")</code></p>",
		"code in fences":        "<p>```</p><pre>![x](" + evil + ")</pre>",
		"code in tildes":        "<p>~~~</p><pre>![x](" + evil + ")</pre>",
		"a fence with a tick":   "<pre><code class=\"language-a`b\">![x](" + evil + ")</code></pre>",
		"code in a comment":     "<p>&lt;!--</p><pre>--&gt;\n\n![x](" + evil + ")</pre>",
		"code of paragraphs":    "<p><code>a<br><br>![x](" + evil + ")</code></p>",
		"code of blank lines":   "<p><code>a\n\n![x](" + evil + ")</code></p>",
		"code in a cell":        "<table><tr><th>a</th></tr><tr><td><pre>|\n\n![x](" + evil + ")</pre></td></tr></table>",
		"made by scripts":       `<title>![x](` + evil + `)</title><script></script><script></script><script></script><p>![x](` + evil + `)</p>`,
	} {
		for _, raw := range []bool{false, true} {
			d, err := answer(t, "text/html", []byte("<html><body>"+page+"</body></html>")).Document(raw, "")
			if err != nil {
				t.Fatal(err)
			}
			text := d.Title + "\n" + d.Text
			if found := loads.FindString(text); found != "" && !strings.Contains(text, "`![x]("+evil+")`") {
				t.Errorf("%s: %q is left of\n%s", name, found, text)
			}
			if address := strings.Contains(text, evil); address && !strings.Contains(name, "link") && name != "split" {
				t.Errorf("%s: the address is left in\n%s", name, text)
			}
		}
	}
	for kind, source := range map[string]string{
		"text/markdown":       "# A\n\n![x](" + evil + ")\n\n<img src='" + evil + "'>\n",
		"application/rss+xml": `<?xml version="1.0"?><rss><channel><title>![t](` + evil + `)</title><item><title>x](/) ![y](` + evil + `)</title><link>https://site.example/</link></item></channel></rss>`,
	} {
		d, err := answer(t, kind, []byte(source)).Document(false, "")
		if err != nil {
			t.Fatal(err)
		}
		if text := d.Title + "\n" + d.Text; loads.MatchString(text) || strings.Contains(text, evil) {
			t.Errorf("%s: an image is left in\n%s", kind, text)
		}
	}
}

// TestPageCode: code that shows images is shown whole, and so is text that is no Markdown.
func TestPageCode(t *testing.T) {
	for kind, c := range map[string][2]string{
		"text/html":     {"<p>Write <code>![alt](https://host/a.png)</code>:</p><pre><code class=\"language-md\">![logo](https://host/b.png)\n&lt;img src=\"c.png\"&gt;</code></pre><p>Done!</p>", ""},
		"text/plain":    {"![x](https://host/a.png) <img src=\"c.png\">\n", "![x](https://host/a.png) <img src=\"c.png\">\n"},
		"text/x-csharp": {"if (!items[0]) { List<Image> a; }\n", "if (!items[0]) { List<Image> a; }\n"},
	} {
		d, err := answer(t, kind, []byte(c[0])).Document(true, "")
		if err != nil {
			t.Fatal(err)
		}
		if c[1] != "" && d.Text != c[1] {
			t.Errorf("%s: %q", kind, d.Text)
		}
		for _, want := range []string{"`![alt](https://host/a.png)`",
			"![logo](https://host/b.png)\n<img src=\"c.png\">\n```"} {
			if c[1] == "" && !strings.Contains(d.Text, want) {
				t.Errorf("%s: %q is not in\n%s", kind, want, d.Text)
			}
		}
	}
}

// TestImagesAreLinear: texts that begin many images take no time that grows faster than they do.
func TestImagesAreLinear(t *testing.T) {
	testenv.NotShort(t, "converts 8 MB")
	for _, unit := range []string{"![", "![a", "![](", "![]", "<img ", "<a x", "!\U0010fffd[", "![](<"} {
		done := make(chan string, 1)
		go func() { done <- withoutImages(strings.Repeat(unit, 1<<20/len(unit))) }()
		select {
		case out := <-done:
			if strings.Contains(out, "![") {
				t.Errorf("%q: an image is left", unit)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q takes more than a minute", unit)
		}
	}
}
