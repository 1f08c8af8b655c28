package document

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"runtime/debug"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/memory"
)

// Limits of pictures. Models at best scale down a larger picture, and at worst refuse the whole conversation from
// then on.
const (
	// MaxSide is the longer side of a picture, in pixels: the smallest limit of a widely used API, which applies when a
	// request has many images.
	MaxSide = 2000

	// MaxBase64 is the size of a picture as it is sent, in bytes of base64: a quarter below the 5 MB of the same API,
	// which leaves room for the rest of the message.
	MaxBase64 = 3_750_000

	// MaxPictures is how large all pictures of one answer may be together, in bytes of base64, so that clients accept
	// the message.
	MaxPictures = 4 * MaxBase64

	// MaxPixels is how many pixels an image may have to be decoded. The largest cameras have 100 million.
	MaxPixels = 120_000_000

	// MaxDecoded is how much memory decoding may take, in bytes, as computed from the header: enough for 120 million
	// pixels of four bytes.
	MaxDecoded = 480_000_000
)

// A Picture is an image that a model accepts: a valid PNG, JPEG, GIF or WebP, upright, within [MaxSide] and
// [MaxBase64].
type Picture struct {
	Data []byte
	MIME string

	Width, Height         int // in pixels
	FromWidth, FromHeight int // of the original, upright

	// Note says, in a few words, what the picture is and what was done to it.
	Note string
}

// Image makes a [Picture] of a PNG, JPEG, GIF, WebP, BMP or TIFF file. A file within the limits is returned
// unchanged, after it was decoded to make sure that it is valid. Of an animation only the first frame is used.
//
// Its errors say what the content really is, what is wrong with it, or which limit it exceeds.
func Image(raw []byte) (Picture, error) {
	f := formatOf(raw)
	if f == nil {
		return Picture{}, notImage(raw)
	}
	cfg, err := f.config(bytes.NewReader(raw))
	if err != nil {
		return Picture{}, damaged(f, err)
	}
	size, err := decodedSize(f, cfg, raw)
	if err != nil {
		return Picture{}, err
	}
	release, err := memory.Take(size)
	if err != nil {
		return Picture{}, fmt.Errorf("the %s of %d×%d pixels is %w", f.words, cfg.Width, cfg.Height, err)
	}
	defer release()
	if size > largeImage {
		defer func() { go debug.FreeOSMemory() }()
	}
	img, err := f.decode(bytes.NewReader(raw))
	if err != nil {
		return Picture{}, damaged(f, err)
	}
	if img.Bounds().Empty() {
		return Picture{}, fmt.Errorf("the %s has no pixels", f.words)
	}
	src := source{format: f, img: img, turn: orientationOf(raw, f), animated: f.animated != nil && f.animated(raw)}
	if src.asItIs(raw) {
		return src.picture(raw, f.mime, img.Bounds().Size(), nil), nil
	}
	return src.resize()
}

// pixelsOf returns how many pixels an image has according to its header, at most one more than [MaxPixels]. It
// returns 0 if raw is not an image.
func pixelsOf(raw []byte) int {
	f := formatOf(raw)
	if f == nil {
		return 0
	}
	cfg, err := f.config(bytes.NewReader(raw))
	if err != nil || cfg.Width <= 0 || cfg.Height <= 0 {
		return 0
	}
	if cfg.Width > MaxPixels/cfg.Height {
		return MaxPixels + 1
	}
	return cfg.Width * cfg.Height
}

// notImage returns an error that says what content without the signature of an image is.
func notImage(raw []byte) error {
	if len(raw) == 0 {
		return errors.New("the file is empty, not an image")
	}
	kind, words := Detect(raw[:min(len(raw), DetectBytes)], "")
	if kind == TextFile {
		return fmt.Errorf("the content is %s, not an image: read it as text", words)
	}
	return fmt.Errorf("the content is %s, not an image in a format that can be shown (PNG, JPEG, GIF, WebP, BMP, TIFF)",
		words)
}

func damaged(f *format, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file begins as a %s but is cut short or damaged: it cannot be shown", f.words)
	}
	return fmt.Errorf("the file begins as a %s but cannot be decoded: %w", f.words, err)
}

// largeImage is the size in bytes from which the memory of a decoded image is returned to the system at once.
// Otherwise the process would keep it for minutes.
const largeImage = 64 << 20

// decodedSize returns how many bytes of memory decoding takes. The error says that it would take too much.
func decodedSize(f *format, cfg image.Config, raw []byte) (int64, error) {
	w, h := int64(cfg.Width), int64(cfg.Height)
	if w <= 0 || h <= 0 {
		return 0, fmt.Errorf("the %s has no pixels (%d×%d)", f.words, w, h)
	}
	if w > MaxPixels/h {
		return 0, fmt.Errorf("the %s has %d×%d pixels, more than the %d million that are decoded; scale it down with a "+
			"program first",
			f.words, w, h, MaxPixels/1_000_000)
	}
	each := bytesPerPixel(cfg.ColorModel)
	if f.scratch != nil {
		each += f.scratch(raw)
	}
	if w*h*each > MaxDecoded {
		return 0, fmt.Errorf("decoding the %s of %d×%d pixels takes %d MB, more than the limit of %d MB; scale it down with "+
			"a program first",
			f.words, w, h, w*h*each/1_000_000, MaxDecoded/1_000_000)
	}
	return w * h * each, nil
}

// A source is a decoded image, with what is known about its file.
type source struct {
	format   *format
	img      image.Image
	turn     orientation
	animated bool
}

// asItIs reports whether the file can be passed on unchanged. CMYK images cannot: many decoders show them inverted.
func (s *source) asItIs(raw []byte) bool {
	size := s.img.Bounds().Size()
	return s.format.passed && !s.animated && s.turn == upright && s.img.ColorModel() != color.CMYKModel &&
		max(size.X, size.Y) <= MaxSide && fits(raw)
}

func fits(data []byte) bool { return base64.StdEncoding.EncodedLen(len(data)) <= MaxBase64 }

// picture returns data as a picture of s. changes say what was done to it besides scaling.
func (s *source) picture(data []byte, mime string, size image.Point, changes []string) Picture {
	from := s.turn.size(s.img.Bounds().Size())
	notes := []string{fmt.Sprintf("%s, %d×%d pixels", s.format.words, from.X, from.Y)}
	if s.animated {
		notes = append(notes, "first frame of an animation")
	}
	if s.turn != upright {
		notes = append(notes, "turned upright as its EXIF data say")
	}
	if size != from {
		notes = append(notes, fmt.Sprintf("shown at %d×%d", size.X, size.Y))
	}
	return Picture{
		Data: data, MIME: mime, Width: size.X, Height: size.Y, FromWidth: from.X, FromHeight: from.Y,
		Note: strings.Join(append(notes, changes...), "; "),
	}
}
