//go:build slow

package readstate

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

func TestLifecyclesLeaveAFlatHeap(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	s := open(t, Config{MaxKept: 1 << 20})
	content := bytes.Repeat([]byte("x"), 1000)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	live := func(from, to int) {
		for i := from; i < to; i++ {
			sc := s.Scope(fmt.Sprint("scope ", i), false)
			sc.MarkRead("/f", version{}, fmt.Append(content, i))
			sc.MarkPartRead("/g", version{}, Part{FirstLine: 1, Lines: 1}, fmt.Append(content, -i))
		}
	}
	live(0, 3_000)
	before := heap()
	live(3_000, 30_000)
	if after := heap(); after > before+before/4 {
		t.Errorf("heap grew from %d to %d bytes over 27,000 scopes", before, after)
	}
}
