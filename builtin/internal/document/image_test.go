package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// mustDecode checks that a picture is what it says, within the limits.
func mustDecode(tb testing.TB, p Picture) image.Image {
	tb.Helper()
	img, name, err := image.Decode(bytes.NewReader(p.Data))
	if err != nil {
		tb.Fatalf("the picture is not valid: %v", err)
	}
	if size := img.Bounds().Size(); size != image.Pt(p.Width, p.Height) || max(size.X, size.Y) > MaxSide {
		tb.Errorf("the picture has %v pixels, and is said to have %d×%d", size, p.Width, p.Height)
	}
	if p.MIME != "image/"+name {
		tb.Errorf("the picture is %s, and is said to be %s", name, p.MIME)
	}
	if !fits(p.Data) {
		tb.Errorf("the picture has %d bytes", len(p.Data))
	}
	return img
}

// corners has a red, a green, a blue and a white quarter: top left, top right,
// bottom left, bottom right.
func corners(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := [2][2]color.RGBA{{red, green}, {blue, white}}[2*y/h][2*x/w]
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

var (
	red   = color.RGBA{255, 0, 0, 255}
	green = color.RGBA{0, 255, 0, 255}
	blue  = color.RGBA{0, 0, 255, 255}
	white = color.RGBA{255, 255, 255, 255}
)

// nearest names the color of the four that c is like.
func nearest(c color.Color) string {
	r, g, b, _ := c.RGBA()
	bit := func(v uint32) int { return int(v >> 15) }
	return map[[3]int]string{{1, 0, 0}: "red", {0, 1, 0}: "green", {0, 0, 1}: "blue",
		{1, 1, 1}: "white"}[[3]int{bit(r), bit(g), bit(b)}]
}

// atCorners names the colors of the quarters, in the order of corners.
func atCorners(img image.Image) string {
	b := img.Bounds()
	x0, y0, x1, y1 := b.Min.X+b.Dx()/4, b.Min.Y+b.Dy()/4, b.Min.X+b.Dx()*3/4, b.Min.Y+b.Dy()*3/4
	return nearest(img.At(x0, y0)) + " " + nearest(img.At(x1, y0)) + " " + nearest(img.At(x0, y1)) + " " +
		nearest(img.At(x1, y1))
}

const uprightCorners = "red green blue white"

func encodePNG(tb testing.TB, img image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(&b, img); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func encodeJPEG(tb testing.TB, img image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func encodeGIF(tb testing.TB, frames int, size image.Point) []byte {
	tb.Helper()
	g := &gif.GIF{}
	for range frames {
		p := image.NewPaletted(image.Rectangle{Max: size}, color.Palette{red, green, blue, white})
		src := corners(size.X, size.Y)
		for y := range size.Y {
			for x := range size.X {
				p.Set(x, y, src.At(x, y))
			}
		}
		g.Image, g.Delay = append(g.Image, p), append(g.Delay, 10)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func encodeWith(tb testing.TB, encode func(*bytes.Buffer) error) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// webpLossless and webpLossy are images of a single pixel.
const (
	webpLossless = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
	webpLossy    = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
)

func fromBase64(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// animate makes an animation of one frame, w×h pixels, of a WebP file.
func animate(still []byte, w, h byte) []byte {
	chunkOf := func(kind string, body []byte) []byte {
		out := append(binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(body))), body...)
		return append(out, make([]byte, len(body)%2)...)
	}
	canvas := chunkOf("VP8X", []byte{animationFlag, 0, 0, 0, w - 1, 0, 0, h - 1, 0, 0})
	frame := append([]byte{0, 0, 0, 0, 0, 0, w - 1, 0, 0, h - 1, 0, 0, 9, 0, 0, 0}, still[webpHeader:]...)
	body := append([]byte("WEBP"), canvas...)
	body = append(body, chunkOf("ANIM", make([]byte, 6))...)
	return chunkOf("RIFF", append(body, chunkOf("ANMF", frame)...))
}

func TestImageFormats(t *testing.T) {
	img := corners(40, 20)
	transparent := image.NewNRGBA(image.Rect(0, 0, 9, 9))
	deep := image.NewRGBA64(image.Rect(0, 0, 9, 9))
	tests := []struct {
		name      string
		raw       []byte
		mime      string
		untouched bool
		note      string
	}{
		{"PNG", encodePNG(t, img), "image/png", true, "PNG image, 40×20 pixels"},
		{"transparent PNG", encodePNG(t, transparent), "image/png", true, "PNG image, 9×9 pixels"},
		{"PNG of 16 bits", encodePNG(t, deep), "image/png", true, "PNG image, 9×9 pixels"},
		{"gray PNG", encodePNG(t, image.NewGray(image.Rect(0, 0, 3, 3))), "image/png", true, "PNG image, 3×3 pixels"},
		{"JPEG", encodeJPEG(t, img), "image/jpeg", true, "JPEG image, 40×20 pixels"},
		{"gray JPEG", encodeJPEG(t, image.NewGray(image.Rect(0, 0, 3, 3))), "image/jpeg", true, "JPEG image, 3×3 pixels"},
		{"GIF", encodeGIF(t, 1, image.Pt(40, 20)), "image/gif", true, "GIF image, 40×20 pixels"},
		{"animated GIF", encodeGIF(t, 3, image.Pt(40, 20)), "image/png", false, "GIF image, 40×20 pixels; first frame of an animation"},
		{"BMP", encodeWith(t, func(b *bytes.Buffer) error { return bmp.Encode(b, img) }), "image/png", false, "BMP image, 40×20 pixels"},
		{"TIFF", encodeWith(t, func(b *bytes.Buffer) error { return tiff.Encode(b, img, nil) }), "image/png", false, "TIFF image, 40×20 pixels"},
		{"lossless WebP", fromBase64(t, webpLossless), "image/webp", true, "WebP image, 1×1 pixels"},
		{"lossy WebP", fromBase64(t, webpLossy), "image/webp", true, "WebP image, 1×1 pixels"},
		{"animated WebP", animate(fromBase64(t, webpLossless), 1, 1), "image/png", false, "WebP image, 1×1 pixels; first frame of an animation"},
		{"animated lossy WebP", animate(fromBase64(t, webpLossy), 1, 1), "image/jpeg", false, "WebP image, 1×1 pixels; first frame of an animation"},
		{"animated PNG", withChunk(encodePNG(t, img), "acTL", []byte{0, 0, 0, 2, 0, 0, 0, 0}), "image/png", false, "PNG image, 40×20 pixels; first frame of an animation"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Image(tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			decoded := mustDecode(t, got)
			if got.MIME != tt.mime || got.Note != tt.note || bytes.Equal(got.Data, tt.raw) != tt.untouched {
				t.Errorf("got %s, %q, untouched %t; want %s, %q, %t", got.MIME, got.Note, bytes.Equal(got.Data, tt.raw),
					tt.mime, tt.note, tt.untouched)
			}
			if got.Width == 40 && atCorners(decoded) != uprightCorners {
				t.Errorf("got corners %s", atCorners(decoded))
			}
			if kind, _ := Detect(tt.raw, "x"); kind != ImageFile {
				t.Errorf("Detect: got %v", kind)
			}
		})
	}
}

// withChunk puts a chunk after the header of a PNG.
func withChunk(raw []byte, kind string, body []byte) []byte {
	const behind = 8 + 8 + 13 + 4
	c := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	c = append(append(c, kind...), body...)
	c = binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
	return append(append(bytes.Clone(raw[:behind]), c...), raw[behind:]...)
}

// exif is metadata with nothing but an orientation.
func exif(o orientation, order binary.AppendByteOrder) []byte {
	mark := "II"
	if order.String() == "BigEndian" {
		mark = "MM"
	}
	b := order.AppendUint16([]byte(mark), 42)
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 1)      // entries
	b = order.AppendUint16(b, 0x0112) // Orientation
	b = order.AppendUint16(b, 3)      // SHORT
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(b, uint16(o))
	return append(b, make([]byte, 6)...)
}

// withEXIF puts metadata after the mark of a JPEG.
func withEXIF(raw, meta []byte) []byte {
	meta = append([]byte("Exif\x00\x00"), meta...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(meta)+2))
	return append(append(bytes.Clone(raw[:2]), append(segment, meta...)...), raw[2:]...)
}

// TestOrientation holds every orientation to the words of the EXIF standard:
// where the first row and the first column of the stored image are to be seen.
func TestOrientation(t *testing.T) {
	tests := []struct {
		o    orientation
		want string // of the stored "red green blue white"
	}{
		{upright, "red green blue white"},     // row 0 is the top, column 0 the left
		{mirrored, "green red white blue"},    // top, right
		{upsideDown, "white blue green red"},  // bottom, right
		{flipped, "blue white red green"},     // bottom, left
		{transposed, "red blue green white"},  // left, top
		{turnedLeft, "blue red white green"},  // right, top
		{transversed, "white green blue red"}, // right, bottom
		{turnedRight, "green white red blue"}, // left, bottom
	}
	stored := corners(80, 40)
	for _, tt := range tests {
		for name, raw := range map[string][]byte{
			"JPEG, little endian": withEXIF(encodeJPEG(t, stored), exif(tt.o, binary.LittleEndian)),
			"JPEG, big endian":    withEXIF(encodeJPEG(t, stored), exif(tt.o, binary.BigEndian)),
			"PNG":                 withChunk(encodePNG(t, stored), "eXIf", exif(tt.o, binary.BigEndian)),
		} {
			got, err := Image(raw)
			if err != nil {
				t.Fatal(err)
			}
			size := image.Pt(80, 40)
			if tt.o >= transposed {
				size = image.Pt(40, 80)
			}
			if at := atCorners(mustDecode(t, got)); at != tt.want || got.FromWidth != size.X ||
				got.FromHeight != size.Y {
				t.Errorf("%s, orientation %d: got %s, from %d×%d; want %s, %v", name, tt.o, at, got.FromWidth,
					got.FromHeight, tt.want, size)
			}
			if bytes.Equal(got.Data, raw) != (tt.o == upright) {
				t.Errorf("%s, orientation %d: untouched is %t", name, tt.o, bytes.Equal(got.Data, raw))
			}
		}
	}
	for _, o := range []orientation{0, 9, 200} {
		if got := orientationOf(withEXIF(encodeJPEG(t, stored), exif(o, binary.LittleEndian)),
			jpegFormat); got != upright {
			t.Errorf("orientation %d: got %d", o, got)
		}
	}
}

// TestOrientationPlaces looks where each format keeps its metadata, and into metadata that are damaged.
func TestOrientationPlaces(t *testing.T) {
	meta := exif(turnedLeft, binary.BigEndian)
	changed := func(at int, b ...byte) []byte { c := bytes.Clone(meta); copy(c[at:], b); return c }
	webp := func(flags byte, kind string) []byte {
		raw := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"), flags, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		return append(binary.LittleEndian.AppendUint32(append(raw, kind...), uint32(len(meta))), meta...)
	}
	jpeg := encodeJPEG(t, corners(2, 2))
	tests := []struct {
		name string
		raw  []byte
		f    *format
		want orientation
	}{
		{"WebP", webp(1<<3, "EXIF"), webpFormat, turnedLeft},
		{"WebP that announces none", webp(0, "EXIF"), webpFormat, upright},
		{"WebP without", webp(1<<3, "XMP "), webpFormat, upright},
		{"WebP cut short", webp(1<<3, "EXIF")[:40], webpFormat, upright},
		{"JPEG whose first metadata are empty", withEXIF(append(withEXIF(jpeg[:2:2], nil), withEXIF(jpeg, meta)[2:]...), nil), jpegFormat, upright},
		{"JPEG behind a comment", append([]byte("\xff\xd8\xff\xfe\x00\x04hi"), withEXIF(jpeg, meta)[2:]...), jpegFormat, turnedLeft},
		{"JPEG behind bytes that fill", append([]byte("\xff\xd8\xff\xff"), withEXIF(jpeg, meta)[2:]...), jpegFormat, turnedLeft},
		{"JPEG cut short", withEXIF(jpeg, meta)[:20], jpegFormat, upright},
		{"JPEG with a segment of no size", append([]byte("\xff\xd8\xff\xfe\x00\x00"), withEXIF(jpeg, meta)[2:]...), jpegFormat, upright},
		{"PNG, last", append(encodePNG(t, corners(2, 2)), withChunk(make([]byte, 33), "eXIf", meta)[33:]...), pngFormat, turnedLeft},
		{"TIFF", meta, tiffFormat, turnedLeft},
		{"another mark", changed(2, 0, 43), tiffFormat, upright},
		{"a directory behind the end", changed(4, 0xff, 0xff, 0xff, 0xff), tiffFormat, upright},
		{"no entries", changed(8, 0, 0), tiffFormat, upright},
		{"more entries than there are", changed(8, 0xff, 0xff), tiffFormat, turnedLeft},
		{"another type", changed(12, 0, 4), tiffFormat, upright},
		{"two values", changed(17, 2), tiffFormat, upright},
		{"nothing", nil, tiffFormat, upright},
		{"GIF", meta, gifFormat, upright},
	}
	for _, tt := range tests {
		if got := orientationOf(tt.raw, tt.f); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// noise is an image that hardly compresses.
func noise(w, h int, alpha bool) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	random := rand.NewChaCha8([32]byte{})
	random.Read(img.Pix)
	for i := 3; i < len(img.Pix) && !alpha; i += 4 {
		img.Pix[i] = 255
	}
	return img
}

// noisePNG is a PNG of noise, without even the attempt to compress it.
func noisePNG(tb testing.TB, w, h int, alpha bool) []byte {
	tb.Helper()
	enc := png.Encoder{CompressionLevel: png.NoCompression}
	return encodeWith(tb, func(b *bytes.Buffer) error { return enc.Encode(b, noise(w, h, alpha)) })
}
