//go:build ignore

// Icon draws the icon of the bundle, a prompt on a rounded square, as a PNG:
//
//	go run .release/icon.go .release/bundle/icon.png
package main

import (
	"image"
	"image/color"
	"image/png"
	"log"
	"math"
	"os"
)

const (
	size    = 512 // pixels each way
	radius  = 112 // of the corners
	stroke  = 26  // half the width of a line
	samples = 4   // each way in a pixel
)

type point struct{ x, y float64 }

// lines are the prompt: the two halves of >, and the cursor.
var lines = [][2]point{{{150, 158}, {248, 256}}, {{248, 256}, {150, 354}}, {{284, 354}, {372, 354}}}

var top, bottom, ink = color.RGBA{16, 78, 92, 255}, color.RGBA{9, 38, 56, 255}, color.RGBA{240, 250, 246, 255}

// distance returns how far p is from a line between two points.
func distance(p point, l [2]point) float64 {
	dx, dy := l[1].x-l[0].x, l[1].y-l[0].y
	t := max(0, min(1, ((p.x-l[0].x)*dx+(p.y-l[0].y)*dy)/(dx*dx+dy*dy)))
	return math.Hypot(p.x-l[0].x-t*dx, p.y-l[0].y-t*dy)
}

// at returns the color of a point; outside of the square it is transparent.
func at(p point) color.RGBA {
	qx, qy := max(0, math.Abs(p.x-size/2)-size/2+radius), max(0, math.Abs(p.y-size/2)-size/2+radius)
	if math.Hypot(qx, qy) > radius {
		return color.RGBA{}
	}
	for _, l := range lines {
		if distance(p, l) <= stroke {
			return ink
		}
	}
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + (float64(b)-float64(a))*p.y/size) }
	return color.RGBA{mix(top.R, bottom.R), mix(top.G, bottom.G), mix(top.B, bottom.B), 255}
}

func main() {
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			var r, g, b, a int
			for i := range samples * samples {
				c := at(point{float64(x) + (float64(i%samples)+.5)/samples,
					float64(y) + (float64(i/samples)+.5)/samples})
				r, g, b, a = r+int(c.R), g+int(c.G), b+int(c.B), a+int(c.A)
			}
			const n = samples * samples
			img.SetRGBA(x, y, color.RGBA{uint8(r / n), uint8(g / n), uint8(b / n), uint8(a / n)})
		}
	}
	f, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := png.Encode(f, img); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}
