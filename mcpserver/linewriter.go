package mcpserver

import (
	"io"
	"slices"
	"sync"
	"time"
)

// A lineWriter writes whole lines in the order they were given. Whoever gives a line while nobody writes
// writes it, and all that is given meanwhile; there is no goroutine between an answer and its client. What
// waits for a client that does not read is bounded by [MaxInFlight].
type lineWriter struct {
	w      io.Writer
	broken chan struct{} // closed when the client no longer takes lines

	mu      sync.Mutex
	lines   [][]byte
	writing bool
	closed  bool
	idle    chan struct{} // closed when nobody writes any more; nil when nobody waits
}

func newLineWriter(w io.Writer) *lineWriter {
	return &lineWriter{w: w, broken: make(chan struct{})}
}

// write may wait for the client. The reader of a transport must not call it itself.
func (l *lineWriter) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.lines = append(l.lines, line)
	if l.writing {
		return
	}
	l.writing = true
	for len(l.lines) > 0 {
		lines := l.lines
		l.lines = nil
		l.mu.Unlock()
		err := l.put(lines)
		l.mu.Lock()
		if err != nil && !l.closed {
			l.closed, l.lines = true, nil
			close(l.broken)
		}
	}
	l.writing = false
	if l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// joined is how many bytes of lines that wait together are written at once.
const joined = 64 << 10

func (l *lineWriter) put(lines [][]byte) error {
	for len(lines) > 0 {
		n, size := 1, len(lines[0])
		for n < len(lines) && size+len(lines[n]) <= joined {
			size += len(lines[n])
			n++
		}
		chunk := lines[0]
		if n > 1 {
			chunk = slices.Concat(lines[:n]...)
		}
		if _, err := l.w.Write(chunk); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// closeGrace is how long a closing host waits for its client to take the last lines.
const closeGrace = 500 * time.Millisecond

// close takes no more lines and waits until those it has are written, as far as the client takes them.
func (l *lineWriter) close() {
	l.mu.Lock()
	l.closed = true
	if !l.writing {
		l.mu.Unlock()
		return
	}
	l.idle = make(chan struct{})
	idle := l.idle
	l.mu.Unlock()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
