package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"toolhost/builtin/alarm"
)

// A stdioReader takes the messages of a client in their order. One goroutine at a time leads: it reads, and runs the request
// that it has read. When more input waits already, or the request takes longer than [mostLed], another leads meanwhile. So
// nobody has to be woken between a message and its answer, and no message waits for a call.
type stdioReader struct {
	conn  *stdioConn
	in    *bufio.Reader
	lead  chan struct{} // received by a goroutine that is to lead
	idle  atomic.Int32  // how many goroutines wait for that
	ended chan error    // gets why the input ended, nil at its end

	long *alarm.Alarm // rings when a request has run for mostLed

	mu      sync.Mutex
	running bool // a request runs, and nobody reads
}

func newStdioReader(c *stdioConn, in io.Reader) *stdioReader {
	r := &stdioReader{conn: c, in: bufio.NewReaderSize(in, 64<<10), lead: make(chan struct{}), ended: make(chan error, 1)}
	r.long = alarm.New(r.relieve)
	return r
}

const (
	// mostLed is about how long a request may run while nobody reads. Most reads and edits of files take a quarter of it.
	mostLed = time.Millisecond
	// maxIdle is how many goroutines wait to lead. A new one would do as well, but its stack would have to grow first.
	maxIdle = 4
)

// follow leads until another does, waits to lead again, and returns when the input has ended or nobody needs it.
func (r *stdioReader) follow() {
	for leads := true; leads || r.wait(); {
		run, err := r.next()
		if err != nil {
			r.end(err)
			if run != nil {
				run()
			}
			return
		}
		if r.in.Buffered() > 0 {
			r.pass()
			run()
			leads = false
		} else {
			leads = r.runLeading(run)
		}
	}
}

// runLeading runs a request, and reports whether this goroutine still leads then.
func (r *stdioReader) runLeading(run func()) bool {
	r.mu.Lock()
	r.running = true
	r.long.Set(mostLed)
	r.mu.Unlock()
	run()
	r.mu.Lock()
	defer r.mu.Unlock()
	leads := r.running
	if leads {
		r.running = false
		r.long.Set(0)
	}
	return leads
}

// relieve lets another goroutine lead when a request takes long.
func (r *stdioReader) relieve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running && r.conn.ctx.Err() == nil { // else what runs is cancelled, and nothing more is taken
		r.running = false
		r.pass()
	}
}

// pass lets another goroutine lead.
func (r *stdioReader) pass() {
	select {
	case r.lead <- struct{}{}:
	default:
		go r.follow()
	}
}

// wait returns true when this goroutine is to lead, and false when it is not needed any more.
func (r *stdioReader) wait() bool {
	defer r.idle.Add(-1)
	if r.idle.Add(1) > maxIdle {
		return false
	}
	select {
	case <-r.lead:
		return true
	case <-r.conn.ctx.Done():
		return false
	}
}

// end tells why there is no more input.
func (r *stdioReader) end(err error) {
	if errors.Is(err, io.EOF) {
		r.ended <- nil
		return
	}
	r.ended <- fmt.Errorf("reading the input: %w", err)
}

// next handles messages up to the next request, which is returned to be run. Both may be returned: a request and the
// error behind it.
func (r *stdioReader) next() (run func(), err error) {
	for run == nil && err == nil {
		r.conn.out.waitForRoom()
		var line []byte
		var long bool
		line, long, err = readLine(r.in, MaxMessage)
		switch {
		case long:
			r.conn.refuse(&fault{code: mcp.INVALID_REQUEST, text: fmt.Sprintf("a message is at most %d bytes long; this one was left out", MaxMessage)})
		case len(bytes.TrimSpace(line)) > 0:
			run = r.conn.receive(line)
		}
	}
	return run, err
}

// readLine reads up to the next newline. A line of more than limit bytes is skipped, and long is true.
func readLine(r *bufio.Reader, limit int) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !long && len(line)+len(part) > limit {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
