package web

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// maxEntries is how many entries of a feed are listed.
const maxEntries = 200

// A feedEntry is an entry of RSS, RDF or Atom.
type feedEntry struct {
	Title string `xml:"title"`
	Links []struct {
		Href string `xml:"href,attr"`
		Rel  string `xml:"rel,attr"`
		Text string `xml:",chardata"`
	} `xml:"link"`
	Published string `xml:"published"`
	Updated   string `xml:"updated"`
	PubDate   string `xml:"pubDate"`
	Date      string `xml:"date"`
}

// fromFeed replaces a feed by a list of its titles and links, as Markdown. It leaves other XML unchanged and reports
// false.
func (d *Document) fromFeed(at *url.URL) (isFeed bool) {
	source := xml.NewDecoder(strings.NewReader(d.Text))
	source.Strict, source.Entity = false, xml.HTMLEntity
	source.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is decoded already
	var out strings.Builder
	title, count, root := "", 0, ""
	for {
		token, err := source.Token()
		if err != nil {
			break
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if root == "" {
			if root = start.Name.Local; root != "rss" && root != "feed" && root != "RDF" {
				return false
			}
		}
		switch start.Name.Local {
		case "title":
			if title == "" && source.DecodeElement(&title, &start) != nil {
				return false
			}
		case "item", "entry":
			var e feedEntry
			if source.DecodeElement(&e, &start) != nil {
				return false
			}
			if count++; count <= maxEntries {
				out.WriteString(e.line(at))
			}
		}
	}
	if count == 0 {
		return false
	}
	if count > maxEntries {
		fmt.Fprintf(&out, "[… %d more entries]\n", count-maxEntries)
	}
	d.Title, d.Text = title, ownMarks.Replace(out.String())
	return true
}

// line returns the entry as an item of a list.
func (e *feedEntry) line(at *url.URL) string {
	link := ""
	for _, l := range e.Links {
		if href := strings.TrimSpace(l.Href + l.Text); href != "" && (link == "" || l.Rel == "alternate") {
			link = href
		}
	}
	if u, err := at.Parse(link); err == nil && link != "" {
		link = u.String()
	}
	line := "- [" + oneLine(e.Title) + "](" + oneLine(link) + ")"
	for _, date := range []string{e.Published, e.PubDate, e.Date, e.Updated} {
		if date = oneLine(date); date != "" {
			return line + ", " + date + "\n"
		}
	}
	return line + "\n"
}
