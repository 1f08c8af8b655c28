package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A reader takes the messages of a client in their order. One goroutine at a time leads: it reads, and runs the request
// that it has read, so that nobody has to be woken between a message and its answer. Requests that came in together wait in a queue,
// of which others help to run what is in it. When that takes longer than [mostLed], another leads meanwhile, and each of the queue
// is run by a goroutine of its own, so that no message waits for a call.
type reader struct {
	conn  *conn
	in    *bufio.Reader
	lead  chan duty    // received by a goroutine that is to lead or to help
	idle  atomic.Int32 // how many goroutines wait for that
	ended chan error   // gets why the input ended, nil at its end

	long *time.Timer // fires when a request has run for mostLed

	mu      sync.Mutex
	running bool     // requests run, and nobody reads
	queue   []func() // requests that came in together and wait to be run; long is set while there are any

	helpers    atomic.Int32 // how many goroutines help, or are about to
	processors int32        // how many there are
}

func newReader(c *conn, in io.Reader) *reader {
	r := &reader{
		conn: c, in: bufio.NewReaderSize(in, 64<<10), lead: make(chan duty), ended: make(chan error, 1),
		processors: int32(runtime.GOMAXPROCS(0)),
	}
	r.long = time.AfterFunc(mostLed, r.handOver)
	r.long.Stop()
	return r
}

const (
	// mostLed is about how long a request may run while nobody reads. Most reads and edits of files take a quarter of it.
	mostLed = time.Millisecond
	// maxIdle is how many goroutines wait to lead. A new one would do as well, but its stack would have to grow first.
	maxIdle = 4
)

// follow does what it is here for until nobody needs it, or the input has ended: it leads until another does, or helps.
func (r *reader) follow(d duty) {
	for needed := true; needed; d, needed = r.wait() {
		if d == leading && !r.leadOn() {
			return
		}
		r.work()
		if d == helping {
			r.helpers.Add(-1)
		}
	}
}

// leadOn reads and runs requests as long as this goroutine leads. It returns false when the input has ended.
func (r *reader) leadOn() bool {
	for leads := true; leads; {
		run, err := r.next()
		switch {
		case err != nil:
			r.end(err)
			if run != nil {
				run()
			}
			return false
		case r.more():
			leads = r.share(run)
		default:
			leads = r.runLeading(run)
		}
	}
	return true
}

// more reports whether a whole message has been read already.
func (r *reader) more() bool {
	read, _ := r.in.Peek(r.in.Buffered())
	return bytes.IndexByte(read, '\n') >= 0
}

// share takes all messages that came in together, so that none waits for a call before it, and lets another goroutine help with
// them. It reports whether this one still leads then. To hand each on with the lead would wake a thread for each.
func (r *reader) share(first func()) bool {
	r.add(first)
	if r.help() {
		runtime.Gosched() // the other goes on here with the first, and this one takes the rest wherever there is room
	}
	for r.more() {
		if run, _ := r.message(); run != nil { // what has been read fails no more
			r.add(run)
		}
	}
	return r.runLeading(r.work)
}

// add puts a request behind those that wait to be run.
func (r *reader) add(run func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, run)
}

// help lets another goroutine help, if there may be a processor for it.
func (r *reader) help() bool {
	if r.helpers.Add(1) >= r.processors {
		r.helpers.Add(-1)
		return false
	}
	r.pass(helping)
	return true
}

// work runs what waits to be run.
func (r *reader) work() {
	for run, more := r.take(); run != nil; run, more = r.take() {
		if more {
			r.help()
		}
		run()
	}
}

// take takes the next of what waits to be run, and tells whether there is more.
func (r *reader) take() (run func(), more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil, false
	}
	run = r.queue[0]
	r.queue = slices.Delete(r.queue, 0, 1)
	return run, len(r.queue) > 0
}

// runLeading runs a request, and reports whether this goroutine still leads then.
func (r *reader) runLeading(run func()) bool {
	r.mu.Lock()
	r.running = true
	r.mu.Unlock()
	r.long.Reset(mostLed) // without the lock, for which who helps would have to wait longer than for a thread
	run()
	r.mu.Lock()
	leads, last := r.running, len(r.queue) == 0
	if leads {
		r.running = false
	}
	r.mu.Unlock()
	if leads && last { // else another shares, of whom this one has taken the lead
		r.long.Stop()
	}
	return leads
}

// handOver lets another goroutine lead when a request takes long, and others run what waits behind it.
func (r *reader) handOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running && r.conn.ctx.Err() == nil { // else what runs is cancelled, and nothing more is taken
		r.running = false
		r.pass(leading)
	}
	for _, run := range r.queue {
		go run()
	}
	r.queue = nil
}

// A duty is what a goroutine is to do.
type duty bool

const (
	leading duty = true
	helping duty = false
)

// pass lets another goroutine lead, or help.
func (r *reader) pass(d duty) {
	select {
	case r.lead <- d:
	default:
		go r.follow(d)
	}
}

// wait returns when this goroutine is to do something, and false when it is not needed any more.
func (r *reader) wait() (d duty, needed bool) {
	defer r.idle.Add(-1)
	if r.idle.Add(1) > maxIdle {
		return false, false
	}
	select {
	case d := <-r.lead:
		return d, true
	case <-r.conn.ctx.Done():
		return false, false
	}
}

// end tells why there is no more input.
func (r *reader) end(err error) {
	if errors.Is(err, io.EOF) {
		r.ended <- nil
		return
	}
	r.ended <- fmt.Errorf("reading the input: %w", err)
}

// next handles messages up to the next request, which is returned to be run. Both may be returned: a request and the
// error behind it.
func (r *reader) next() (run func(), err error) {
	for run == nil && err == nil {
		r.conn.out.WaitForRoom()
		run, err = r.message()
	}
	return run, err
}

// message handles a message, and returns what is to be run for it.
func (r *reader) message() (run func(), err error) {
	line, long, err := readLine(r.in, transport.MaxMessage)
	switch {
	case long != nil:
		r.conn.refuse(&jsonrpc.Error{ID: long.ID(), Code: mcp.INVALID_REQUEST, Text: fmt.Sprintf("a message is at most %d bytes long; this one was left out", transport.MaxMessage)})
	case len(bytes.TrimSpace(line)) > 0:
		run = r.conn.receive(line)
	}
	return run, err
}

// readLine reads up to the next newline. Of a line of more than limit bytes only long is returned.
func readLine(r *bufio.Reader, limit int) (line []byte, long *jsonrpc.Oversized, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long == nil && len(line)+len(part) > limit {
			long = new(jsonrpc.Oversized)
			long.Write(line)
			line = nil
		}
		if long == nil {
			line = append(line, part...)
		} else {
			long.Write(part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
