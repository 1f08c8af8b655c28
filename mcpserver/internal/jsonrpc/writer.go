package jsonrpc

import (
	"io"
	"slices"
	"sync"
	"time"
)

// A Writer writes whole lines in the order they were given. A goroutine that gives a line while none writes
// writes it, and all that is given meanwhile; there is no goroutine between an answer and its client. Whoever
// makes lines waits for room first, see [Writer.WaitForRoom].
type Writer struct {
	w      io.Writer
	broken chan struct{}

	mu      sync.Mutex
	lines   [][]byte
	size    int        // of the lines that wait or are being written, in bytes
	room    *sync.Cond // signalled when size shrinks, and when the writer closes
	writing bool
	closed  bool
	idle    chan struct{} // closed when no goroutine writes any more; nil when none waits
}

// NewWriter writes to w, and gives it room for several answers if it is a pipe.
func NewWriter(w io.Writer) *Writer {
	widen(w)
	l := &Writer{w: w, broken: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	return l
}

// Broken is closed when the client no longer takes lines.
func (l *Writer) Broken() <-chan struct{} { return l.broken }

// maxUnread is how much may wait for the client, in bytes, before no more is taken from it. A client that sends on
// without reading is not helped by more answers.
const maxUnread = 32 << 20

// WaitForRoom waits until the client has read enough of what waits for it.
func (l *Writer) WaitForRoom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.size > maxUnread && !l.closed {
		l.room.Wait()
	}
}

// Crowded reports whether what can be left out should be.
func (l *Writer) Crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size > maxUnread/2
}

// Write may wait for the client. The reader of a transport must not call it itself. The line is the writer's from then on.
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

// joined is how many bytes of lines that wait together are written at once.
const joined = 64 << 10

func (l *Writer) put(lines [][]byte) error {
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
		for _, line := range lines[:n] {
			spareLine(line)
		}
		lines = lines[n:]
	}
	return nil
}

// spareLines are the storage of lines that were written. Made anew for each, it would be a quarter of what a Read allocates.
var spareLines sync.Pool // of *[]byte

// lineOf is an empty line with room for so many bytes.
func lineOf(size int) []byte {
	if spare, ok := spareLines.Get().(*[]byte); ok && cap(*spare) >= size {
		return *spare
	}
	return make([]byte, 0, size)
}

// spareLine gives back a line that is not used any more.
func spareLine(line []byte) {
	if line = line[:0]; cap(line) <= joined {
		spareLines.Put(&line)
	}
}

// closeGrace is how long a closing host waits for its client to take the last lines.
const closeGrace = 500 * time.Millisecond

// Close takes no more lines and waits until those it has are written, as far as the client takes them.
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
