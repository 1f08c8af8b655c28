package document

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// The functions of this file return the EXIF metadata of an image, in TIFF format (Exif 2.32, 4.5.2), or nil if it
// has none.

// exifInJPEG looks through the segments before the image data (Exif 2.32, 4.5.4).
func exifInJPEG(raw []byte) []byte {
	const app1, startOfScan = 0xe1, 0xda
	for i := 2; i+4 <= len(raw) && raw[i] == 0xff; {
		kind, size := raw[i+1], int(binary.BigEndian.Uint16(raw[i+2:]))
		if kind == 0xff { // a fill byte
			i++
			continue
		}
		if kind == startOfScan || size < 2 || i+2+size > len(raw) {
			return nil
		}
		segment := raw[i+4 : i+2+size]
		if meta, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && kind == app1 {
			return meta
		}
		i += 2 + size
	}
	return nil
}

func exifInPNG(raw []byte) []byte {
	for kind, content := range pngChunks(raw) {
		if kind == "eXIf" {
			return content
		}
	}
	return nil
}

func exifInWebP(raw []byte) []byte {
	const exifFlag = 1 << 3
	if len(raw) <= webpHeader {
		return nil
	}
	if canvas := chunk(raw[webpHeader:], "VP8X"); len(canvas) < canvasSize || canvas[0]&exifFlag == 0 {
		return nil
	}
	return chunk(raw[webpHeader:], "EXIF")
}

func exifInTIFF(raw []byte) []byte { return raw }

// pngChunks yields the chunks of a PNG: the type and the content of each. The content of the last may be incomplete.
func pngChunks(raw []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		const header, checksum = 8, 4 // length, type
		for i := int64(len("\x89PNG\r\n\x1a\n")); i+header <= int64(len(raw)); {
			from := i + header
			to := from + int64(binary.BigEndian.Uint32(raw[i:]))
			if !yield(string(raw[i+4:from]), raw[from:min(to, int64(len(raw)))]) {
				return
			}
			i = to + checksum
		}
	}
}

// orientationIn returns the orientation in the first directory of EXIF metadata.
func orientationIn(meta []byte) orientation {
	const fields, tag, short = 12, 0x0112, 3 // the size of an entry; the tag and its type
	if len(meta) < 8 {
		return upright
	}
	var order binary.ByteOrder
	switch string(meta[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return upright
	}
	at := int64(order.Uint32(meta[4:]))
	if at+2 > int64(len(meta)) {
		return upright
	}
	entries := meta[at+2:]
	for range order.Uint16(meta[at:]) {
		if len(entries) < fields {
			break
		}
		if order.Uint16(entries) == tag {
			o := order.Uint16(entries[8:])
			if order.Uint16(entries[2:]) != short || order.Uint32(entries[4:]) != 1 || o < uint16(upright) ||
				o > uint16(turnedRight) {
				break
			}
			return orientation(o)
		}
		entries = entries[fields:]
	}
	return upright
}
