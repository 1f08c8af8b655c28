//go:build slow

package document

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestPDFPages(t *testing.T) {
	thirty := make([]pdfPage, 30)
	for i := range thirty {
		thirty[i] = textPage(fmt.Sprintf("This is page %d.", i+1))
	}
	tests := []struct {
		name     string
		pages    []pdfPage
		from, to int
		text     []string
		pictures []string // their notes
		notes    []string
	}{
		{"text", []pdfPage{textPage("Hello", "world")}, 1, 20, []string{"Hello\nworld"}, nil, nil},
		{"some of many", thirty, 2, 3, []string{"This is page 2.", "This is page 3."}, nil,
			[]string{`These are pages 2 to 3 of 30. Go on with pages="4-23".`}},
		{"the last", thirty, 30, 49, []string{"This is page 30."}, nil, nil},
		{"empty page", []pdfPage{{}, textPage("b")}, 1, 2, []string{"", "b"}, nil, []string{"Page 1 is empty."}},
		{"no text layer", []pdfPage{drawnPage()}, 1, 1, []string{""}, []string{"page 1, 934×1209 pixels"},
			[]string{"Page 1 has no text layer: it is shown as a picture."}},
		{"form field", []pdfPage{withAnnots(textPage("Name:"), "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada) /Rect [100 700 200 720] >>")}, 1, 1,
			[]string{"Name:"}, []string{"page 1, 934×1209 pixels"},
			[]string{"Page 1 has form fields or annotations, which are not in its text: it is shown as a picture too."}},
		{"link", []pdfPage{withAnnots(textPage("here"), "<< /Type /Annot /Subtype /Link /Rect [72 700 200 720] >>")}, 1, 1, []string{"here"}, nil, nil},
		{"comment alone", []pdfPage{withAnnots(pdfPage{}, "<< /Type /Annot /Subtype /Square /Rect [72 700 200 720] >>")}, 1, 1, []string{""},
			[]string{"page 1, 934×1209 pixels"}, []string{"Page 1 has no text layer: it is shown as a picture."}},
		{"huge page", []pdfPage{{content: "0 0 9 9 re f", box: "0 0 14400 7200"}}, 1, 1, []string{""}, []string{"page 1, 2000×1000 pixels"},
			[]string{"Page 1 has no text layer: it is shown as a picture."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readPDF(t, makePDF("", tt.pages...), tt.from, tt.to)
			if err != nil {
				t.Fatal(err)
			}
			var pictures []string
			for _, p := range got.Pictures {
				pictures = append(pictures, p.Note)
				mustDecode(t, p)
			}
			if got.First != tt.from || got.Total != len(tt.pages) ||
				fmt.Sprintf("%q", got.Text) != fmt.Sprintf("%q", tt.text) {
				t.Errorf("got from %d of %d: %q; want from %d of %d: %q", got.First, got.Total, got.Text, tt.from,
					len(tt.pages), tt.text)
			}
			if fmt.Sprint(pictures) != fmt.Sprint(tt.pictures) {
				t.Errorf("pictures: got %q, want %q", pictures, tt.pictures)
			}
			if fmt.Sprintf("%q", got.Notes) != fmt.Sprintf("%q", tt.notes) {
				t.Errorf("notes: got %q, want %q", got.Notes, tt.notes)
			}
		})
	}
}

// encrypted is a trailer that names an encryption by the standard handler,
// revision 3, which no empty password opens.
const encrypted = `/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] ` +
	`/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 ` +
	`/O <00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff> ` +
	`/U <ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100> >>`

func TestPDFErrors(t *testing.T) {
	tests := []struct {
		name     string
		content  []byte
		from, to int
		want     string
	}{
		{"encrypted", makePDF(encrypted, textPage("secret")), 1, 1, "encrypted and opens only with a password"},
		{"beyond the end", makePDF("", textPage("a")), 5, 6, "the last page of the PDF is 1: page 5 does not exist"},
		{"noise", append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte{0xff, 0}, 500)...), 1, 1, "damaged"},
		{"empty file", nil, 1, 1, "the file is empty"},
		{"no pages", makePDF(""), 1, 1, "has no pages"},
		{"no range", makePDF("", textPage("a")), 0, 0, "cannot be read"},
		{"too many", makePDF("", textPage("a")), 1, 21, "at most 20"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := readPDF(t, tt.content, tt.from, tt.to)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v, %v; want an error with %q", p, err, tt.want)
			}
		})
	}
}
