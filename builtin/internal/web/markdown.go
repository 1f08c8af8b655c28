package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// These limits decide which part of a page is shown.
const (
	// enoughText is how many characters an article must have to be chosen, and how many must remain after hidden parts
	// are removed.
	enoughText = 500
	// articleShare is the least share of the words of the page that an article must have, and mainShare the least share
	// of those of its main element.
	articleShare, mainShare = .35, .8
	// keptShare is the least share of the words that must remain when the parts around the content are removed.
	keptShare = .2
	// formShare is the largest share of all words that a removed form may have: some pages are a single form.
	formShare = .3
	// maxReadable is the longest page, in bytes, in which an article is looked for.
	maxReadable = 3 << 20
	// littleText is up to how many characters a page with scripts counts as made by scripts.
	littleText = 250
)

// fromHTML makes Markdown of a page.
func (d *Document) fromHTML(source string, at *url.URL, raw bool, fragment string) error {
	doc, err := html.ParseWithOptions(newMetered(source), html.ParseOptionEnableScripting(false))
	if err != nil || work(doc, 0) > maxWork {
		d.onlyText(source)
		return nil
	}
	p := &page{doc: doc, at: at, base: at}
	p.unmark()
	p.inspect()
	p.findLeads()
	p.codeTables()
	d.Title, d.Date = p.title, p.date
	p.prepare(fragment)
	if p.added > maxAdded {
		d.Notes = append(d.Notes, "The page has too many links: the last ones are shown without their addresses.")
	}
	boundTables(doc)
	content := doc
	if !raw {
		if p.cut(); p.madeByScripts() {
			d.Text = p.withLeads(p.scripted())
			return nil
		}
		content = p.article(len(source) <= maxReadable)
	}
	out, err := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(
			table.WithSpanCellBehavior(table.SpanBehaviorMirror),
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithHeaderPromotion(true),
			table.WithPresentationTables(false), table.WithSkipEmptyRows(true),
		))).ConvertNode(content)
	if len(out) > maxGrowth*len(source)+growthRoom {
		d.onlyText(source)
		return nil
	}
	d.Text = string(bytes.TrimSpace(out)) + "\n"
	if d.Text == "\n" && p.scripts > 0 {
		d.Text = p.scripted()
	}
	d.Text = p.withLeads(d.Text)
	return err
}

// A page is an HTML document that is being reduced to its content.
type page struct {
	doc         *html.Node
	at, base    *url.URL // the URL of the page, and what its links are relative to
	added       int      // bytes added by making links absolute
	title, date string
	description string
	headline    string
	scripts     int
	refresh     string   // a line with the address that the page refreshes to, or ""
	leads       []string // lines with the addresses that it embeds or its scripts open
	ticks       bool     // a text outside of code has the syntax of code
}

// unmark removes the private-use characters of this package from texts and attributes, in which entities may have
// produced them. It sets ticks if a text outside of code, or an attribute, could begin or end code in Markdown.
func (p *page) unmark() {
	var plain strings.Builder
	for n := range p.doc.Descendants() {
		if n.Type == html.TextNode {
			if n.Data = ownMarks.Replace(n.Data); !within(n, "pre", "code", "script", "style") {
				plain.WriteString(n.Data)
			}
		}
		for i := range n.Attr {
			n.Attr[i].Val = ownMarks.Replace(n.Attr[i].Val)
			p.ticks = p.ticks || strings.Contains(n.Attr[i].Val, "`")
		}
	}
	p.ticks = p.ticks || codeMark.MatchString(plain.String())
}

