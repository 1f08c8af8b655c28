package stdio

import (
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A reader reads requests and runs them, most of them in the goroutine that reads. A goroutine for each request would
// wake a thread for each, which costs more than most calls: see BenchmarkReader.
//
// One goroutine at a time reads, and runs the request that it has read. Requests that arrive together are queued, and
// other goroutines help to run them. If a request takes longer than [maxInline], another goroutine continues to read,
// and each queued request gets its own goroutine, so that no message waits for a call.
type reader struct {
	input
	start chan role    // received by an idle worker
	idle  atomic.Int32 // the number of idle workers

	slow *time.Timer // fires when a request has run for maxInline

	mu     sync.Mutex
	inline bool     // the reading goroutine runs a request, so that none reads
	queue  []func() // requests that have not started; the timer slow runs while there are any

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
	// maxInline is how long a request may run while no goroutine reads. Most Read and Edit calls take a quarter of it.
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

// worker runs roles until it is not needed any more or the input has ended.
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

// read reads and runs requests until another goroutine reads. It returns false if the input has ended.
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

// runBatch queues all requests that are buffered, and runs them with a helper. It reports whether this goroutine still
// reads.
func (r *reader) runBatch(first func()) bool {
	r.enqueue(first)
	if r.addHelper() {
		runtime.Gosched() // lets the helper run the first request on this thread while this goroutine moves to a free one
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

// runInline runs a request while no goroutine reads, and reports whether this one still reads afterwards.
func (r *reader) runInline(run func()) bool {
	r.mu.Lock()
	r.inline = true
	r.mu.Unlock()
	r.slow.Reset(maxInline) // without the lock, which helpers need
	run()
	r.mu.Lock()
	reads, last := r.inline, len(r.queue) == 0
	if reads {
		r.inline = false
	}
	r.mu.Unlock()
	if reads && last { // otherwise another goroutine or the queue uses the timer
		r.slow.Stop()
	}
	return reads
}

// handOver lets another goroutine read if a request takes long, and starts a goroutine for each queued request.
func (r *reader) handOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inline && r.conn.ctx.Err() == nil { // a closing connection reads no more
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

// await waits for the next role. It reports false if the worker is not needed any more.
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
