package web

import (
	"errors"
	"runtime/metrics"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a conversion. A small page can become long Markdown.
const (
	// The Markdown may be maxGrowth times as long as the page, plus growthRoom bytes.
	maxGrowth, growthRoom = 8, 64 << 10
	// maxWork bounds the bytes of a page, each multiplied by the number of elements around it: each of them may indent
	// the line again.
	maxWork = 256 << 20
	// nodeWork is what an element or a line of text adds to the work besides its length.
	nodeWork = 16
	// maxParsed is how many bytes may be allocated while a page is parsed, and maxPiece while one piece of it is.
	maxParsed, maxPiece = 1 << 30, 256 << 20
	// maxAdded is how many bytes are added at most by making the addresses of links absolute.
	maxAdded = maxBody
	// maxName is the longest id, or name of a language, that is shown.
	maxName = 200
	// maxSpan is up to how many columns and rows a cell is repeated, and maxRepeated how many bytes all these copies in
	// a page may have.
	maxSpan, maxRepeated = 20, 1 << 20
	// A table may have maxColumns columns. Once cells are repeated, it may have four times its own cells plus tableRoom.
	maxColumns, tableRoom = 1000, 10_000
)

// A metered reader returns an error when the parser allocates too much for a page: the parser copies unclosed style
// elements, with their attributes, into each paragraph. It counts all allocations of the process.
type metered struct {
	*strings.Reader
	piece  int // bytes that are read at once
	sample []metrics.Sample
	limit  uint64
}

func newMetered(source string) *metered {
	// Each paragraph of 4 bytes allocates 56 bytes for an open attribute of 3 bytes: 56/(3*4) < 5.
	m := &metered{strings.NewReader(source), maxPiece / (5*len(source) + 1),
		[]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}, 0}
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

// weight returns what a node costs to convert, by its text and the addresses in it.
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

// work returns the sum of the weights in n, each multiplied by its depth.
func work(n *html.Node, depth int) int {
	sum := depth * weight(n)
	for c := n.FirstChild; c != nil && sum <= maxWork; c = c.NextSibling {
		sum += work(c, depth+1)
	}
	return sum
}

// A grid counts the cells of a table, including those that spans add.
type grid struct {
	widths []int // of its rows, and of those that spans add
	row    int   // the row of the cells that follow, from 1
	cells  int
	spans  int // the sum of the columns of all cells that span several rows
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

// fits reports whether filling the table adds few cells. Cells that span rows may widen other rows, because the row
// of the head may be moved before others.
func (g *grid) fits() bool {
	width := 0
	for _, w := range g.widths {
		width = max(width, w)
	}
	width += min(g.spans, maxSpan)
	return width <= maxColumns && width*len(g.widths) <= 4*g.cells+tableRoom
}

// boundTables limits how often cells are repeated. A table with too many repeated cells is replaced by its text.
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

// span returns how many columns or rows a cell takes, at most maxSpan, and writes that number into the attribute.
func span(n *html.Node, name string) int {
	count, err := strconv.Atoi(strings.TrimSpace(attr(n, name)))
	if count = min(max(count, 1), maxSpan); hasAttr(n, name) && (err != nil || strconv.Itoa(count) != attr(n, name)) {
		setAttr(n, name, strconv.Itoa(count))
	}
	return count
}

// indentSize returns how long JSON is when it is indented by two spaces.
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

// onlyText makes the document of a page that is not converted: it has the page's text.
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
