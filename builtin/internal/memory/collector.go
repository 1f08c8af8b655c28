package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

const (
	// startPercent is GOGC until garbage is collected for the first time. The least heap of Go is then 16 MB, not 4 MB:
	// a start makes less, and so it is not slowed by a collection.
	startPercent = 400
	// ballastSize is the size of the ballast, in bytes.
	ballastSize = 12 << 20
)

// collector holds the settings of Go's collector, which is one for the process.
var collector struct {
	base int // see Percent

	mu      sync.Mutex
	percent int // GOGC after the start
	// ballast is memory that is never touched, and so never taken from the machine, but counts when the collector
	// decides how much garbage to wait for: with a heap as small as a host's, collecting it would otherwise be a sixth
	// of the cost of a call. A higher GOGC would do that too, and would let a large heap grow as many times. It is made
	// after the start, because it causes a collection. It is empty if the user has set GOGC.
	ballast []byte
}

func init() {
	collector.base = debug.SetGCPercent(startPercent)
	collector.percent = collector.base
	if os.Getenv("GOGC") != "" {
		collector.ballast = []byte{}
		debug.SetGCPercent(collector.base)
		return
	}
	type sentinel struct{ _ *sentinel } // a pointer makes it an allocation of its own

	runtime.AddCleanup(new(sentinel), func(struct{}) { // called when garbage was collected
		collector.mu.Lock()
		defer collector.mu.Unlock()
		applyPercent()
	}, struct{}{})
}

// Percent returns GOGC as the user has set it, 100 by default. It is negative if the collector is off.
func Percent() int { return collector.base }

// SetPercent sets GOGC for this process.
func SetPercent(percent int) {
	collector.mu.Lock()
	defer collector.mu.Unlock()
	collector.percent = percent
	applyPercent()
}

// applyPercent ends the start. It needs the lock.
func applyPercent() {
	if collector.ballast == nil {
		collector.ballast = make([]byte, ballastSize)
	}
	debug.SetGCPercent(collector.percent)
}
