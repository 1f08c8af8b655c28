package web

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/html"
)

// Limits on what is shown of a page without text of its own.
const (
	maxLeads   = 10  // addresses
	maxOwnText = 500 // characters of a document in an attribute
	noText     = 30  // characters up to which a page counts as having no text
)

// embedding are the elements that show another document, and the attributes with its address.
var embedding = map[string]string{"iframe": "src", "object": "data", "embed": "src", "video": "src", "audio": "src",
	"source": "src"}

// refreshTarget matches the content of a meta element that refreshes the page, up to the address.
var refreshTarget = regexp.MustCompile(`(?i)^\s*(?:[0-9.]+\s*[;,\s]\s*(?:url\s*=\s*)?|url\s*=\s*)["']?\s*([^"'\s]+)`)

// scriptTarget matches the part of a script that opens another address.
var scriptTarget = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:\blocation(?:\.href)?\s*=\s*|\blocation\.(?:replace|assign)\(\s*)["'` + "`" +
		`]([^"'` + "`" + `\s]{1,1000})["'` + "`" + `]`)
})

// findLeads collects the addresses that the page leads to: by a refresh, by elements that embed a document, and by
// scripts.
func (p *page) findLeads() {
	for n := range p.doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "meta" && strings.EqualFold(attr(n, "http-equiv"), "refresh"):
			if m := refreshTarget.FindStringSubmatch(attr(n, "content")); m != nil {
				p.refresh = p.lead("This page leads on to", m[1])
			}
		case n.Data == "iframe" && hasAttr(n, "srcdoc"):
			if text := tokenText(attr(n, "srcdoc")); strings.TrimSpace(text) != "" {
				p.leads = append(p.leads, "Shown by the element iframe: "+
					cutText(strings.Join(strings.Fields(text), " "), maxOwnText))
			}
		case embedding[n.Data] != "":
			p.addLead("Shown by the element "+n.Data+":", attr(n, embedding[n.Data]))
		case n.Data == "script":
			for _, m := range scriptTarget().FindAllStringSubmatch(scriptOf(n), maxLeads) {
				p.addLead("A script leads to", m[1])
			}
		}
	}
}

func (p *page) addLead(what, address string) {
	line := p.lead(what, address)
	if line != "" && len(p.leads) < maxLeads && !slices.Contains(p.leads, line) {
		p.leads = append(p.leads, line)
	}
}

// pictures are the extensions of images. Addresses of images are not shown, because a client could load them.
var pictures = []string{".apng", ".avif", ".bmp", ".gif", ".ico", ".jpeg", ".jpg", ".png", ".svg", ".tiff", ".webp"}

// lead returns a line with an address. It returns "" if the address is not an http or https URL, is that of an image,
// or is the page itself.
func (p *page) lead(what, address string) string {
	u, err := p.base.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		slices.Contains(pictures, strings.ToLower(path.Ext(u.Path))) {
		return ""
	}
	if whole := withoutFragment(u); whole != withoutFragment(p.at) {
		return fmt.Sprintf("%s %s", what, u)
	}
	return ""
}

func withoutFragment(u *url.URL) string {
	plain := *u
	plain.Fragment = ""
	return plain.String()
}

// scriptOf returns the source of a script.
func scriptOf(n *html.Node) string {
	if n.FirstChild == nil {
		return ""
	}
	return n.FirstChild.Data
}

// cutText returns at most that many characters of a text.
func cutText(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// withLeads appends to the text of a page the address that it refreshes to, and if the page has little text, the
// addresses that it embeds or its scripts open.
func (p *page) withLeads(text string) string {
	lines := []string{p.refresh}
	if len(strings.TrimSpace(text)) < noText || p.scripts > 0 && text == p.scripted() {
		lines = append(lines, p.leads...)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	if len(lines) == 0 {
		return text
	}
	return strings.TrimLeft(strings.TrimSpace(text)+"\n\n", "\n") + strings.Join(lines, "\n") + "\n"
}
