package sandbox

import "sync"

// A WriteGate is told of each system call of commands that may change a file or directory, before the kernel carries it
// out: an open for writing, for one. What is changed by a descriptor that was opened before is not told.
type WriteGate struct {
	told func() error

	mu      sync.Mutex
	threads map[int]int32 // that may be in the call with this number
	waits   int           // how often in a row Quiet has reported false
}

// stopAfter is how often Quiet reports false until it stops threads that compute, so that they show where they are.
const stopAfter = 3

// NewWriteGate returns a gate that calls told. After an error the call fails with EAGAIN.
func NewWriteGate(told func() error) *WriteGate {
	return &WriteGate{told: told, threads: map[int]int32{}}
}

// Quiet reports whether each call that the gate was told of has ended for certain. A thread that runs may still be in
// its call; one that runs whenever Quiet is called is stopped for a moment.
func (g *WriteGate) Quiet() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for thread, nr := range g.threads {
		in, runs := mayBeIn(thread, nr)
		if in && runs && g.waits >= stopAfter {
			in = !stops(thread)
		}
		if in {
			g.waits++
			return false
		}
		delete(g.threads, thread)
	}
	g.waits = 0
	return true
}
