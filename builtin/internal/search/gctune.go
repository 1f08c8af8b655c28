package search

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// gctune steers Go's collector, which lets garbage grow in proportion to all that is
// in use: to what an engine keeps too, which is large and no reason for more garbage.
// So GOGC, of which a process has one, is lowered by as much as is kept. Texts and
// indexes hold no pointers for the collector to follow; lists of files do.
var gctune struct {
	kept    atomic.Int64 // bytes, of all engines
	applied atomic.Int64 // what kept was when GOGC was last set

	mu   sync.Mutex
	base int // GOGC while nothing is kept; 0: not looked at yet, negative: leave it alone
}

const (
	// tuneStep is how much more or less must be kept for GOGC to be set anew, in
	// bytes: that stops the program for some microseconds.
	tuneStep = 16 << 20
	// besides is what a host has in use besides, in bytes, roughly.
	besides = 16 << 20
	// minPercent keeps the collector from running all the time: names and records of a hundred thousand files take it 35 to
	// 100 ms. With 10 instead, all lines of Linux's tree took a seventh longer, and memory was 410 instead of 470 MB.
	minPercent = 20
)

// keepBytes notes that n bytes more are kept.
func keepBytes(n int64) {
	if d := gctune.kept.Add(n) - gctune.applied.Load(); d >= tuneStep || -d >= tuneStep {
		setPercent()
	}
}

func setPercent() {
	gctune.mu.Lock()
	defer gctune.mu.Unlock()
	kept := max(gctune.kept.Load(), 0)
	if kept < tuneStep {
		kept = 0
	}
	if gctune.base == 0 {
		gctune.base = collectorPercent()
	}
	gctune.applied.Store(kept)
	if gctune.base > 0 {
		debug.SetGCPercent(percentFor(gctune.base, kept))
	}
}

// percentFor is the GOGC with which as much garbage may gather as base allows
// without what is kept.
func percentFor(base int, kept int64) int {
	if base <= minPercent {
		return base
	}
	return max(minPercent, int(int64(base)*besides/(besides+kept)))
}

// collectorPercent is the GOGC that is set, -1 if the collector is off.
func collectorPercent() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 || s[0].Value.Uint64() == 0 || s[0].Value.Uint64() > math.MaxInt32 {
		return -1
	}
	return int(s[0].Value.Uint64())
}
