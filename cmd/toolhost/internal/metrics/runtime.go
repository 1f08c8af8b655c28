package metrics

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

// writeRuntime writes the figures of the Go runtime, under the names that dashboards expect.
func writeRuntime(p *page) {
	p.one(goroutines, float64(runtime.NumGoroutine()))
	p.begin(goInfo)
	p.sample(goInfo.name, labels{"version", runtime.Version()}, 1)
	writeCollections(p)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p.one(memAlloc, float64(m.Alloc))
	p.one(memAllocTotal, float64(m.TotalAlloc))
	p.one(memHeapInuse, float64(m.HeapInuse))
	p.one(memHeapObjects, float64(m.HeapObjects))
	p.one(memNextGC, float64(m.NextGC))
	p.one(memStack, float64(m.StackInuse))
	p.one(memSys, float64(m.Sys))
}

// quantiles is the number of quantiles of the pauses of the garbage collector: the minimum, the quartiles and the
// maximum.
const quantiles = 5

func writeCollections(p *page) {
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, quantiles)}
	debug.ReadGCStats(&stats)
	p.begin(gcDuration)
	for i, pause := range stats.PauseQuantiles {
		share := float64(i) / (quantiles - 1)
		p.sample(gcDuration.name, labels{"quantile", strconv.FormatFloat(share, 'g', -1, 64)}, pause.Seconds())
	}
	p.sample(gcDuration.name+"_sum", nil, stats.PauseTotal.Seconds())
	p.sample(gcDuration.name+"_count", nil, float64(stats.NumGC))
}
