// Package lease opens files on which another program may hold a lease, as file servers do for their clients. The
// kernel asks that program to release the lease, which may take 45 seconds. Until then, a non-blocking open fails
// with EAGAIN.
//
// Its Go API is not stable.
package lease

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// maxWait is how long Open waits for the other program. A file server releases a lease within milliseconds.
const maxWait = time.Second

// pause is the time between two tries, at first; it doubles.
const pause = time.Millisecond

// ErrHeld is the cause of an error that is due to a lease.
var ErrHeld = errors.New("another program holds a lease on the file")

// Open calls open, which must not block on a lease, until it succeeds or fails for another reason, for at most
// [maxWait]. The error then says which program holds the lease on the file at path.
func Open[F any](path string, open func() (F, error)) (F, error) {
	end := time.Time{}
	for wait := pause; ; wait *= 2 {
		f, err := open()
		switch {
		case err == nil || !errors.Is(err, syscall.EAGAIN):
			return f, err
		case end.IsZero():
			end = time.Now().Add(maxWait)
		case time.Now().After(end):
			return f, fmt.Errorf("%w and did not give it up within %v: %s, then repeat the call", ErrHeld, maxWait,
				remedy(path))
		}
		time.Sleep(min(wait, time.Until(end)))
	}
}

// remedy returns how the lease can be released.
func remedy(path string) string {
	if who := holder(path); who != "" {
		return "end " + who + ", or close the file there"
	}
	return "end that program, or close the file there (/proc/locks lists leases)"
}
