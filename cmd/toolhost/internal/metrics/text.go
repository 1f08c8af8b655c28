package metrics

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A family is one metric with all its samples, in the text format of Prometheus, version 0.0.4.
type family struct {
	name, kind, help string
}

// The kinds of families.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
	summary   = "summary"
)

// A page is the text under construction.
type page struct{ bytes.Buffer }

// labels are alternating names and values.
type labels []string

// begin writes the head of a family. Its samples must follow.
func (p *page) begin(f family) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
}

// escape returns a label's value as the format requires.
func escape(value string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(value, "\uFFFD"))
}

func (p *page) sample(name string, of labels, value float64) {
	p.WriteString(name)
	for i := 0; i+1 < len(of); i += 2 {
		open := ","
		if i == 0 {
			open = "{"
		}
		fmt.Fprintf(p, `%s%s="%s"`, open, of[i], escape(of[i+1]))
	}
	if len(of) > 1 {
		p.WriteByte('}')
	}
	p.WriteByte(' ')
	p.WriteString(number(value))
	p.WriteByte('\n')
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// one writes a family with one sample without labels.
func (p *page) one(f family, value float64) {
	p.begin(f)
	p.sample(f.name, nil, value)
}

// distribution writes the samples of a histogram. counts has the number of values in each bucket, and at its end the
// number of those above all bounds.
func (p *page) distribution(name string, of labels, bounds []float64, counts []uint64, sum float64) {
	var all uint64
	for i, n := range counts {
		all += n
		bound := math.Inf(1)
		if i < len(bounds) {
			bound = bounds[i]
		}
		p.sample(name+"_bucket", append(slices.Clone(of), "le", number(bound)), float64(all))
	}
	p.sample(name+"_sum", of, sum)
	p.sample(name+"_count", of, float64(all))
}

// truth returns 1 for true and 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// sorted returns the keys of a map in order, so that the page is always the same for the same state.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
