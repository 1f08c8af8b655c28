// Package memory bounds what this process holds in memory, by what the system leaves it.
package memory

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
)

const (
	// Heap is the most that Go's memory grows to before garbage is collected more often, in bytes. With the program
	// itself the process stays below 512 MB with any one tree.
	Heap = 400 << 20
	// share is the part of a limit of the system that this process uses: the rest is for commands and other processes.
	share = 0.75
	// program is what the process takes in addition to Go's memory, in bytes: measured, 20 to 25 MB.
	program = 24 << 20
	// leastHeap is what a host has in use for itself, in bytes.
	leastHeap = 16 << 20
	// LeastAddressSpace is the smallest RLIMIT_AS that this process starts under, in bytes. Go reserves some 700 MB of
	// addresses, and below this limit allocations were seen to fail at random.
	LeastAddressSpace = 1536 << 20
	// reserved is what Go's reservations take of RLIMIT_AS, in bytes.
	reserved = 768 << 20
)

// A limit is what the system leaves this process. The zero limit is none.
type limit struct {
	bytes int64
	name  string // for the reader: "memory.max of its control group"
}

// least returns the smaller of two limits.
func (l limit) least(other limit) limit {
	if l.name == "" || other.name != "" && other.bytes < l.bytes {
		return other
	}
	return l
}

var (
	bound limit        // of Go's memory; set once, before anything is taken
	taken atomic.Int64 // bytes
)

// Bound limits Go's memory to what the system leaves this process, unless GOMEMLIMIT says otherwise. It is called
// once, when a host starts. The error names a limit under which this process cannot work.
func Bound() error {
	space := addressSpace()
	if space.name != "" && space.bytes < LeastAddressSpace {
		return fmt.Errorf("%s is %d MiB, and this program needs %d: raise it (ulimit -v)", space.name, space.bytes>>20,
			LeastAddressSpace>>20)
	}
	group := controlGroup(os.DirFS("/"))
	if space.name != "" {
		space.bytes -= reserved
	}
	bound = within(group.least(space))
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	heap := int64(Heap)
	if bound.name != "" {
		heap = min(heap, bound.bytes)
	}
	debug.SetMemoryLimit(heap)
	return nil
}

// within returns what Go's memory may take of a limit on the process.
func within(l limit) limit {
	if l.name != "" {
		l.bytes = max(int64(share*float64(l.bytes))-program, leastHeap+smallest)
	}
	return l
}

// Most returns how many bytes one thing may take at most, want if there is no smaller limit. Several such things may
// be held at once.
func Most(want int64) int64 {
	if bound.name == "" {
		return want
	}
	return min(want, bound.bytes/4)
}

// A TooLargeError says that something does not fit into the memory that the system leaves this process.
type TooLargeError struct {
	Need, Left int64 // bytes
	Limit      string
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("too large here: it takes about %d MiB of memory, and %s leaves %d MiB. Use a smaller file, or a "+
		"person raises that limit",
		e.Need>>20, e.Limit, e.Left>>20)
}

// smallest is what needs no reservation, in bytes.
const smallest = 1 << 20

// Take reserves n bytes until release is called. The error is a [*TooLargeError].
func Take(n int64) (release func(), err error) {
	if bound.name == "" || n <= smallest {
		return func() {}, nil
	}
	if sum, most := taken.Add(n), bound.bytes-leastHeap; sum > most {
		taken.Add(-n)
		return nil, &TooLargeError{Need: n, Left: max(most-sum+n, 0), Limit: bound.name}
	}
	return func() { taken.Add(-n) }, nil
}
