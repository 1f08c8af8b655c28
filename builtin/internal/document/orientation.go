package document

import "image"

// An orientation says how the stored image must be turned to stand upright, as
// tag 274 of EXIF does (Exif 2.32, 4.6.4 A).
type orientation uint8

const (
	upright     orientation = 1 + iota
	mirrored                // left and right are swapped
	upsideDown              // turned by 180°
	flipped                 // top and bottom are swapped
	transposed              // rows are columns
	turnedLeft              // turn it right by 90°
	transversed             // rows are columns, and turned by 180°
	turnedRight             // turn it left by 90°
)

// orientationOf returns the orientation in the metadata of an image: upright if they cannot be read.
func orientationOf(raw []byte, f *format) orientation {
	if f.exif == nil {
		return upright
	}
	return orientationIn(f.exif(raw))
}

// size returns the upright size of an image that is stored with size p.
func (o orientation) size(p image.Point) image.Point {
	if o >= transposed {
		return image.Pt(p.Y, p.X)
	}
	return p
}

// apply turns an image, whose bounds begin at (0, 0), upright.
func (o orientation) apply(src *image.RGBA) *image.RGBA {
	if o == upright {
		return src
	}
	size := o.size(src.Bounds().Size())
	dst := image.NewRGBA(image.Rectangle{Max: size})
	w, h := src.Bounds().Dx()-1, src.Bounds().Dy()-1
	for y := range size.Y {
		for x := range size.X {
			sx, sy := o.from(x, y, w, h)
			dst.SetRGBA(x, y, src.RGBAAt(sx, sy))
		}
	}
	return dst
}

// from returns the position in the stored image of the pixel at (x, y) in the upright one. The last pixel of the
// stored image is at (w, h).
func (o orientation) from(x, y, w, h int) (int, int) {
	switch o {
	case mirrored:
		return w - x, y
	case upsideDown:
		return w - x, h - y
	case flipped:
		return x, h - y
	case transposed:
		return y, x
	case turnedLeft:
		return y, h - x
	case transversed:
		return w - y, h - x
	case turnedRight:
		return w - y, x
	}
	return x, y
}
