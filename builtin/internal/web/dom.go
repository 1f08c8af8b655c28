package web

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func deleteAttr(n *html.Node, name string) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func setAttr(n *html.Node, name, value string) {
	deleteAttr(n, name)
	n.Attr = append(n.Attr, html.Attribute{Key: name, Val: value})
}

func remove(n *html.Node) {
	if n.Parent != nil {
		n.Parent.RemoveChild(n)
	}
}

// unseen are the elements whose text is not shown.
var unseen = []string{"script", "style", "template", "title", "head"}

// eachText calls f for each text that is shown.
func eachText(n *html.Node, f func(string)) {
	if n.Type == html.TextNode {
		f(n.Data)
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || !slices.Contains(unseen, c.Data) {
			eachText(c, f)
		}
	}
}

// textOf returns the text in an element, with single blanks.
func textOf(n *html.Node) string {
	var out strings.Builder
	eachText(n, func(s string) { out.WriteString(s + " ") })
	return strings.Join(strings.Fields(out.String()), " ")
}

// words counts the words of the text in an element.
func words(n *html.Node) (count int) {
	eachText(n, func(s string) { count += len(strings.Fields(s)) })
	return count
}

// below reports whether n lies in the element top.
func below(n, top *html.Node) bool {
	for at := n.Parent; at != nil; at = at.Parent {
		if at == top {
			return true
		}
	}
	return false
}

// within reports whether an element lies in an element with one of these names.
func within(n *html.Node, names ...string) bool {
	for at := n.Parent; at != nil; at = at.Parent {
		if at.Type == html.ElementNode && slices.Contains(names, at.Data) {
			return true
		}
	}
	return false
}

// contains reports whether an element of these names lies in n.
func contains(n *html.Node, names ...string) bool {
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && slices.Contains(names, c.Data) {
			return true
		}
	}
	return false
}
