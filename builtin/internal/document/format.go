package document

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// A format is a way to store images.
type format struct {
	words  string // "PNG image"
	mime   string
	passed bool // models take it as it is
	photo  bool // compressed with losses already: further losses are not noticed

	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error) // decodes the first frame

	// scratch returns how many bytes per pixel decoding takes in addition to the image. Nil: none.
	scratch func(raw []byte) int64
	// animated reports whether there is a second frame. Nil: the format has no animations.
	animated func(raw []byte) bool
	// exif returns the metadata that may hold an orientation. Nil: the format has none.
	exif func(raw []byte) []byte
}

// The formats. They are never modified.

var (
	pngFormat = &format{words: "PNG image", mime: "image/png", passed: true,
		config: png.DecodeConfig, decode: png.Decode, animated: animatedPNG, exif: exifInPNG}
	jpegFormat = &format{words: "JPEG image", mime: "image/jpeg", passed: true, photo: true,
		config: jpeg.DecodeConfig, decode: jpeg.Decode, scratch: jpegScratch, exif: exifInJPEG}
	gifFormat = &format{words: "GIF image", mime: "image/gif", passed: true,
		config: gif.DecodeConfig, decode: gif.Decode, animated: animatedGIF}
	webpFormat = &format{words: "WebP image", mime: "image/webp", passed: true, photo: true,
		config: webp.DecodeConfig, decode: decodeWebP, scratch: webpScratch, animated: animatedWebP, exif: exifInWebP}
	bmpFormat = &format{words: "BMP image", mime: "image/bmp",
		config: bmp.DecodeConfig, decode: bmp.Decode}
	tiffFormat = &format{words: "TIFF image", mime: "image/tiff",
		config: tiff.DecodeConfig, decode: tiff.Decode, exif: exifInTIFF}
)

// formatOf returns the format of an image by the signature at its start, or nil.
func formatOf(head []byte) *format {
	has := func(mark string) bool { return bytes.HasPrefix(head, []byte(mark)) }
	switch {
	case has("\x89PNG"): // the bytes after it show whether line endings were converted
		return pngFormat
	case has("\xff\xd8\xff"):
		return jpegFormat
	case has("GIF87a"), has("GIF89a"):
		return gifFormat
	case has("RIFF") && len(head) >= 12 && string(head[8:12]) == "WEBP":
		return webpFormat
	case has("II*\x00"), has("MM\x00*"):
		return tiffFormat
	case has("BM") && bmpHeader(head):
		return bmpFormat
	}
	return nil
}

// bmpHeader reports whether the four reserved bytes are zero and the second header has a valid size: "BM" alone is
// not enough.
func bmpHeader(head []byte) bool {
	if len(head) < 18 || !bytes.Equal(head[6:10], make([]byte, 4)) || !bytes.Equal(head[15:18], make([]byte, 3)) {
		return false
	}
	switch head[14] {
	case 12, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

// bytesPerPixel returns how many bytes a pixel of the decoded image takes.
func bytesPerPixel(m color.Model) int64 {
	if _, ok := m.(color.Palette); ok {
		return 1
	}
	switch m {
	case color.GrayModel, color.AlphaModel:
		return 1
	case color.Gray16Model, color.Alpha16Model:
		return 2
	case color.YCbCrModel:
		return 3
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	return 4
}

// jpegScratch returns the size of the coefficients that decoding a progressive JPEG keeps for all pixels until the
// last scan: four bytes for each of up to four components.
func jpegScratch(raw []byte) int64 {
	const progressive = 0xc2
	for i := 2; i+4 <= len(raw); {
		if raw[i] != 0xff {
			i++
			continue
		}
		switch m := raw[i+1]; {
		case m == progressive:
			components := int64(4)
			if i+9 < len(raw) {
				components = min(components, int64(raw[i+9]))
			}
			return 4 * components
		case m == 0xff:
			i++
		case m == 0xda, m >= 0xc0 && m <= 0xc1: // first scan, or sequential
			return 0
		case m == 0x00 || m == 0x01 || m >= 0xd0 && m <= 0xd9: // no length follows
			i += 2
		default:
			i += 2 + int(raw[i+2])<<8 + int(raw[i+3])
		}
	}
	return 0
}

// webpScratch returns the memory for the transforms of a lossless image. The alpha channel takes it too, because WebP
// stores it as a lossless image.
func webpScratch([]byte) int64 { return 8 }
