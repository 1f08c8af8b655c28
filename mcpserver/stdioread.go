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

	mu      sync.Mutex
	led     int  // how many requests were run by who led
	running bool // one runs, and nobody reads
	watched bool // a goroutine looks how long it does
}

func newStdioReader(c *stdioConn, in io.Reader) *stdioReader {
	return &stdioReader{conn: c, in: bufio.NewReaderSize(in, 64<<10), lead: make(chan struct{}), ended: make(chan error, 1)}
}

const (
	// mostLed is about how long a request may run while nobody reads. Most reads and edits of files take a quarter of it.
	mostLed = time.Millisecond
	// mostRest is for how many times mostLed nothing may run until nobody looks any more.
	mostRest = 50
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
	r.led++
	r.running = true
	if !r.watched {
		r.watched = true
		go r.watch()
	}
	r.mu.Unlock()
	run()
	r.mu.Lock()
	defer r.mu.Unlock()
	leads := r.running
	r.running = false
	return leads
}

// watch lets another goroutine lead when a request takes long, and returns when there is nothing to look at for a while.
func (r *stdioReader) watch() {
	tick := time.NewTicker(mostLed)
	defer tick.Stop()
	for seen, rest := 0, 0; rest < mostRest; rest++ {
		select {
		case <-tick.C:
		case <-r.conn.ctx.Done():
			return // what runs is cancelled, and nothing more is taken
		}
		r.mu.Lock()
		switch {
		case r.led != seen:
			seen, rest = r.led, 0
		case r.running:
			r.running = false
			r.pass()
		}
		r.watched = rest+1 < mostRest
		r.mu.Unlock()
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
