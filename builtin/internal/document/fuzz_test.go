package document

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"testing"
)

// FuzzImage: whatever goes in, only valid pictures within the limits come out.
func FuzzImage(f *testing.F) {
	img := corners(16, 8)
	f.Add(encodePNG(f, img))
	f.Add(encodeJPEG(f, img))
	f.Add(withEXIF(encodeJPEG(f, img), exif(turnedLeft, binary.LittleEndian)))
	f.Add(withChunk(encodePNG(f, img), "eXIf", exif(flipped, binary.BigEndian)))
	f.Add(encodeGIF(f, 2, img.Bounds().Max))
	f.Add(fromBase64(f, webpLossless))
	f.Add(animate(fromBase64(f, webpLossy), 1, 1))
	f.Add([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x28\x00\x00\x00"))
	f.Add([]byte("II*\x00\x08\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if form := formatOf(raw); form != nil {
			// Large images are slow, not interesting.
			if cfg, err := form.config(bytes.NewReader(raw)); err == nil && cfg.Width*cfg.Height > 1<<20 {
				t.Skip()
			}
		}
		p, err := Image(raw)
		if err == nil {
			mustDecode(t, p)
		}
		Detect(raw, "a.png")
	})
}

// FuzzOrientation: metadata never keep an image from being shown.
func FuzzOrientation(f *testing.F) {
	f.Add(exif(turnedLeft, binary.LittleEndian))
	f.Add(exif(flipped, binary.BigEndian))
	img := corners(2, 2)
	asPNG, asJPEG := encodePNG(f, img), encodeJPEG(f, img)
	f.Fuzz(func(t *testing.T, meta []byte) {
		if len(meta) > 60_000 {
			t.Skip("more than a segment of a JPEG holds")
		}
		for _, raw := range [][]byte{withEXIF(asJPEG, meta), withChunk(asPNG, "eXIf", meta)} {
			if _, err := Image(raw); err != nil {
				t.Error(err)
			}
		}
		orientationOf(meta, tiffFormat)
		orientationOf(append([]byte("RIFF\x00\x00\x00\x00WEBP"), meta...), webpFormat)
	})
}

// FuzzParseNotebook: what can be parsed can be shown, within the limits.
func FuzzParseNotebook(f *testing.F) {
	f.Add([]byte(jupyter))
	f.Add([]byte(withOutput(`{"output_type":"error","ename":"E","traceback":[]}`)))
	f.Add([]byte(`{"cells":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		Detect(raw, "a.ipynb")
		n, err := ParseNotebook(raw)
		if err != nil {
			return
		}
		if !json.Valid(bytes.TrimPrefix(raw, utf8BOM)) {
			t.Error("took what is no JSON")
		}
		r := n.Render(RenderOptions{MaxBytes: 1000})
		if len(n.Cells) > 0 && r.Shown == 0 {
			t.Error("shows nothing")
		}
	})
}

// FuzzEditNotebook: bytes outside of the cell that is changed stay.
func FuzzEditNotebook(f *testing.F) {
	for _, raw := range forms(small) {
		f.Add([]byte(raw), "intro", "code", "a\nb", uint8(0))
		f.Add([]byte(raw), "code", "raw", "", uint8(1))
		f.Add([]byte(raw), "cell-1", "markdown", "\u2028", uint8(2))
	}
	f.Add([]byte(`{"cells":[{"id":"code","source":[]}]}`), "", "raw", "\xc0\xc2", uint8(1)) // each byte is a character of its own then
	modes := []EditMode{ReplaceCell, InsertCell, DeleteCell}
	f.Fuzz(func(t *testing.T, raw []byte, id, kind, source string, mode uint8) {
		e := NotebookEdit{Mode: modes[int(mode)%len(modes)], CellID: id, CellType: kind, Source: source}
		before := bytes.Clone(raw)
		out, res, err := EditNotebook(raw, e)
		if !bytes.Equal(raw, before) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		old, err := ParseNotebook(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkEdit(old, raw, out, e, res); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func FuzzParsePages(f *testing.F) {
	for _, s := range []string{"", "1", "1-5", "7-", "9-1", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		from, to, err := ParsePages(s)
		if err == nil && (from < 1 || to < from || to-from >= MaxPages) {
			t.Errorf("ParsePages(%q) = %d, %d", s, from, to)
		}
	})
}
