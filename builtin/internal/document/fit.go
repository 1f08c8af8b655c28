package document

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// qualities are tried in this order until the picture is small enough. Text in a picture is readable even with the
// last.
var qualities = [...]int{85, 75, 60, 45}

// resize scales, turns and encodes the image until it is within the limits.
func (s *source) resize() (Picture, error) {
	small := s.turn.apply(scale(s.img, MaxSide))
	for {
		data, mime, changes, err := s.encode(small)
		if err != nil {
			return Picture{}, err
		}
		size := small.Bounds().Size()
		if fits(data) {
			return s.picture(data, mime, size, changes), nil
		}
		small = scale(small, max(size.X, size.Y)*3/4)
	}
}

// encode returns img as PNG. If it is a photo, or the PNG is too large, encode returns a JPEG of the best quality
// that fits.
func (s *source) encode(img *image.RGBA) (data []byte, mime string, changes []string, err error) {
	var out bytes.Buffer
	opaque := img.Opaque()
	if !s.format.photo || !opaque {
		if err := png.Encode(&out, img); err != nil {
			return nil, "", nil, err
		}
		if fits(out.Bytes()) {
			return out.Bytes(), pngFormat.mime, nil, nil
		}
	}
	if !s.format.photo {
		changes = append(changes, "as JPEG to save space")
	}
	if !opaque {
		changes = append(changes, "transparent parts on white")
		img = onWhite(img)
	}
	for _, q := range qualities {
		out.Reset()
		if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: q}); err != nil {
			return nil, "", nil, err
		}
		if fits(out.Bytes()) {
			break
		}
	}
	return out.Bytes(), jpegFormat.mime, changes, nil
}

// scale returns img with its longer side at most side pixels long. It halves the image repeatedly, because halving
// averages exactly four pixels: a single step of the fast scaler would skip pixels, and with them the strokes of
// letters.
func scale(img image.Image, side int) *image.RGBA {
	size := img.Bounds().Size()
	target := size
	if longer := max(size.X, size.Y); longer > side {
		target = image.Pt(max(1, size.X*side/longer), max(1, size.Y*side/longer))
	}
	for size.X > 2*target.X || size.Y > 2*target.Y {
		size = image.Pt(max(target.X, size.X/2), max(target.Y, size.Y/2))
		img = scaleTo(img, size)
	}
	if done, ok := img.(*image.RGBA); ok && done.Bounds() == (image.Rectangle{Max: target}) {
		return done
	}
	return scaleTo(img, target)
}

func scaleTo(img image.Image, size image.Point) *image.RGBA {
	dst := image.NewRGBA(image.Rectangle{Max: size})
	if img.Bounds().Size() == size {
		draw.Draw(dst, dst.Bounds(), img, img.Bounds().Min, draw.Src)
	} else {
		draw.ApproxBiLinear.Scale(dst, dst.Bounds(), img, img.Bounds(), draw.Src, nil)
	}
	return dst
}

func onWhite(img *image.RGBA) *image.RGBA {
	dst := image.NewRGBA(img.Bounds())
	draw.Draw(dst, dst.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(dst, dst.Bounds(), img, img.Bounds().Min, draw.Over)
	return dst
}
