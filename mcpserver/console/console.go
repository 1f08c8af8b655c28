// Package console is the page on which the owner of the machine sees what agents do through a host, approves what
// a rule asks, stops what runs and undoes what went wrong.
//
// A [Console] is told of every call as an observer of the host, and puts the questions that a client cannot put to
// a person, as its asker. [Console.Open] serves the pages: on a loopback address of its own, or on a Unix socket
// in the state directory that [Forward] carries to one. What opens them is a code that works once and is in the
// state directory, which no contained command can read; it is exchanged for a cookie. Where commands are not
// contained the pages show, but approve nothing.
//
// Its Go API is not stable.
package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// Limits of what a console keeps in memory, and of who looks at it.
const (
	// MaxCalls is how many calls the live view goes back.
	MaxCalls = 200
	// MaxResult bounds what is kept of one result, and of one command, in bytes: of all together 6 MiB.
	MaxResult = 16 << 10
	// MaxFiles is how many of the files are kept that one call reads or writes, and maxName bounds each of them
	// and the name of a tool, which callers make up, in bytes.
	MaxFiles = 20
	maxName  = 4 << 10
	// MaxWaiting is how many questions may wait at once, and maxOfOne how many about the calls of one principal, three quarters, so that
	// no one keeps the others from asking; further calls are refused.
	MaxWaiting = 64
	maxOfOne   = MaxWaiting - MaxWaiting/4
	// MaxPages is how many pages may be kept up to date at once. A browser needs one for all its tabs.
	MaxPages = 16
)

// A Console is what a page shows of the calls of one host, and where its questions wait. Use [New].
type Console struct {
	always bool // questions wait although no page is open

	mu           sync.Mutex
	calls        []call // oldest first
	waiting      []*question
	resolved     []outcome // of questions, oldest first
	lastQuestion uint64    // the number of the last question
	version      uint64    // of the call that changed last
	pages        int
	left         time.Time     // when a page was closed last
	changed      chan struct{} // closed at the next change
	asked        chan struct{} // closed at the next change of the questions
}

// New makes a console that shows nothing yet. With always, questions wait for an answer although no page is open.
func New(always bool) *Console {
	return &Console{always: always, changed: make(chan struct{}), asked: make(chan struct{})}
}

// Watch makes the console see the calls of a host with this configuration, and answer for its clients.
func (c *Console) Watch(cfg *mcpserver.Config) {
	cfg.Observers = append(cfg.Observers, c)
	cfg.Asker = c
}

// notify tells the pages that something has changed. The caller holds the lock.
func (c *Console) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// notifyAsked tells the pages at once that the questions have changed. The caller holds the lock.
func (c *Console) notifyAsked() {
	close(c.asked)
	c.asked = make(chan struct{})
	c.notify()
}

// A notice is what pages wait for.
type notice struct {
	changed <-chan struct{} // closed at the next change
	asked   <-chan struct{} // closed when the next question appears or is settled
	waiting int             // questions now
}

// next returns the notice of the next change.
func (c *Console) next() notice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return notice{c.changed, c.asked, len(c.waiting)}
}

// attach counts a page that is kept up to date, if there is room for one. It must leave.
func (c *Console) attach() (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == MaxPages {
		return nil, false
	}
	c.pages++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pages--
		c.left = time.Now()
	}, true
}

// The states of a call.
const (
	stateWaiting = "waiting" // for its turn
	stateRunning = "running"
	stateDone    = "done"
	stateFailed  = "failed"
	stateRefused = "refused"
	stateAsked   = "asked" // it was repeated with the answer
)

// A call is one line of the live view.
type call struct {
	ID, Version            uint64
	Principal, Scope, Tool string
	Began                  time.Time
	State                  string
	Record                 audit.Record
	Result                 string // its beginning
	Cut                    int    // bytes that are not kept of it
}

// CallBegan adds a call to the live view.
func (c *Console) CallBegan(ctx context.Context, info audit.Call) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == MaxCalls {
		c.calls = append(c.calls[:0], c.calls[1:]...)
	}
	c.version++
	c.calls = append(c.calls, call{
		ID: info.ID, Version: c.version, Principal: info.Principal, Scope: info.Scope, Tool: clip(info.Tool, maxName),
		Began: time.Now(), State: stateWaiting,
	})
	c.notify()
	return ctx
}

// CallPlanned shows what a call is about to do.
func (c *Console) CallPlanned(_ context.Context, info audit.Call, r audit.Record) {
	c.change(info.ID, func(one *call) { one.State, one.Record = stateRunning, bounded(r) })
}

// CallEnded shows how a call ended.
func (c *Console) CallEnded(_ context.Context, info audit.Call, r audit.Record, result builtin.Result) {
	c.change(info.ID, func(one *call) {
		one.Record = bounded(r)
		one.Result = clip(result.Text, MaxResult)
		one.Cut = len(result.Text) - len(one.Result)
		switch {
		case r.Verdict == "deny":
			one.State = stateRefused
		case r.Verdict == "ask":
			one.State = stateAsked
		case result.IsError:
			one.State = stateFailed
		default:
			one.State = stateDone
		}
	})
}

// bounded is what is kept of a record.
func bounded(r audit.Record) audit.Record {
	r.Tool, r.Command, r.Error = clip(r.Tool, maxName), clip(r.Command, MaxResult), clip(r.Error, maxName)
	for _, files := range []*[]string{&r.Reads, &r.Writes, &r.Effects} {
		var kept []string
		for _, f := range (*files)[:min(len(*files), MaxFiles)] {
			kept = append(kept, clip(f, maxName))
		}
		if more := len(*files) - MaxFiles; more > 0 {
			kept = append(kept, fmt.Sprintf("… and %d more", more))
		}
		*files = kept
	}
	return r
}

// change changes a call that the live view still has.
func (c *Console) change(id uint64, do func(*call)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.calls) - 1; i >= 0; i-- {
		if c.calls[i].ID == id {
			c.version++
			do(&c.calls[i])
			c.calls[i].Version = c.version
			c.notify()
			return
		}
	}
}

// recent are the calls of the live view, newest first.
func (c *Console) recent() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]call, 0, len(c.calls))
	for i := len(c.calls) - 1; i >= 0; i-- {
		list = append(list, c.calls[i])
	}
	return list
}
