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
	timed   bool // long was set, and neither rang nor was stopped
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
		task, err := r.next()
		if err != nil {
			r.end(err)
			r.do(task, false)
			return
		}
		switch {
		case task.run == nil: // it was no request
		case task.brief:
			leads = r.doLeading(task)
		case r.in.Buffered() > 0:
			r.pass()
			r.do(task, false)
			leads = false
		default:
			leads = r.doLeading(task)
		}
		if leads && !r.more() {
			if r.conn.burst.holds() { // nobody waits for a message that may never come
				leads = r.doLeading(stdioTask{})
			}
			r.still()
		}
		if !leads {
			r.conn.burst.settle()
		}
	}
}

// do does a task. What is held goes before it, unless it is of the same burst.
func (r *stdioReader) do(task stdioTask, inBurst bool) {
	if !inBurst {
		r.conn.burst.settle()
	}
	if task.run != nil {
		task.run(inBurst)
	}
}

// doLeading does a task, and reports whether this goroutine still leads then.
func (r *stdioReader) doLeading(task stdioTask) bool {
	inBurst := task.brief && (r.more() || r.conn.burst.holds())
	r.mu.Lock()
	r.running = true
	if !r.timed {
		r.timed = true
		r.long.Set(mostLed)
	}
	r.mu.Unlock()
	r.do(task, inBurst)
	r.mu.Lock()
	defer r.mu.Unlock()
	leads := r.running
	r.running = false
	return leads
}

// relieve lets another goroutine lead when a request takes long, and answers those that were made before it.
func (r *stdioReader) relieve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timed = false
	if r.running && r.conn.ctx.Err() == nil { // else what runs is cancelled, and nothing more is taken
		r.running = false
		r.pass()
	}
	if r.conn.burst.holds() {
		go r.conn.burst.settle() // which may wait for the client
	}
}

// still stops the clock.
func (r *stdioReader) still() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timed {
		r.timed = false
		r.long.Set(0)
	}
}

// more reports whether a whole message has been read already.
func (r *stdioReader) more() bool {
	read, _ := r.in.Peek(r.in.Buffered())
	return bytes.IndexByte(read, '\n') >= 0
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

// next takes a message; what is to be run for it is returned. Both may be returned: a request and the error behind it.
func (r *stdioReader) next() (task stdioTask, err error) {
	r.conn.out.waitForRoom()
	waits := !r.more()
	line, long, err := readLine(r.in, MaxMessage)
	if waits {
		r.conn.looks.arrived.Add(1)
	}
	switch {
	case long:
		r.conn.refuse(&fault{code: mcp.INVALID_REQUEST, text: fmt.Sprintf("a message is at most %d bytes long; this one was left out", MaxMessage)})
	case len(bytes.TrimSpace(line)) > 0:
		task = r.conn.receive(line)
	}
	return task, err
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
