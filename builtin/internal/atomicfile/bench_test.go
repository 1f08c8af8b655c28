package atomicfile

import (
	"bytes"
	"testing"
	"time"
)

// BenchmarkFast compares small replacements that keep the names of temporary files with those that do not, by turns in one run: ×no-names
// is how much longer these take.
func BenchmarkFast(b *testing.B) {
	content := bytes.Repeat([]byte("y"), 4<<10)
	ways := []string{"fast", "no-names"}
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
		}
	}
	for i, way := range ways[1:] {
		b.ReportMetric(float64(spent[i+1])/float64(spent[0]), "×"+way)
	}
}
