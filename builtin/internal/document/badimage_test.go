package document

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"strings"
	"testing"
)

// pngHeader is a PNG that says how large it is, and no more.
func pngHeader(w, h uint32) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	raw := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 25)...)
	raw = withChunk(raw, "IHDR", append(header, 8, 6, 0, 0, 0))
	return append(raw[:8:8], raw[33:]...)
}

// jpegHeader is a JPEG with nothing but the starts of a frame and a scan.
func jpegHeader(kind byte, w, h uint16) []byte {
	b := []byte{0xff, 0xd8, 0xff, kind, 0, 17, 8}
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, h), w)
	b = append(b, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0)
	return append(b, 0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0)
}

func TestImageErrors(t *testing.T) {
	whole := encodeJPEG(t, corners(64, 64))
	wholePNG := encodePNG(t, corners(64, 64))
	flipped := bytes.Clone(wholePNG)
	flipped[len(flipped)-20] ^= 0xff
	huge := animate(fromBase64(t, webpLossless), 1, 1)
	frame := bytes.Index(huge, []byte("ANMF")) + chunkHeader
	copy(huge[frame+6:], []byte{0xff, 0x3f, 0})
	tests := []struct {
		name string
		raw  []byte
		want string
	}{
		{"bomb", pngHeader(30000, 30000), "the PNG image has 30000×30000 pixels, more than the 120 million"},
		{"bomb of bytes", pngHeader(11_000, 10_909), "cut short"}, // 479,996,000 bytes: only just allowed, and then nothing follows
		{"bomb of 2³¹", pngHeader(1<<31-1, 1<<31-1), "PNG image"},
		{"no pixels", pngHeader(0, 5), "PNG image"},
		{"progressive bomb", jpegHeader(0xc2, 9600, 7734), "takes 1113 MB, more than the limit of 480 MB"},
		{"PNG header and noise", append(bytes.Clone(wholePNG[:33]), bytes.Repeat([]byte("noise"), 99)...), "begins as a PNG image but is cut short or damaged"},
		{"PNG with a flipped bit", flipped, "begins as a PNG image but cannot be decoded"},
		{"PNG cut short", wholePNG[:len(wholePNG)-30], "begins as a PNG image but cannot be decoded"},
		{"JPEG cut short", whole[:len(whole)/2], "begins as a JPEG image but is cut short"},
		{"PNG after a conversion of line endings", bytes.ReplaceAll(wholePNG, []byte("\r\n"), []byte("\n")), "begins as a PNG image but cannot be decoded"},
		{"mark only", []byte("\x89PNG\r\n\x1a\n"), "begins as a PNG image but is cut short"},
		{"HTML", []byte("<!DOCTYPE html><html><body>404 not found</body></html>"), "the content is HTML text, not an image: read it as text"},
		{"SVG", []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`), "the content is SVG text, not an image: read it as text"},
		{"JSON", []byte(`{"error": "no such key"}`), "the content is JSON text"},
		{"empty", nil, "the file is empty"},
		{"ELF", append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 60)...), "the content is ELF program, not an image in a format"},
		{"HEIC", []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00heicmif1"), "the content is HEIC image, not an image in a format"},
		{"PDF", makePDF("", textPage("a")), "the content is PDF document"},
		{"WebP frame beyond its canvas", huge, "the first frame is larger than the canvas"},
		{"WebP without a frame", huge[:frame-chunkHeader], "no whole first frame"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Image(tt.raw)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v; want an error with %q", got.Note, err, tt.want)
			}
		})
	}
}

// TestImageCMYK does not pass on what many decoders invert.
func TestImageCMYK(t *testing.T) {
	img := image.NewCMYK(image.Rect(0, 0, 4, 4))
	s := source{format: jpegFormat, img: img, turn: upright}
	if s.asItIs(nil) {
		t.Error("a CMYK image is passed on")
	}
	if bytesPerPixel(color.CMYKModel) != 4 {
		t.Error("a CMYK pixel does not take four bytes")
	}
}

func TestDetect(t *testing.T) {
	tests := []struct {
		name, head string
		kind       Kind
		words      string
	}{
		{"a.png", string(pngHeader(1, 1)), ImageFile, "PNG image"},
		{"a.txt", string(pngHeader(1, 1)), ImageFile, "PNG image"},
		{"a.jpg", "\xff\xd8\xff\xe0", ImageFile, "JPEG image"},
		{"a.png", "\x89PNG", ImageFile, "PNG image"},
		{"a", "\x00\xff\x00\xff", OtherFile, "binary data"},
		{"a.png", "<html><body>no</body></html>", TextFile, "HTML text"},
		{"a.gif", "GIF89a is a format of images.\n", TextFile, "text"},
		{"a.bmp", "BM is short for bitmap, and this is a text about it.", TextFile, "text"},
		{"a.webp", "RIFF and WEBP", TextFile, "text"},
		{"a.pdf", "%PDF-1.7\n", PDFFile, "PDF document"},
		{"a", "\n%PDF-1.7\n", PDFFile, "PDF document"},
		{"a.txt", "see %PDF-1.7 for more", TextFile, "text"},
		{"a.txt", "%PDF-X", TextFile, "text"},
		{"a.ipynb", `{"cells": [`, NotebookFile, "Jupyter notebook"},
		{"a.ipynb", "\ufeff\n{\n \"metadata\": {\"cells\": [1, \"}\"]},\r\n \"cells\": []}", NotebookFile, "Jupyter notebook"},
		{"a.IPYNB", `{"cells":[]}`, NotebookFile, "Jupyter notebook"},
		{"a.json", `{"cells":[]}`, TextFile, "JSON text"},
		{"a.ipynb", "\xff\xfe{\x00\"\x00c\x00e\x00l\x00l\x00s\x00\"\x00:\x00[\x00]\x00}\x00", NotebookFile, "Jupyter notebook"},
		{"a.ipynb", `{"metadata":{"cells":[]}}`, TextFile, "JSON text"},
		{"a.ipynb", `["cells"]`, TextFile, "JSON text"},
		{"a.ipynb", `{"cells`, TextFile, "text"},
		{"a.ipynb", "", TextFile, "text"},
		{"a.svg", `<svg xmlns="http://www.w3.org/2000/svg"/>`, TextFile, "SVG text"},
		{"a.exe", "just text", TextFile, "text"},
		{"a", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00", OtherFile, "ELF program"},
		{"a.txt", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", OtherFile, "gzip archive"},
		{"a.txt", "PK\x03\x04\x14\x00\x00\x00\x08\x00", OtherFile, "zip archive"},
		{"a", "SQLite format 3\x00\x10\x00", OtherFile, "SQLite database"},
		{"a", "\x00asm\x01\x00\x00\x00", OtherFile, "WebAssembly module"},
		{"a", "\x00\x01\x02\x03\xff\xfe", OtherFile, "binary data"},
	}
	for _, tt := range tests {
		kind, words := Detect([]byte(tt.head), tt.name)
		if kind != tt.kind || words != tt.words {
			t.Errorf("Detect(%.30q, %s) = %d, %q; want %d, %q", tt.head, tt.name, kind, words, tt.kind, tt.words)
		}
	}
}
