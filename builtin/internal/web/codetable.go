package web

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// codeTables replaces tables with line numbers in one column and code in the other, as syntax highlighters write
// them, by the code.
func (p *page) codeTables() {
	var tables []*html.Node
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "table" {
			tables = append(tables, n)
		}
	}
	for _, table := range tables {
		code, source := numberedCode(table)
		if code == nil || table.Parent == nil {
			continue
		}
		text := &html.Node{Type: html.TextNode, Data: source}
		if within(table, "pre") {
			table.Parent.InsertBefore(text, table)
		} else {
			language(code)
			pre := &html.Node{Type: html.ElementNode, Data: "pre", DataAtom: atom.Pre}
			inner := &html.Node{Type: html.ElementNode, Data: "code", DataAtom: atom.Code}
			setAttr(inner, "class", attr(code, "class"))
			inner.AppendChild(text)
			pre.AppendChild(inner)
			table.Parent.InsertBefore(pre, table)
		}
		remove(table)
	}
}

// codeClass matches the class that a syntax highlighter gives to a cell with a line of code.
var codeClass = regexp.MustCompile(`(?i)code|hljs|highlight`)

// numberedCode returns the element that holds the code of such a table, and the code. It returns nil for other
// tables.
func numberedCode(table *html.Node) (code *html.Node, source string) {
	next := 0
	var lines strings.Builder
	for row := range table.Descendants() {
		if row.Type != html.ElementNode || row.Data != "tr" {
			continue
		}
		var cells []*html.Node
		for c := range row.ChildNodes() {
			if c.Type == html.ElementNode {
				cells = append(cells, c)
			}
		}
		if len(cells) != 2 || !numbers(cells[0], &next) {
			return nil, ""
		}
		at := cells[1]
		for c := range at.Descendants() {
			if c.Type == html.ElementNode && (c.Data == "pre" || c.Data == "code") {
				at = c
			}
		}
		if at == cells[1] && !within(table, "pre") && !codeClass.MatchString(attr(at, "class")) {
			return nil, ""
		}
		if code == nil {
			code = at
		}
		lines.WriteString(strings.TrimSuffix(preformatted(cells[1]), "\n") + "\n")
	}
	return code, lines.String()
}

// numbers reports whether a cell has line numbers that continue after *last, and updates it. The first number of a
// table may be any.
func numbers(cell *html.Node, last *int) bool {
	shown := strings.Fields(preformatted(cell))
	if len(shown) == 0 {
		shown = strings.Fields(attr(cell, "data-line-number"))
		for c := range cell.Descendants() {
			shown = append(shown, strings.Fields(attr(c, "data-line-number"))...)
		}
	}
	for _, field := range shown {
		n, err := strconv.Atoi(field)
		if err != nil || *last > 0 && n != *last+1 || n < 0 {
			return false
		}
		*last = n
	}
	return len(shown) > 0
}

// preformatted returns the text of an element with its line breaks.
func preformatted(n *html.Node) string {
	var out strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			out.WriteString(n.Data)
		case n.Type == html.ElementNode && n.Data == "br":
			out.WriteByte('\n')
		case n.Type == html.ElementNode && slices.Contains(unseen, n.Data):
			return
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
		if n.Type == html.ElementNode && n.Data == "div" && out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
			out.WriteByte('\n')
		}
	}
	walk(n)
	return out.String()
}
