// Package lease opens files that another program may hold a lease on, as file servers do for their clients. The
// kernel has such a program give it up, for which it may take 45 seconds: an open that does not wait says EAGAIN
// meanwhile.
//
// Its Go API is not stable.
package lease

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// maxWait is how long a program is given to give up its lease. A file server does so within milliseconds.
const maxWait = time.Second

// pause is the time between two tries, at first; it doubles.
const pause = time.Millisecond

// ErrHeld is the cause of an error that a lease is.
var ErrHeld = errors.New("another program holds a lease on the file")

// Open calls open, which must not wait for a lease, until it succeeds or fails otherwise, for [maxWait] at most. The
// error then says which program holds the lease on the file at path.
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

// remedy says how the file becomes free.
func remedy(path string) string {
	if who := holder(path); who != "" {
		return "end " + who + ", or close the file there"
	}
	return "end that program, or close the file there (/proc/locks lists leases)"
}
