//go:build slow

package document

func withAnnots(p pdfPage, annots string) pdfPage {
	p.annots = annots
	return p
}
