package document

import (
	"bytes"
	"errors"
	"image/png"
	"math"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/requests"
)

// pointsPerInch is the unit of PDF (ISO 32000-1, 8.3.2.3).
const pointsPerInch = 72

// maxAnnotations is how many annotations of a page are examined.
const maxAnnotations = 1000

// annotated reports whether a page has visible form fields or annotations: what people fill in or remark is not part
// of the text of a page. Links and the popups of comments do not count.
func (r *reader) annotated(page requests.Page) bool {
	count, err := r.lib.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: page})
	if err != nil {
		return false
	}
	for i := range min(count.Count, maxAnnotations) {
		got, err := r.lib.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: page, Index: i})
		if err != nil {
			continue
		}
		kind, err := r.lib.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: got.Annotation})
		r.lib.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: got.Annotation})
		if err == nil && kind.Subtype != enums.FPDF_ANNOT_SUBTYPE_LINK &&
			kind.Subtype != enums.FPDF_ANNOT_SUBTYPE_POPUP {
			return true
		}
	}
	return false
}

// picture draws a page at [DPI], or smaller if it then fits [MaxSide].
func (r *reader) picture(page requests.Page) ([]byte, error) {
	width, err := r.lib.FPDF_GetPageWidth(&requests.FPDF_GetPageWidth{Page: page})
	if err != nil {
		return nil, err
	}
	height, err := r.lib.FPDF_GetPageHeight(&requests.FPDF_GetPageHeight{Page: page})
	if err != nil {
		return nil, err
	}
	w, h := pixels(width.Width, height.Height)
	if w == 0 {
		return nil, errors.New("it has no size")
	}
	drawn, err := r.lib.RenderPageInPixels(&requests.RenderPageInPixels{
		Page: page, Width: w, Height: h, RenderFlags: enums.FPDF_RENDER_FLAG_ANNOT, RenderForm: true, Document: &r.doc,
	})
	if err != nil {
		return nil, err
	}
	defer drawn.CleanupFunc()
	var out bytes.Buffer
	// Speed matters here: the parent process encodes the picture again if it is too large.
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(&out, drawn.Result.RenderedImage); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// pixels returns the size in pixels of the picture of a page, whose size is in points. It returns zeros if that is
// not a valid size.
func pixels(width, height float64) (w, h int) {
	if !(width > 0 && height > 0) || math.IsInf(width, 0) || math.IsInf(height, 0) {
		return 0, 0
	}
	scale := min(DPI/float64(pointsPerInch), MaxSide/max(width, height))
	return max(1, int(width*scale)), max(1, int(height*scale))
}
