package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// show prints a curve with its growth, and draws it.
func (c *curve) show(plots string) error {
	t := &table{head: []string{"cost against " + c.of}}
	for _, n := range c.sizes {
		t.head = append(t.head, readable(n)+c.unit)
	}
	t.head = append(t.head, "grows as size to the", "that is")
	for _, line := range c.costs {
		cells := []string{line.name}
		for _, v := range line.values {
			cells = append(cells, fmt.Sprintf("%.3g %s", v, line.unit))
		}
		exponent := growth(c.sizes, line.values)
		t.add(append(cells, fmt.Sprintf("%.2f", exponent), words(exponent))...)
	}
	fmt.Println()
	t.markdown(os.Stdout)
	if plots == "" {
		return nil
	}
	return save(filepath.Join(plots, "scale-"+c.name+".svg"), c.draw)
}

// words say what an exponent means.
func words(exponent float64) string {
	switch {
	case exponent < 0.1:
		return "constant"
	case exponent < 0.8:
		return "less than in proportion"
	case exponent < 1.15:
		return "in proportion"
	}
	return "more than in proportion"
}

// readable is a power of ten in few characters.
func readable(n float64) string {
	for _, p := range []struct {
		of   float64
		sign string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= p.of {
			return fmt.Sprintf("%.0f %s", n/p.of, p.sign)
		}
	}
	return fmt.Sprintf("%.0f ", n)
}

// draw writes a curve as SVG, in logarithms both ways, so that a power is a straight line.
func (c *curve) draw(out io.Writer) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = c.of, "ms or MB"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	low, high := math.Inf(1), 0.0
	for i, line := range c.costs {
		points := make(plotter.XYs, 0, len(line.values))
		for j, v := range line.values {
			if v > 0 {
				points = append(points, plotter.XY{X: c.sizes[j], Y: v})
				low, high = min(low, v), max(high, v)
			}
		}
		l, s, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", line.name, err)
		}
		l.Color, s.Color, s.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		p.Add(l, s)
		p.Legend.Add(line.name+" ("+line.unit+")", l, s)
	}
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(low)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(high))+1) // room for the legend
	w, err := p.WriterTo(15*vg.Centimeter, 10*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	_, err = w.WriteTo(out)
	return err
}
