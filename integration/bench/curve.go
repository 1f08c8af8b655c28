package main

import (
	"fmt"
	"os"
)

// show prints a curve with its growth.
func (c *curve) show() {
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
