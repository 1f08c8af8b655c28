package jsonrpc

import (
	"io"
	"slices"
	"sync"
	"time"
)

// A Writer writes whole lines in order. It needs no goroutine of its own: a goroutine that calls Write writes its
// line and those that others add in the meantime, unless another goroutine is writing. The reader of a transport
// calls [Writer.WaitForRoom] before it takes the next message.
type Writer struct {
	w      io.Writer
	broken chan struct{}

	mu      sync.Mutex
	lines   [][]byte
	size    int        // of the queued lines and those being written, in bytes
	room    *sync.Cond // signalled when size shrinks and when the writer closes
	writing bool
	closed  bool
	idle    chan struct{} // closed when no goroutine is writing; nil unless Close waits
}

// NewWriter returns a Writer to w. If w is a pipe, its capacity is increased.
func NewWriter(w io.Writer) *Writer {
	growPipe(w)
	l := &Writer{w: w, broken: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	return l
}

// Broken returns a channel that is closed when a write has failed.
func (l *Writer) Broken() <-chan struct{} { return l.broken }

// maxUnread limits what is queued for a client that does not read, in bytes. Above it, no more messages of the client
// are read.
const maxUnread = 32 << 20

// WaitForRoom waits until at most maxUnread bytes are queued, or the writer is closed.
func (l *Writer) WaitForRoom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.size > maxUnread && !l.closed {
		l.room.Wait()
	}
}

// Crowded reports whether optional messages, such as progress, should be dropped.
func (l *Writer) Crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size > maxUnread/2
}

// Write queues a line, and writes the queue unless another goroutine does. It may wait for the client, so the reader
// of a transport must not call it.
func (l *Writer) Write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.lines = append(l.lines, line)
	l.size += len(line)
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
		for _, line := range lines {
			l.size -= len(line)
		}
		l.room.Broadcast()
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

// maxJoined limits how many bytes of queued lines are joined to one write.
const maxJoined = 64 << 10

func (l *Writer) put(lines [][]byte) error {
	for len(lines) > 0 {
		n, size := 1, len(lines[0])
		for n < len(lines) && size+len(lines[n]) <= maxJoined {
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

// closeGrace is how long Close waits for the client to read the last lines.
const closeGrace = 500 * time.Millisecond

// Close discards further lines, and waits up to closeGrace until the queued ones are written.
func (l *Writer) Close() {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
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
