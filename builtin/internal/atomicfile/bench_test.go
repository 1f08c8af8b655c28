package atomicfile

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// BenchmarkFast compares small replacements with each of the fast paths of this package left out with those that have all, by turns in one
// run: ×… is what a call takes without it.
func BenchmarkFast(b *testing.B) {
	content := bytes.Repeat([]byte("y"), 4<<10)
	ways := []string{"fast", "no-names", "no-preallocation"}
	spent := make([]time.Duration, len(ways))
	calls := make([]func() error, len(ways))
	for i, way := range ways {
		dir, path, journal := room(b)
		put(b, path+"/f", "old", 0o644)
		o := Options{JournalDir: journal}
		if way != "no-names" {
			o.Temps = new(Temps)
			defer o.Temps.Close()
		}
		if way == "no-preallocation" {
			o.Temps.spares = map[string]*os.File{"a": nil, "b": nil, "c": nil, "d": nil} // no room for more
		}
		calls[i] = func() error {
			_, err := Replace(dir, "f", o, content)
			return err
		}
	}
	for n := 0; b.Loop(); n++ {
		for k := range ways {
			i := (n + k) % len(ways)
			began := time.Now()
			if err := calls[i](); err != nil {
				b.Fatal(err)
			}
			spent[i] += time.Since(began)
			time.Sleep(spareDelay) // what was put off is done between two calls
		}
	}
	for i, way := range ways[1:] {
		b.ReportMetric(float64(spent[i+1])/float64(spent[0]), "×"+way)
	}
}