// inspect reads the head of the page, and finds the base of its links.
func (p *page) inspect() {
	og := ""
	for n := range p.doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "title" && p.title == "" && (n.Parent == nil || n.Parent.Namespace == ""):
			p.title = textOf(n)
		case n.Data == "base" && p.base == p.at:
			if u, err := p.base.Parse(attr(n, "href")); err == nil && attr(n, "href") != "" {
				p.base = u
			}
		case n.Data == "meta":
			switch content := attr(n, "content"); strings.ToLower(attr(n, "property") + attr(n, "name") + attr(n, "itemprop")) {
			case "og:title":
				og = content
			case "description", "og:description":
				p.description = content
			case "article:published_time", "date", "dc.date", "datepublished":
				p.date = content
			}
		case n.Data == "time" && p.date == "" && hasAttr(n, "pubdate"):
			p.date = attr(n, "datetime")
		case n.Data == "script":
			if p.scripts++; attr(n, "type") == "application/ld+json" {
				p.linkedData(textOf(n))
			}
		}
	}
	if strings.TrimSpace(p.title) == "" {
		p.title = og
	}
	if t, err := time.Parse(time.RFC3339, p.date); err == nil {
		p.date = t.Format(time.DateOnly)
	}
}

// linkedData takes the headline and the date from JSON-LD.
func (p *page) linkedData(source string) {
	var one struct{ Headline, DatePublished, Description string }
	var list []json.RawMessage
	if json.Unmarshal([]byte(source), &list) == nil && len(list) > 0 {
		source = string(list[0])
	}
	if json.Unmarshal([]byte(source), &one) != nil {
		return
	}
	p.headline = ownMarks.Replace(one.Headline)
	if p.date == "" {
		p.date = one.DatePublished
	}
	if p.description == "" {
		p.description = ownMarks.Replace(one.Description)
	}
}

// prepare removes the invisible parts of the page, and rewrites links, images and headings for display.
func (p *page) prepare(fragment string) {
	var gone []*html.Node
	var part *html.Node
	for n := range p.doc.Descendants() {
		switch n.Type {
		case html.CommentNode:
			gone = append(gone, n)
		case html.TextNode:
			if p.isCode(n) {
				n.Data = codeIn.Replace(n.Data)
			} else {
				n.Data = textIn.Replace(n.Data)
			}
			if within(n, "td", "th") {
				n.Data = strings.ReplaceAll(n.Data, "|", `\|`)
			}
		}
		if n.Type != html.ElementNode {
			continue
		}
		if part == nil && fragment != "" && (attr(n, "id") == fragment || n.Data == "a" && attr(n, "name") == fragment) {
			part = n
		}
		switch n.Data {
		case "script", "style", "template", "link", "meta":
			gone = append(gone, n)
		case "a":
			if p.absolute(n, "href"); textOf(n) == "" && !contains(n, "img", "svg") {
				gone = append(gone, n)
			} else if !hasAttr(n, "href") {
				n.Data, n.DataAtom = "span", atom.Span
			}
		case "frame":
			if p.absolute(n, "src"); hasAttr(n, "src") {
				n.Data, n.DataAtom, n.Attr = "a", atom.A, []html.Attribute{{Key: "href", Val: attr(n, "src")}}
				n.AppendChild(&html.Node{Type: html.TextNode, Data: "frame "})
			}
		case "noframes":
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				c.Data = ownMarks.Replace(tokenText(c.Data))
			}
		case "img":
			if !image(n) {
				gone = append(gone, n)
			}
		case "h1", "h2", "h3", "h4", "h5", "h6":
			p.heading(n)
		case "code", "pre":
			language(n)
		}
	}
	if part != nil && part.Parent != nil {
		mark(part)
	}
	for _, n := range gone {
		remove(n)
	}
}

// The converter would write these characters as entities, so they are replaced by private-use characters during the
// conversion. Pages cannot contain these: unmark removes them. Code has other replacements, because the syntax of an
// image is harmless there.
var (
	textIn   = strings.NewReplacer("<", textLess, ">", textGreater, "&", "\U0010FFFC")
	codeIn   = strings.NewReplacer("<", "\U0010FFFA", ">", textGreater, "&", "\U0010FFFC", "![", "!"+codeImage+"[")
	standBy  = strings.NewReplacer(textLess, "<", "\U0010FFFA", "<", textGreater, ">", "\U0010FFFC", "&", codeImage, "")
	ownMarks = strings.NewReplacer(textLess, "", codeImage, "", "\U0010FFFA", "", textGreater, "", "\U0010FFFC", "",
		beginMark, "")
)

