//go:build slow

package document

import (
	"bytes"
	"encoding/binary"
	"image"
	"strings"
	"testing"
)

// grayJPEG is a JPEG of any size in one shade of gray. Its blocks are all the same
// six bits (no difference to the block before, end of block), so that a large one
// is written at once.
func grayJPEG(tb testing.TB, w, h int) []byte {
	tb.Helper()
	small := image.NewGray(image.Rect(0, 0, 8, 8))
	for i := range small.Pix {
		small.Pix[i] = 128
	}
	raw := encodeJPEG(tb, small)
	frame := bytes.Index(raw, []byte{0xff, 0xc0})
	binary.BigEndian.PutUint16(raw[frame+5:], uint16(h))
	binary.BigEndian.PutUint16(raw[frame+7:], uint16(w))
	scan := bytes.Index(raw, []byte{0xff, 0xda})
	scan += 2 + int(binary.BigEndian.Uint16(raw[scan+2:]))
	blocks := ((w + 7) / 8) * ((h + 7) / 8)
	data := bytes.Repeat([]byte{0b00101000, 0b10100010, 0b10001010}, (blocks+3)/4)
	return append(append(raw[:scan:scan], data...), 0xff, 0xd9)
}

// TestImageLimits makes what models refuse fit.
func TestImageLimits(t *testing.T) {
	tests := []struct {
		name string
		raw  []byte
		w, h int
		mime string
		note string
	}{
		{"wide PNG", encodePNG(t, corners(2400, 30)), 2000, 25, "image/png", "shown at 2000×25"},
		{"a line", encodePNG(t, corners(9000, 2)), 2000, 1, "image/png", "shown at 2000×1"},
		{"PNG of 6 MB", noisePNG(t, 1500, 1400, false), 1500, 1400, "image/jpeg", "as JPEG to save space"},
		{"transparent PNG of 3 MB", noisePNG(t, 900, 900, true), 900, 900, "image/jpeg", "transparent parts on white"},
		{"large JPEG", grayJPEG(t, 9600, 7734), 2000, 1611, "image/jpeg", "JPEG image, 9600×7734 pixels; shown at 2000×1611"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if raceDetector && tt.name == "large JPEG" {
				t.Skip("takes 15 s under the race detector")
			}
			got, err := Image(tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			mustDecode(t, got)
			if got.Width != tt.w || got.Height != tt.h || got.MIME != tt.mime || !strings.Contains(got.Note, tt.note) {
				t.Errorf("got %d×%d, %s, %q; want %d×%d, %s, %q", got.Width, got.Height, got.MIME, got.Note, tt.w, tt.h,
					tt.mime, tt.note)
			}
		})
	}
}
