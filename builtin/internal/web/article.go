package web

import (
	"net/url"
	"slices"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// around are the elements that surround the content of a page, and interactive ones.
var around = strings.Fields("nav aside footer iframe object embed svg canvas button input select textarea dialog " +
	"menu audio video noscript")

// cut removes the parts around the content, and hidden parts, if enough content remains.
func (p *page) cut() {
	all := words(p.doc)
	p.drop(all, keptShare, func(n *html.Node) bool {
		role := attr(n, "role")
		return slices.Contains(around, n.Data) || role == "navigation" || role == "contentinfo" || role == "search" ||
			role == "complementary" ||
			(n.Data == "header" || role == "banner") && !within(n, "main", "article") &&
				!contains(n, "main", "article", "h1")
	})
	all = words(p.doc)
	p.drop(all, keptShare,
		func(n *html.Node) bool { return n.Data == "form" && float64(words(n)) <= formShare*float64(all) })
	p.drop(all, .5, func(n *html.Node) bool {
		style := strings.ReplaceAll(strings.ToLower(attr(n, "style")), " ", "")
		return hasAttr(n, "hidden") && attr(n, "hidden") != "until-found" || strings.Contains(style, "display:none") ||
			strings.Contains(style, "visibility:hidden") || attr(n, "aria-hidden") == "true"
	})
}

// drop removes the elements for which is returns true. It removes none if less than the share of all words, and less
// than enoughText, would remain.
func (p *page) drop(all int, share float64, is func(*html.Node) bool) {
	var gone []*html.Node
	lost := 0
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && is(n) && !(len(gone) > 0 && below(n, gone[len(gone)-1])) {
			gone = append(gone, n)
			lost += words(n)
		}
	}
	if float64(all-lost) < share*float64(all) {
		left := len(strings.TrimSpace(textOf(p.doc)))
		for _, n := range gone {
			left -= len(textOf(n))
		}
		if left < enoughText {
			return
		}
	}
	for _, n := range gone {
		remove(n)
	}
}

// article returns the content of the page: what readability finds if that is enough, otherwise the page as cut left
// it.
func (p *page) article(readable bool) *html.Node {
	all, main := words(p.doc), 0
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && (n.Data == "main" || n.Data == "article" || attr(n, "role") == "main") {
			main = max(main, words(n))
		}
	}
	if !readable {
		return p.doc
	}
	parser := readability.NewParser()
	parser.KeepClasses = true
	// The parser makes links absolute by this address.
	found, err := parser.ParseDocument(p.doc, &url.URL{Scheme: p.at.Scheme, Host: p.at.Host, Path: "/"})
	if err != nil || found.Node == nil {
		return p.doc
	}
	if p.title == "" {
		p.title = found.Title()
	}
	if n := words(found.Node); len(textOf(found.Node)) >= enoughText && float64(n) >= articleShare*float64(all) ||
		main > 0 && float64(n) >= mainShare*float64(main) {
		p.restoreHeading(found.Node)
		return found.Node
	}
	return p.doc
}

// restoreHeading restores the first heading, which readability removes if it is the title.
func (p *page) restoreHeading(article *html.Node) {
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "h1" {
			text := textOf(n)
			if text != "" && !strings.Contains(textOf(article), text) {
				remove(n)
				article.InsertBefore(n, article.FirstChild)
			}
			for c := range article.Descendants() { // readability turns all h1 into h2
				if c.Data == "h2" && textOf(c) == text {
					c.Data, c.DataAtom = "h1", atom.H1
					break
				}
			}
			return
		}
	}
}

func (p *page) madeByScripts() bool {
	n := len(strings.TrimSpace(textOf(p.doc)))
	return p.scripts > 0 && n < littleText/2 || p.scripts > 2 && n < littleText
}

// scripted returns the text that is shown for a page without text.
func (p *page) scripted() string {
	lines := []string{"This page is made by scripts; what the server sent has no text."}
	for _, line := range []struct{ name, text string }{{"Title", p.title}, {"Headline", p.headline},
		{"Description", p.description}, {"Text", textOf(p.doc)}} {
		if text := oneLine(line.text); text != "" {
			lines = append(lines, line.name+": "+text)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