// codeMark matches what begins or ends code in Markdown, and the start of a comment or an element in which Markdown
// is not read.
var codeMark = regexp.MustCompile("`|~~~|<[!?]|<(?i:script|style|pre|textarea)")

// isCode reports whether programs that show Markdown will show a text of the page as code: in a block, or on one line
// in a paragraph.
func (p *page) isCode(n *html.Node) bool {
	switch {
	case p.ticks, within(n, "td", "th"):
		return false
	case within(n, "pre"):
		return true
	}
	alone := n.Parent != nil && n.Parent.Data == "code" && n.Parent.FirstChild == n && n.NextSibling == nil
	return alone && !strings.ContainsAny(n.Data, "\r\n`")
}

// mark inserts beginMark where the element of the fragment begins.
func mark(n *html.Node) {
	note := &html.Node{Type: html.TextNode, Data: beginMark}
	switch n.Data {
	case "table", "tbody", "thead", "tr", "ul", "ol", "dl", "img", "input", "hr", "br", "a":
		n.Parent.InsertBefore(note, n)
	default:
		n.InsertBefore(note, n.FirstChild)
	}
}

// absolute makes a link absolute. It removes a link whose address is not on the web.
func (p *page) absolute(n *html.Node, name string) {
	if p.added > maxAdded {
		deleteAttr(n, name)
		return
	}
	u, err := p.base.Parse(strings.TrimSpace(attr(n, name)))
	if err != nil || !hasAttr(n, name) || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		deleteAttr(n, name)
		return
	}
	whole := u.String()
	if p.added += max(len(whole)-len(attr(n, name)), 0); p.added > maxAdded {
		deleteAttr(n, name)
		return
	}
	setAttr(n, name, whole)
}

// image replaces an image by its description, or by the name of its file. It reports false if the image is not worth
// showing.
func image(n *html.Node) bool {
	alt := strings.TrimSpace(attr(n, "alt"))
	source := cmp.Or(attr(n, "src"), attr(n, "data-src"), attr(n, "data-original"))
	if hasAttr(n, "alt") && alt == "" || attr(n, "width") == "1" || source == "" && alt == "" {
		return false
	}
	if u, err := url.Parse(source); alt == "" && err == nil && u.Scheme != "data" {
		alt = path.Base(u.Path)
	}
	var text strings.Builder
	describe(&text, inBrackets.Replace(withoutImages(cutText(alt, maxDescription))))
	n.Type, n.Data, n.Attr, n.DataAtom = html.TextNode, textIn.Replace(text.String()), nil, 0
	return true
}

// maxDescription is how many characters of the description of an image are shown.
const maxDescription = 500

// heading appends the id of a heading to its text, and removes the sign that links to the heading.
func (p *page) heading(n *html.Node) {
	id := attr(n, "id")
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && id == "" {
			if id = attr(c, "id"); id == "" && c.Data == "a" {
				id = attr(c, "name")
			}
		}
	}
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.ElementNode && c.Data == "a" &&
			strings.Trim(strings.TrimSpace(textOf(c)), "#¶§🔗\uf0c1") == "" && strings.TrimSpace(textOf(c)) != "" {
			n.RemoveChild(c)
		}
		c = next
	}
	if id != "" && len(id) <= maxName && !strings.ContainsFunc(id, unicode.IsSpace) &&
		strings.TrimSpace(textOf(n)) != "" {
		n.AppendChild(&html.Node{Type: html.TextNode, Data: " {#" + id + "}"})
	}
}

// language sets the class from which the converter takes the language of code.
func language(n *html.Node) {
	for at, up := n, 0; at != nil && up < 3; at, up = at.Parent, up+1 {
		if weight(at) > 10*maxName {
			continue
		}
		for _, class := range append(strings.Fields(attr(at, "class")), "language-"+attr(at, "data-lang"), "language-"+
			attr(at, "data-language")) {
			for _, prefix := range []string{"language-", "lang-", "highlight-source-", "highlight-", "sourceCode-"} {
				if name, ok := strings.CutPrefix(class, prefix); ok && name != "" && name != "default" &&
					name != "wrapper" && name != "notranslate" {
					setAttr(n, "class", "language-"+name)
					return
				}
			}
		}
	}
}
