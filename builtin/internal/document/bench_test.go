package document

import (
	"fmt"
	"image"
	"slices"
	"testing"
)

// photo is an image with the entropy of one, more or less: soft shapes.
func photo(w, h int) image.Image {
	img := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420)
	for i := range img.Y {
		x, y := i%w, i/w
		img.Y[i] = byte(x*y>>8 ^ (x>>3)*(y>>4))
	}
	for i := range img.Cb {
		img.Cb[i], img.Cr[i] = byte(i>>9), byte(i>>13)
	}
	return img
}

func BenchmarkImage24MP(b *testing.B) {
	raw := encodeJPEG(b, photo(6000, 4000))
	for b.Loop() {
		if _, err := Image(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkImageScreenshot(b *testing.B) {
	raw := encodePNG(b, corners(2560, 1440))
	for b.Loop() {
		if _, err := Image(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPDF(b *testing.B) {
	o := testOptions(b)
	for name, page := range map[string]pdfPage{"text": textPage("Hello", "world"), "drawn": drawnPage()} {
		for _, n := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				f := openFile(b, makePDF("", slices.Repeat([]pdfPage{page}, n)...))
				if _, err := PDF(b.Context(), f, 1, n, o); err != nil { // fills the cache
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := PDF(b.Context(), f, 1, n, o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
