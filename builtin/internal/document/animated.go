package document

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"io"

	"golang.org/x/image/webp"
)

// animatedPNG reports whether a chunk acTL before the first IDAT announces more
// than one frame (PNG specification, third edition, 11.3.6).
func animatedPNG(raw []byte) bool {
	for kind, content := range pngChunks(raw) {
		switch kind {
		case "acTL":
			return len(content) >= 4 && binary.BigEndian.Uint32(content) > 1
		case "IDAT":
			return false
		}
	}
	return false
}

// animatedGIF reports whether a second image follows the first (GIF89a specification). It does not validate the file:
// at unexpected data it returns false.
func animatedGIF(raw []byte) bool {
	const (
		screen, descriptor = 13, 10 // sizes of the logical screen with the mark, and of an image's header
		extension, img     = 0x21, 0x2c
	)
	if len(raw) < screen {
		return false
	}
	images := 0
	for i := screen + colors(raw[10]); i < len(raw); {
		switch raw[i] {
		case extension:
			i = skipBlocks(raw, i+2)
		case img:
			if images++; images > 1 || i+descriptor > len(raw) {
				return images > 1
			}
			i = skipBlocks(raw, i+descriptor+colors(raw[i+9])+1) // one byte has the code size
		default:
			return false
		}
	}
	return false
}

// colors returns the size of the color table that a byte of flags announces.
func colors(packed byte) int {
	if packed&0x80 == 0 {
		return 0
	}
	return 3 << (packed&7 + 1)
}

// skipBlocks skips blocks that begin with their size, up to and including an empty one.
func skipBlocks(raw []byte, i int) int {
	for i < len(raw) && raw[i] != 0 {
		i += 1 + int(raw[i])
	}
	return i + 1
}

// Sizes and flags of WebP's extended format (RFC 9649, 2.7).
const (
	webpHeader    = 12 // "RIFF", size, "WEBP"
	chunkHeader   = 8  // type, size
	canvasSize    = 10 // of a VP8X chunk
	frameHeader   = 16 // of an ANMF chunk: place, size, duration, flags
	animationFlag = 1 << 1
	alphaFlag     = 1 << 4
)

func animatedWebP(raw []byte) bool {
	const flags = webpHeader + chunkHeader
	return len(raw) > flags && string(raw[webpHeader:webpHeader+4]) == "VP8X" && raw[flags]&animationFlag != 0
}

// decodeWebP decodes a WebP file. The decoder of x/image does not read animations: it gets the first frame as a file
// of its own.
func decodeWebP(r io.Reader) (image.Image, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if animatedWebP(raw) {
		if raw, err = firstFrame(raw); err != nil {
			return nil, err
		}
	}
	return webp.Decode(bytes.NewReader(raw))
}

var errNoFrame = errors.New("the animation has no whole first frame")

// firstFrame makes a WebP file of the first frame of an animation.
func firstFrame(raw []byte) ([]byte, error) {
	frame := chunk(raw[webpHeader:], "ANMF")
	canvas := chunk(raw[webpHeader:], "VP8X")
	if len(frame) < frameHeader || len(canvas) < canvasSize {
		return nil, errNoFrame
	}
	width, height := frame[6:9], frame[9:12]
	if uint24(width) > uint24(canvas[4:7]) || uint24(height) > uint24(canvas[7:10]) {
		return nil, errors.New("the first frame is larger than the canvas")
	}
	data := frame[frameHeader:]
	var flags byte
	if chunk(data, "ALPH") != nil {
		flags = alphaFlag
	}
	body := append([]byte("WEBPVP8X\x0a\x00\x00\x00"), flags, 0, 0, 0)
	body = append(append(append(body, width...), height...), data...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...), nil
}

// chunk returns the content of the first chunk of that type in a run of chunks, or nil.
func chunk(b []byte, kind string) []byte {
	for len(b) >= chunkHeader {
		size := int64(binary.LittleEndian.Uint32(b[4:]))
		if size > int64(len(b)-chunkHeader) {
			return nil
		}
		if string(b[:4]) == kind {
			return b[chunkHeader : chunkHeader+size]
		}
		b = b[min(int64(len(b)), chunkHeader+size+size%2):]
	}
	return nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
