package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/image/bmp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/samples"
)

// encoded returns an image of a size as base64.
func encoded(t *testing.T, format string, width, height int) string {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})
	var b bytes.Buffer
	var err error
	switch format {
	case "noise":
		full := image.NewRGBA(img.Bounds())
		r := rand.New(rand.NewPCG(1, 2))
		for i := range full.Pix {
			if full.Pix[i] = byte(r.Uint32()); i%4 == 3 {
				full.Pix[i] = 0xff // opaque
			}
		}
		err = (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, full)
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	case "bmp":
		err = bmp.Encode(&b, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// claiming returns a PNG image of 8×8 pixels as base64, whose header claims more.
func claiming(t *testing.T, width, height uint32) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(encoded(t, "png", 8, 8))
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(raw[16:], width)
	binary.BigEndian.PutUint32(raw[20:], height)
	binary.BigEndian.PutUint32(raw[29:], crc32.ChecksumIEEE(raw[12:29])) // of the chunk IHDR
	return base64.StdEncoding.EncodeToString(raw)
}

// TestAttached has a server send content as programs do. In a result, a prompt and a resource, what is declared as an image
// is an image that an API accepts, or text.
func TestAttached(t *testing.T) {
	small := encoded(t, "png", 8, 8)
	raw, _ := base64.StdEncoding.DecodeString(small)
	text := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := []struct {
		name, declared, data string
		mime                 string // of the image; "": there is none
		want                 string // in the text; "": there is none
	}{
		{"good", "image/png", small, "image/png", ""},
		{"JPEG named PNG", "image/png", encoded(t, "jpeg", 8, 8), "image/jpeg", ""},
		{"PNG named JPEG", "image/jpeg", small, "image/png", ""},
		{"image/jpg", "image/jpg", encoded(t, "jpeg", 8, 8), "image/jpeg", ""},
		{"upper case", "IMAGE/PNG", small, "image/png", ""},
		{"with a parameter", "image/png; charset=binary", small, "image/png", ""},
		{"no type", "", small, "image/png", ""},
		{"another type", "application/octet-stream", encoded(t, "gif", 8, 8), "image/gif", ""},
		{"data URI", "image/png", "data:image/png;base64," + small, "image/png", ""},
		{"data URI, other type", "image/webp", " data:;base64," + small, "image/png", ""},
		{"lines", "image/png", small[:20] + "\r\n" + small[20:] + "\n", "image/png", ""},
		{"URL alphabet", "image/png", base64.URLEncoding.EncodeToString(raw), "image/png", ""},
		{"no padding", "image/png", base64.RawStdEncoding.EncodeToString(raw), "image/png", ""},
		{"BMP", "image/bmp", encoded(t, "bmp", 8, 8), "image/png", "BMP image"},
		{"large", "image/png", encoded(t, "png", 2400, 240), "image/png", "shown at 2000×200"},
		{"long", "image/png", encoded(t, "png", 9, 9000), "image/png", "shown at 2×2000"},
		{"heavy", "image/png", encoded(t, "noise", 1050, 1050), "image/jpeg", "as JPEG to save space"},
		{"too many pixels", "image/png", claiming(t, 12_000, 12_000), "", "more than the 120 million"},
		{"truncated", "image/png", small[:40], "", "cut short or damaged"},
		{"empty", "image/png", "", "", "it is empty"},
		{"only a type", "image/png", "data:image/png;base64,", "", "it is empty"},
		{"no base64", "image/png", "!!", "", "not valid base64"},
		{"HTML", "image/png", text("<html>error</html>"), "", "HTML text:]\n<html>error"},
		{"SVG", "image/svg+xml", text(`<svg xmlns="http://www.w3.org/2000/svg"></svg>`), "", "SVG text:]\n<svg"},
		{"JSON", "image/jpeg", text(`{"error":"busy"}`), "", `{"error":"busy"}`},
		{"HEIC", "image/heic", text("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"), "", "HEIC image, 24 bytes, could not be kept"},
		{"PDF", "image/png", text("%PDF-1.7\n\x00"), "", "PDF document"},
	}
	s, env := &server{Entry: &Entry{Name: "s"}}, (&bench{t: t}).env()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check := func(what string, images []builtin.Image, text string) {
				t.Helper()
				if len(images) > 1 || (len(images) == 1) != (tt.mime != "") {
					t.Fatalf("%s: %d images, text %.200q", what, len(images), text)
				}
				for _, i := range images {
					if i.MIME != tt.mime {
						t.Errorf("%s: the type is %s", what, i.MIME)
					}
					acceptable(t, i)
				}
				if tt.want == "" && text != "" && text != "(no content)" || !strings.Contains(text, tt.want) {
					t.Errorf("%s: the text is %.200q", what, text)
				}
			}
			block := map[string]any{"type": "image", "data": tt.data, "mimeType": tt.declared}
			resource := map[string]any{"uri": "file:///x", "blob": tt.data, "mimeType": tt.declared}
			embedded := map[string]any{"type": "resource", "resource": resource}
			for _, content := range []map[string]any{block, embedded} {
				r, err := s.result(t.Context(), env, marshal(map[string]any{"content": []any{content}}))
				if err != nil {
					t.Fatal(err)
				}
				check("result", r.Images, strings.TrimPrefix(r.Text, "(no content)"))
				if tt.name == "heavy" && samples.Step(1) > 1 {
					return // each conversion takes a while
				}
				r, err = s.prompt(t.Context(), env,
					marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": content}}}))
				if err != nil {
					t.Fatal(err)
				}
				checkPassed(t, tt.declared, marshal(r.Passed.(*mcp.GetPromptResult).Messages[0].Content))
			}
			r, err := s.contents(t.Context(), env, marshal(map[string]any{"contents": []any{resource}}))
			if err != nil {
				t.Fatal(err)
			}
			check("resource", r.Images, r.Text)
			checkPassed(t, tt.declared, marshal(r.Passed.([]mcp.ResourceContents)[0]))
		})
	}
}

