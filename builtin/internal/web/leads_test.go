package web

import (
	"strings"
	"testing"
)

// TestLeads: a page without text of its own says what it is and where it leads.
func TestLeads(t *testing.T) {
	long := strings.Repeat("<p>Some text of the page that is long enough to be its content.</p>", 20)
	for _, tt := range []struct {
		name, page string
		want       []string
		not        string
	}{
		{"refresh", `<meta http-equiv="refresh" content="0; url=/new">`, []string{"This page leads on to https://example.com/new"}, ""},
		{"refresh, other spelling", `<html><head><META HTTP-EQUIV=Refresh CONTENT="5;URL='https://other.example/x?a=1&amp;b=2'"></head><body></body></html>`,
			[]string{"This page leads on to https://other.example/x?a=1&b=2"}, ""},
		{"refresh without url=", `<meta http-equiv=refresh content="0;next.html">`, []string{"leads on to https://example.com/dir/next.html"}, ""},
		{"refresh relative to the base", `<base href="https://cdn.example/a/"><meta http-equiv=refresh content="0;url=b">`, []string{"leads on to https://cdn.example/a/b"}, ""},
		{"refresh of itself", `<meta http-equiv=refresh content="300">` + long, []string{"Some text"}, "leads on"},
		{"refresh of itself by its address", `<meta http-equiv=refresh content="300; url=page.html">` + long, []string{"Some text"}, "leads on"},
		{"refresh with text", `<meta http-equiv=refresh content="5; url=/new">` + long, []string{"Some text", "leads on to https://example.com/new"}, ""},
		{"refresh to no page", `<meta http-equiv=refresh content="0; url=javascript:alert(1)"><p>x</p>`, []string{"x"}, "alert"},
		{"iframe", `<html><body><iframe src="/frame.html"></iframe></body></html>`, []string{"element iframe: https://example.com/frame.html"}, ""},
		{"iframe with its own text", `<html><iframe srcdoc="<p>inner &lt;b&gt;text</p><script>x</script>"></iframe></html>`, []string{"element iframe: inner"}, "script"},
		{"object", `<html><object data="doc.pdf" type="application/pdf"></object></html>`, []string{"element object: https://example.com/dir/doc.pdf"}, ""},
		{"embed", `<html><embed src="doc.swf"></html>`, []string{"element embed: https://example.com/dir/doc.swf"}, ""},
		{"image", `<html><embed src="doc.svg"></html>`, nil, "doc.svg"},
		{"video", `<html><video><source src="a.mp4"></video></html>`, []string{"element source: https://example.com/dir/a.mp4"}, ""},
		{"iframe next to text", `<html><body>` + long + `<iframe src="/ad.html"></iframe></body></html>`, []string{"Some text"}, "ad.html"},
		{"script that leads on", `<html><script>window.location.href = "https://example.com/app";</script></html>`,
			[]string{"made by scripts", "A script leads to https://example.com/app"}, ""},
		{"script that replaces", `<html><script>location.replace('/login?x=1')</script></html>`, []string{"A script leads to https://example.com/login?x=1"}, ""},
		{"script alone", `<html><title>App</title><div id=root></div><script src=/app.js></script></html>`, []string{"made by scripts", "Title: App"}, "leads"},
		{"noscript", `<html><script src=a.js></script><noscript><iframe src="https://gtm.example/ns.html"></iframe></noscript></html>`, []string{"made by scripts"}, ""},
	} {
		for _, raw := range []bool{false, true} {
			d, err := answer(t, "text/html", []byte(tt.page)).Document(raw, "")
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			for _, want := range tt.want {
				if !strings.Contains(d.Text, want) {
					t.Errorf("%s, raw %v: %q is not in %q", tt.name, raw, want, d.Text)
				}
			}
			if tt.not != "" && strings.Contains(d.Text, tt.not) {
				t.Errorf("%s, raw %v: %q is in %q", tt.name, raw, tt.not, d.Text)
			}
		}
	}
}

// TestCodeTables: tables with numbers of lines are the code, as Rouge, Pygments, Hexo, Chroma, GitHub and highlight.js
// make them.
func TestCodeTables(t *testing.T) {
	const want = "```\naaa = 1 | 2\n  bbb = <2>\n```"
	code := "aaa = 1 | 2\n  bbb = &lt;2&gt;\n"
	for name, page := range map[string]string{
		"rouge": `<div class="highlight"><pre class="highlight"><code><table class="rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">1
2
</pre></td><td class="rouge-code"><pre><span class="n">` + code + `</span></pre></td></tr></tbody></table></code></pre></div>`,
		"pygments": `<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre><span class="normal">1</span>
<span class="normal">2</span></pre></div></td><td class="code"><div class="highlight"><pre><span></span>` + code + `</pre></div></td></tr></table>`,
		"hexo": `<figure class="highlight"><table><tr><td class="gutter"><pre><span class="line">1</span><br><span class="line">2</span><br></pre></td>` +
			`<td class="code"><pre><span class="line">aaa = 1 | 2</span><br><span class="line">  bbb = &lt;2&gt;</span><br></pre></td></tr></table></figure>`,
		"chroma": `<div class="chroma"><table class="lntable"><tr><td class="lntd"><pre><code><span class="lnt">1
</span><span class="lnt">2
</span></code></pre></td><td class="lntd"><pre><code>` + code + `</code></pre></td></tr></table></div>`,
		"github": `<table class="js-file-line-container"><tr><td id="L8" class="blob-num" data-line-number="8"></td><td class="blob-code">aaa = 1 | 2</td></tr>` +
			`<tr><td id="L9" class="blob-num" data-line-number="9"></td><td class="blob-code">  bbb = &lt;2&gt;</td></tr></table>`,
		"highlight.js": `<pre><code><table class="hljs-ln"><tr><td class="hljs-ln-numbers"><div class="hljs-ln-n" data-line-number="1"></div></td>` +
			`<td class="hljs-ln-code">aaa = 1 | 2</td></tr><tr><td data-line-number="2"></td><td class="hljs-ln-code">  bbb = &lt;2&gt;</td></tr></table></code></pre>`,
	} {
		d, err := answer(t, "text/html", []byte("<html><body><p>Before.</p>"+page+"<p>After.</p></body></html>")).Document(false, "")
		if err != nil || !strings.Contains(d.Text, want) || strings.Contains(d.Text, "|--") ||
			!strings.Contains(d.Text, "After.") {
			t.Errorf("%s: %v\n%s", name, err, d.Text)
		}
	}
	for name, table := range map[string]string{
		"ranks":           `<table><tr><td>1</td><td>Ann</td></tr><tr><td>2</td><td>Bob</td></tr></table>`,
		"names with code": `<table><tr><td>a</td><td><code>x</code></td></tr></table>`,
		"no sequence":     `<table><tr><td>404</td><td><code>x</code></td></tr><tr><td>200</td><td><code>y</code></td></tr></table>`,
	} {
		d, err := answer(t, "text/html", []byte("<html><body>"+table+"</body></html>")).Document(false, "")
		if err != nil || !strings.Contains(d.Text, "|--") {
			t.Errorf("%s: %v\n%s", name, err, d.Text)
		}
	}
}
