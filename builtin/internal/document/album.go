package document

import (
	"encoding/base64"
	"strings"
)

// An Album limits the pictures of one answer to [MaxPictures] and [MaxPixels]: a small file can hold very many large
// pictures of one color. The zero value is empty.
type Album struct {
	size   int // bytes of base64
	pixels int // of what was decoded
}

// A FullError says that an album has no room for a picture. Alone, the picture may be shown.
type FullError string

func (e FullError) Error() string { return string(e) }

// Picture makes a [Picture] of an image, as [Image] does, if the album has room for it.
func (a *Album) Picture(raw []byte) (Picture, error) {
	if n := pixelsOf(raw); n <= MaxPixels { // more are refused without being decoded
		if a.pixels+n > MaxPixels {
			return Picture{}, FullError("with those before it there are too many pixels")
		}
		a.pixels += n
	}
	pic, err := Image(raw)
	if err != nil {
		return Picture{}, err
	}
	size := base64.StdEncoding.EncodedLen(len(pic.Data))
	if a.size+size > MaxPictures {
		return Picture{}, FullError("there are too many")
	}
	a.size += size
	return pic, nil
}

// unusual normalises base64 that only some encoders write.
var unusual = strings.NewReplacer("\n", "", "\r", "", "\t", "", " ", "", "-", "+", "_", "/")

// Decode decodes base64 as programs write it: with line breaks, in the alphabet of URLs, without padding, or as a
// data: URI.
func Decode(encoded string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(encoded), "data:"); ok {
		_, encoded, _ = strings.Cut(rest, ",")
	}
	if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		return raw, nil
	}
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(unusual.Replace(encoded), "="))
}