// acceptable checks an image as an API does.
func acceptable(t *testing.T, i builtin.Image) {
	t.Helper()
	cfg, format, err := image.DecodeConfig(bytes.NewReader(i.Data))
	if err != nil || "image/"+format != i.MIME || cfg.Width > 2000 || cfg.Height > 2000 || len(i.Base64()) > 5_000_000 {
		t.Errorf("%s, in truth %s, of %d×%d pixels and %d bytes: %v", i.MIME, format, cfg.Width, cfg.Height,
			len(i.Base64()), err)
	}
}

// checkPassed checks what a client gets: a content block, or a resource.
func checkPassed(t *testing.T, declared string, raw json.RawMessage) {
	t.Helper()
	var got struct {
		Type, Data, Blob, MIMEType string
		Resource                   struct{ Blob, MIMEType string }
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	data, mime := got.Data+got.Blob+got.Resource.Blob, got.MIMEType+got.Resource.MIMEType
	if got.Type == "text" || !strings.HasPrefix(strings.ToLower(mime), "image/") {
		return
	}
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Errorf("declared as %q, passed as %.100s: %v", declared, raw, err)
	}
	acceptable(t, builtin.Image{Data: content, MIME: mime})
}

// TestManyImages: of very many images the first are shown, and the text says that there are others. Small ones that
// claim very many pixels are limited together.
func TestManyImages(t *testing.T) {
	s, env := &server{Entry: &Entry{Name: "s"}}, (&bench{t: t}).env()
	for _, tt := range []struct {
		data                  string
		sent, shown, excluded int
		text                  string // for each that is excluded
	}{
		{encoded(t, "png", 8, 8), 120, 20, 100, "a result has at most 20 images"},
		{claiming(t, 7500, 7500), 3, 0, 1, "too many pixels"},
		{encoded(t, "noise", 900, 900), 5, 4, 1, "there are too many"},
	} {
		var parts []any
		for range tt.sent {
			parts = append(parts, map[string]any{"type": "image", "data": tt.data, "mimeType": "image/png"})
		}
		r, err := s.result(t.Context(), env, marshal(map[string]any{"content": parts}))
		if err != nil || len(r.Images) != tt.shown || strings.Count(r.Text, tt.text) != tt.excluded {
			t.Errorf("%d of %d images, text %.300q: %v", len(r.Images), tt.sent, r.Text, err)
		}
	}
}
