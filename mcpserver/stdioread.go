package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
)

// A stdioReader takes the messages of a client in their order. One goroutine at a time leads: it reads. When it has read a
// request, it lets another lead and runs the request itself. So nobody has to be woken between a message and its answer,
// and the reader still never waits for a call.
type stdioReader struct {
	conn  *stdioConn
	in    *bufio.Reader
	lead  chan struct{} // received by a goroutine that is to lead
	idle  atomic.Int32  // how many goroutines wait for that
	ended chan error    // gets why the input ended, nil at its end
}

func newStdioReader(c *stdioConn, in io.Reader) *stdioReader {
	return &stdioReader{conn: c, in: bufio.NewReaderSize(in, 64<<10), lead: make(chan struct{}), ended: make(chan error, 1)}
}

// maxIdle is how many goroutines wait to lead. A new one would do as well, but its stack would have to grow first.
const maxIdle = 4

// follow leads, runs what it took, and waits to lead again.
func (r *stdioReader) follow() {
	for {
		run, err := r.next()
		switch {
		case err == nil:
			r.pass()
		case errors.Is(err, io.EOF):
			r.ended <- nil
		default:
			r.ended <- fmt.Errorf("reading the input: %w", err)
		}
		if run != nil {
			run()
		}
		if err != nil || !r.wait() {
			return
		}
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
