package shell

import (
	"os"
	"sync"
	"time"
)

// An outputReader is the read end of a pipe for output. One goroutine reads from it.
type outputReader struct {
	mu       sync.Mutex
	file     *os.File // nil while the pipe is not watched
	deadline time.Time
	closed   bool
}

// read waits for output and reads it.
func (o *outputReader) read(p []byte) (int, error) { return o.watched().Read(p) }

// readNow reads what is there, without waiting for more.
func (o *outputReader) readNow(p []byte) int { return readNow(o.watched(), p) }

func (o *outputReader) watched() *os.File {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file
}

// until sets the deadline for reading.
func (o *outputReader) until(deadline time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deadline = deadline
	if o.file != nil {
		o.file.SetReadDeadline(deadline)
	}
}

func (o *outputReader) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	closeAll(o.file)
}
