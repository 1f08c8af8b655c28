package search

import (
	"runtime/metrics"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for _, tt := range []struct {
		base int
		kept int64
		want int
	}{
		{200, 0, 200}, {200, otherHeap, 100}, {100, 3 * otherHeap, 25}, {100, 1 << 40, minPercent}, {minPercent, 1 << 30, minPercent}, {5, 1 << 30, 5},
	} {
		if got := percentFor(tt.base, tt.kept); got != tt.want {
			t.Errorf("GOGC=%d, %d bytes kept: got %d, want %d", tt.base, tt.kept, got, tt.want)
		}
	}
}

// TestSetPercent: what is kept lets no garbage grow, and leaves no trace when it is gone.
func TestSetPercent(t *testing.T) {
	setPercent() // after the start, which has another
	before := collectorPercent()
	if before <= minPercent {
		t.Skip("the collector is off, or runs all the time")
	}
	const n = 1 << 30
	keepBytes(n)
	if got := collectorPercent(); got >= before || got < minPercent {
		t.Errorf("GOGC is %d with %d bytes kept, %d without", got, n, before)
	}
	keepBytes(-n)
	if got := collectorPercent(); got != before {
		t.Errorf("GOGC is %d when nothing is kept any more, was %d", got, before)
	}
}

// collectorPercent is the GOGC that is set, -1 if the collector is off.
func collectorPercent() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if n := s[0].Value.Uint64(); n < 1<<31 {
		return int(n)
	}
	return -1
}
