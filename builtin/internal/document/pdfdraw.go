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
		Page: page, Width: w, Height: h, RenderFlags: enums.FPDF_RENDER_FLAG_ANNOT,
	})
	if err != nil {
		return nil, err
	}
	defer drawn.CleanupFunc()
	var out bytes.Buffer
	// Speed counts here: whoever started this process encodes again what is too large.
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(&out, drawn.Result.RenderedImage); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// pixels returns the size of the picture of a page whose size is in points, or
// zeros if that is no size.
func pixels(width, height float64) (w, h int) {
	if !(width > 0 && height > 0) || math.IsInf(width, 0) || math.IsInf(height, 0) {
		return 0, 0
	}
	scale := min(DPI/float64(pointsPerInch), MaxSide/max(width, height))
	return max(1, int(width*scale)), max(1, int(height*scale))
}
