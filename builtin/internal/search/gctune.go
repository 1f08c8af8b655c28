package search

import (
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin/internal/memory"
)

// gctune sets GOGC, which is one for the whole process. The collector lets garbage grow in proportion to all memory
// in use, and so to the large data that an engine keeps; GOGC is lowered to compensate for that. Texts and indexes
// hold no pointers for the collector to follow; lists of files do.
var gctune struct {
	kept    atomic.Int64 // bytes, of all engines
	applied atomic.Int64 // what kept was when GOGC was last set

	mu sync.Mutex
}

const (
	// tuneStep is how much the kept bytes must change for GOGC to be set again, which
	// stops the program for some microseconds.
	tuneStep = 16 << 20
	// otherHeap is about what a host has in use without an engine, in bytes.
	otherHeap = 16 << 20
	// minPercent is the lowest GOGC that is set: with less, the collector would run all the time. A collection takes 35
	// to 100 ms for the names and records of a hundred thousand files. With 10 instead of 20, a search for all lines of
	// Linux's tree took a seventh longer, and memory was 410 instead of 470 MB.
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
	gctune.applied.Store(kept)
	if base := memory.Percent(); base > 0 {
		memory.SetPercent(percentFor(base, kept))
	}
}

// percentFor returns the GOGC with which no more garbage gathers than with base if nothing were kept.
func percentFor(base int, kept int64) int {
	if base <= minPercent {
		return base
	}
	return max(minPercent, int(int64(base)*otherHeap/(otherHeap+kept)))
}
