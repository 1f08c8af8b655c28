package web

import (
	"errors"
	"runtime/metrics"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of a conversion. A page that is small can be large as Markdown.
const (
	// The Markdown may be maxGrowth times as long as the page, plus growthRoom bytes.
	maxGrowth, growthRoom = 8, 64 << 10
	// maxWork is the most bytes of a page, each counted as often as elements surround it: a line is indented by each of
	// them.
	maxWork = 256 << 20
	// nodeWork is what an element or a line counts besides its text.
	nodeWork = 16
	// maxParsed is how many bytes are allocated while a page is parsed, and maxPiece those for one piece of it.
	maxParsed, maxPiece = 1 << 30, 256 << 20
	// maxAdded is how many bytes the addresses of links grow by where they are made absolute.
	maxAdded = maxBody
	// maxName is the longest id or name of a language that is shown.
	maxName = 200
	// maxSpan is how many columns and rows a cell is repeated in, and maxRepeated how many bytes these copies have in a
	// page.
	maxSpan, maxRepeated = 20, 1 << 20
	// A table may have maxColumns columns and, once filled up, four times its own cells plus tableRoom.
	maxColumns, tableRoom = 1000, 10_000
)

// A metered reader stops a page that makes the parser allocate too much: it copies unclosed style elements, with
// their attributes, into each paragraph. All allocations of the process count.
type metered struct {
	*strings.Reader
	piece  int // bytes that are read at once
	sample []metrics.Sample
	limit  uint64
}

func newMetered(source string) *metered {
	// Each paragraph of 4 bytes allocates 56 bytes for an open attribute of 3 bytes: 56/(3*4) < 5.
	m := &metered{strings.NewReader(source), maxPiece / (5*len(source) + 1), []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}, 0}
	m.piece = max(m.piece, 16)
	m.limit = m.allocated() + maxParsed
	return m
}

func (m *metered) allocated() uint64 {
	metrics.Read(m.sample)
	return m.sample[0].Value.Uint64()
}

func (m *metered) Read(p []byte) (int, error) {
	if m.allocated() > m.limit {
		return 0, errors.New("the page is too large when it is parsed")
	}
	return m.Reader.Read(p[:min(len(p), m.piece)])
}

// weight is what a node costs to convert: its text, and the addresses in it.
func weight(n *html.Node) int {
	size := nodeWork + len(n.Data)
	if n.Type == html.TextNode {
		size += nodeWork * strings.Count(n.Data, "\n")
	}
	for _, a := range n.Attr {
		size += len(a.Val)
	}
	return size
}

// work is the sum of the weights in n, each times its depth.
func work(n *html.Node, depth int) int {
	sum := depth * weight(n)
	for c := n.FirstChild; c != nil && sum <= maxWork; c = c.NextSibling {
		sum += work(c, depth+1)
	}
	return sum
}

// A grid is what a table takes where the spans of its cells are filled.
type grid struct {
	widths []int // of its rows, and of those that spans add
	row    int   // the row of the cells that follow, from 1
	cells  int
	spans  int // the most columns that a cell repeats in other rows
}

func (g *grid) add(columns, rows int) {
	for len(g.widths) < g.row+rows {
		g.widths = append(g.widths, 0)
	}
	for i := range rows {
		g.widths[g.row+i] += columns
	}
	if g.cells++; rows > 1 {
		g.spans += columns
	}
}

// fits reports whether the rows are filled up with few cells. The row of the head can come before others, with its
// spans.
func (g *grid) fits() bool {
	width := 0
	for _, w := range g.widths {
		width = max(width, w)
	}
	width += min(g.spans, maxSpan)
	return width <= maxColumns && width*len(g.widths) <= 4*g.cells+tableRoom
}

// boundTables bounds how often cells are repeated. Tables that would be filled up with many cells are shown as text.
func boundTables(doc *html.Node) {
	grids := map[*html.Node]*grid{}
	repeated := 0
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "td", "th", "tr":
			if n.Namespace != "" { // such cells nest in cells
				n.Data, n.DataAtom = "span", atom.Span
				continue
			}
		default:
			continue
		}
		table := n.Parent
		for table != nil && table.Data != "table" {
			table = table.Parent
		}
		g := grids[table]
		if g == nil {
			g = &grid{}
			grids[table] = g
		}
		if n.Data == "tr" {
			g.row++
			continue
		}
		columns, rows := span(n, "colspan"), span(n, "rowspan")
		if copies := columns*rows - 1; copies > 0 && repeated <= maxRepeated {
			repeated += copies * work(n, 1)
		}
		if repeated > maxRepeated {
			deleteAttr(n, "colspan")
			deleteAttr(n, "rowspan")
			columns, rows = 1, 1
		}
		g.add(columns, rows)
	}
	for table, g := range grids {
		if table != nil && !g.fits() {
			setAttr(table, "role", "presentation")
		}
	}
}

// span returns how many columns or rows a cell takes, which it bounds.
func span(n *html.Node, name string) int {
	count, err := strconv.Atoi(strings.TrimSpace(attr(n, name)))
	if count = min(max(count, 1), maxSpan); hasAttr(n, name) && (err != nil || strconv.Itoa(count) != attr(n, name)) {
		setAttr(n, name, strconv.Itoa(count))
	}
	return count
}

// indentSize returns how long JSON is where it is indented by two blanks.
func indentSize(source string) int {
	size, depth, quoted := 0, 0, false
	for i := 0; i < len(source); i++ {
		size++
		switch c := source[i]; {
		case quoted && c == '\\':
			i++
			size++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
			size += 1 + 2*depth
		}
	}
	return size
}

// onlyText shows the text of a page that is not converted.
func (d *Document) onlyText(source string) {
	d.Text = ownMarks.Replace(tokenText(source))
	d.Notes = append(d.Notes, "The page nests too deeply to be converted; this is its text.")
}

// tokenText returns the text of a page without regard to how its elements nest.
func tokenText(source string) string {
	var out strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(source))
	skip := ""
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			return strings.TrimSpace(out.String()) + "\n"
		case html.TextToken:
			if text := strings.TrimSpace(string(tokens.Text())); skip == "" && text != "" {
				out.WriteString(html.UnescapeString(text) + "\n")
			}
		case html.StartTagToken, html.EndTagToken:
			name, _ := tokens.TagName()
			switch tag := string(name); {
			case kind == html.StartTagToken && (tag == "script" || tag == "style" || tag == "template"):
				skip = tag
			case tag == skip:
				skip = ""
			}
		}
	}
}
