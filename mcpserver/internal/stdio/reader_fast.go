package stdio

import (
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A reader reads requests and runs them. Without it, each request would need a goroutine of its own, and the thread that is woken for
// it costs more than most calls do: see BenchmarkReader.
//
// One goroutine at a time reads, and runs the request that it has read itself. Requests that arrived together wait in a queue, from
// which other goroutines run them too. When a request takes longer than [maxInline], another goroutine reads on, and each request of
// the queue gets a goroutine of its own, so that no message waits for a call.
type reader struct {
	input
	start chan role    // received by an idle worker
	idle  atomic.Int32 // the number of idle workers

	slow *time.Timer // fires when a request has run for maxInline

	mu     sync.Mutex
	inline bool     // the reading goroutine runs a request, and no one reads
	queue  []func() // requests that arrived together and have not started; slow is set while there are any

	helpers    atomic.Int32 // the number of workers that have roleRun
	maxHelpers int32
}

// A role is what a worker does.
type role bool

const (
	roleRead role = true  // read requests and run them
	roleRun  role = false // run the requests of the queue
)

const (
	// maxInline is about how long a request may run while no one reads. Most reads and edits of files take a quarter of it.
	maxInline = time.Millisecond
	// maxIdle is how many idle workers are kept. A new goroutine would have to grow its stack first.
	maxIdle = 4
)

func newReader(c *conn, in io.Reader) *reader {
	r := &reader{input: newInput(c, in), start: make(chan role), maxHelpers: int32(runtime.GOMAXPROCS(0)) - 1}
	r.slow = time.AfterFunc(maxInline, r.handOver)
	r.slow.Stop()
	return r
}

// worker takes on one role after the other, until it is not needed or the input has ended.
func (r *reader) worker(role role) {
	for needed := true; needed; role, needed = r.await() {
		if role == roleRead && !r.read() {
			return
		}
		r.runQueue()
		if role == roleRun {
			r.helpers.Add(-1)
		}
	}
}

// read reads and runs requests until another goroutine reads. It returns false when the input has ended.
func (r *reader) read() bool {
	for reads := true; reads; {
		run, err := r.next()
		switch {
		case err != nil:
			r.end(err)
			if run != nil {
				run()
			}
			return false
		case r.buffered():
			reads = r.runBatch(run)
		default:
			reads = r.runInline(run)
		}
	}
	return true
}

// runBatch queues all requests that arrived together and runs them with a helper. It reports whether this goroutine still reads. To let
// another goroutine read after each would wake a thread for each.
func (r *reader) runBatch(first func()) bool {
	r.enqueue(first)
	if r.addHelper() {
		runtime.Gosched() // the helper runs the first request on this thread, and this goroutine goes on where there is a free one
	}
	for r.buffered() {
		if run, _ := r.message(); run != nil { // reading what is buffered cannot fail
			r.enqueue(run)
		}
	}
	return r.runInline(r.runQueue)
}

func (r *reader) enqueue(run func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, run)
}

// dequeue returns the next request of the queue, and whether there are more.
func (r *reader) dequeue() (run func(), more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil, false
	}
	run = r.queue[0]
	r.queue = slices.Delete(r.queue, 0, 1)
	return run, len(r.queue) > 0
}

// runQueue runs the requests of the queue.
func (r *reader) runQueue() {
	for run, more := r.dequeue(); run != nil; run, more = r.dequeue() {
		if more {
			r.addHelper()
		}
		run()
	}
}

// addHelper starts a worker that runs the queue, if there may be a processor for it.
func (r *reader) addHelper() bool {
	if r.helpers.Add(1) > r.maxHelpers {
		r.helpers.Add(-1)
		return false
	}
	r.assign(roleRun)
	return true
}

// runInline runs a request while no one reads, and reports whether this goroutine still reads afterwards.
func (r *reader) runInline(run func()) bool {
	r.mu.Lock()
	r.inline = true
	r.mu.Unlock()
	r.slow.Reset(maxInline) // without the lock, so that helpers do not wait for a thread
	run()
	r.mu.Lock()
	reads, last := r.inline, len(r.queue) == 0
	if reads {
		r.inline = false
	}
	r.mu.Unlock()
	if reads && last { // otherwise the timer is that of another goroutine, or of the queue
		r.slow.Stop()
	}
	return reads
}

// handOver lets another goroutine read when a request takes long, and gives each request of the queue a goroutine of its own.
func (r *reader) handOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inline && r.conn.ctx.Err() == nil { // once the connection ends, no more is read
		r.inline = false
		r.assign(roleRead)
	}
	for _, run := range r.queue {
		go run()
	}
	r.queue = nil
}

// assign gives a role to an idle worker, or to a new one.
func (r *reader) assign(role role) {
	select {
	case r.start <- role:
	default:
		go r.worker(role)
	}
}

// await returns the next role of this worker, and false when it is not needed any more.
func (r *reader) await() (next role, needed bool) {
	defer r.idle.Add(-1)
	if r.idle.Add(1) > maxIdle {
		return false, false
	}
	select {
	case next := <-r.start:
		return next, true
	case <-r.conn.ctx.Done():
		return false, false
	}
}
