package document

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A pdfPage is a page to write: its content stream, with the font F1 at hand.
type pdfPage struct {
	content string
	box     string // "0 0 612 792" if empty
	annots  string // annotations, as direct objects
}

// textPage is a page that shows lines.
func textPage(lines ...string) pdfPage {
	var b bytes.Buffer
	b.WriteString("BT /F1 12 Tf 14 TL 72 720 Td\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "(%s) Tj T*\n", l)
	}
	b.WriteString("ET")
	return pdfPage{content: b.String()}
}

// drawnPage is a page with a filled square and no text.
func drawnPage() pdfPage { return pdfPage{content: "1 0 0 rg 100 100 200 200 re f"} }

// makePDF writes a PDF file. What is in trailer is added to the trailer.
func makePDF(trailer string, pages ...pdfPage) []byte {
	var out bytes.Buffer
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	out.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object(fmt.Sprintf("<< /Type /Pages /Kids [ %s] /Count %d >>", kids, len(pages)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for i, p := range pages {
		if p.box == "" {
			p.box = "0 0 612 792"
		}
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [ %s ] /Annots [ %s ] /Contents %d 0 R "+
			"/Resources << /Font << /F1 3 0 R >> >> >>", p.box, p.annots, 5+2*i))
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(p.content), p.content))
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1,
		trailer, start)
	return out.Bytes()
}

// openFile returns a file with that content.
func openFile(tb testing.TB, content []byte) *os.File {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}
