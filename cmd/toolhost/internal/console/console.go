// Package console serves the pages on which the owner of the machine sees what agents do through a host, approves
// calls that a rule asks about, stops running calls and undoes changes.
//
// A [Console] observes every call of the host. As the host's asker, it shows the questions that a client cannot show
// to a person. [Console.Open] serves the pages: on a loopback address, or on a Unix socket in the state directory,
// which [Forward] connects to a loopback address. A code that is valid once opens them. The code is in the state
// directory, which contained commands cannot read, and is exchanged for a cookie. If commands are not contained, the
// pages only show, and approve nothing.
package console

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// Limits on the memory of a console, and on its viewers.
const (
	// MaxCalls is how many calls the live view has.
	MaxCalls = 200
	// MaxResult is how many bytes of one result, and of one command, are kept; 6 MiB for all calls. A row shows the
	// first maxPreview bytes; the page of the call shows all.
	MaxResult  = 16 << 10
	maxPreview = 2 << 10
	// MaxFiles is how many files of one call are kept. maxName is how many bytes are kept of the path of a file, and of
	// the name of a tool, which a caller may have made up.
	MaxFiles = 20
	maxName  = 4 << 10
	// maxClient is how many bytes of a client's name are kept.
	maxClient = 100
	// MaxWaiting is how many questions may wait at once. maxOfOne is how many of them may be about calls of one
	// principal: three quarters, so that no principal prevents the questions of others. Further calls are refused.
	MaxWaiting = 64
	maxOfOne   = MaxWaiting - MaxWaiting/4
	// MaxPages is the maximum number of pages that are updated concurrently. A browser needs one for all its tabs.
	MaxPages = 16
)

// A Console holds the calls of one host that the pages show, and the questions that wait. Use [New].
type Console struct {
	always bool // questions wait although no page is open

	mu           sync.Mutex
	calls        []*call         // oldest first
	sessions     []*agentSession // least recently used first
	waiting      []*question
	resolved     []outcome // outcomes of questions, oldest first
	lastQuestion uint64    // the number of the last question
	version      uint64    // the version of the call that changed last
	pages        int
	left         time.Time     // when a page was last closed
	base         string        // the address of the pages; "" if they are served on a socket
	changed      chan struct{} // closed at the next change
	asked        chan struct{} // closed at the next change of the questions
	away         *away         // nil: questions are not announced
}

// New returns a console without calls. If always is set, questions wait for an answer even if no page is open.
func New(always bool) *Console {
	return &Console{always: always, changed: make(chan struct{}), asked: make(chan struct{})}
}

// Watch changes a configuration so that the console observes the calls of the host, and is asked in place of its
// clients.
func (c *Console) Watch(cfg *mcpserver.Config) {
	cfg.Observers = append(cfg.Observers, c)
	cfg.Asker = c
}

// notify tells the pages that something has changed. The caller holds the lock.
func (c *Console) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// notifyAsked tells the pages immediately that the questions have changed. The caller holds the lock.
func (c *Console) notifyAsked() {
	close(c.asked)
	c.asked = make(chan struct{})
	c.notify()
}

// A notice tells pages when to update.
type notice struct {
	changed <-chan struct{} // closed at the next change
	asked   <-chan struct{} // closed when the next question appears or is settled
	waiting int             // how many questions wait
}

// next returns a notice of the state now, and of the next change.
func (c *Console) next() notice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return notice{c.changed, c.asked, len(c.waiting)}
}

// attach counts a page that is to be updated. ok is false if there are MaxPages already; otherwise leave must be
// called when the page is closed.
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
	stateAsked   = "asked" // a person was asked, and another call repeats it with the answer
)

// A call is one row of the live view.
type call struct {
	ID, Version uint64
	Former      uint64 // the call that this one repeats with the answer of a person
	State       string
	Record      audit.Record
	Result      string // its beginning
	Cut         int    // how many bytes of it are not kept
	Lines       lineCount
}

// CallBegan adds a call to the live view.
func (c *Console) CallBegan(ctx context.Context, info audit.Call) context.Context {
	r := bounded(audit.Record{
		Time: time.Now(), Principal: info.Principal, Scope: info.Scope, Tool: info.Tool,
		Client: info.Origin.Client, ClientVersion: info.Origin.ClientVersion,
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == MaxCalls {
		c.calls = slices.Delete(c.calls, 0, 1)
	}
	c.version++
	c.session(r)
	c.calls = append(c.calls, &call{ID: info.ID, Version: c.version, State: stateWaiting,
		Record: r})
	c.notify()
	return ctx
}

// CallPlanned shows the effects that a call is about to have.
func (c *Console) CallPlanned(_ context.Context, info audit.Call, r audit.Record) {
	r = bounded(r)
	c.change(info.ID, func(one *call) { one.State, one.Record = stateRunning, r })
}

// CallEnded shows how a call ended. If a call was repeated with the answer of a person, it replaces the call that the
// question was about.
func (c *Console) CallEnded(_ context.Context, info audit.Call, r audit.Record, result builtin.Result) {
	r = bounded(r)
	text := clip(result.Text, MaxResult)
	var lines lineCount
	if n, _ := fmt.Sscanf(r.Summary, "+%d -%d", &lines.Added, &lines.Removed); n == 2 {
		r.Summary = "" // the row shows the lines
	} else if lines = (lineCount{}); len(r.Writes) > 0 && !result.IsError {
		lines = countLines(diffLines(text))
	}
	c.change(info.ID, func(one *call) {
		one.Record, one.Result, one.Cut, one.Lines = r, text, len(result.Text)-len(text), lines
		one.State = ended(r.Verdict, result.IsError)
		if one.State == stateAsked {
			return
		}
		c.session(r).add(one)
		c.calls = slices.DeleteFunc(c.calls, func(other *call) bool {
			repeated := r.Question != "" && other.Record.Question == r.Question && other.State == stateAsked
			if repeated {
				one.Former = other.ID
			}
			return repeated
		})
	})
}

// ended returns the state of a call that has ended.
func ended(verdict string, failed bool) string {
	switch {
	case verdict == "deny":
		return stateRefused
	case verdict == "ask":
		return stateAsked
	case failed:
		return stateFailed
	}
	return stateDone
}

// bounded returns the part of a record that is kept.
func bounded(r audit.Record) audit.Record {
	r.Tool, r.Command, r.Error = clip(r.Tool, maxName), clip(r.Command, MaxResult), clip(r.Error, maxName)
	r.Client, r.ClientVersion, r.Summary, r.LastLine = clip(r.Client, maxClient), clip(r.ClientVersion,
		maxClient), clip(r.Summary, maxName), clip(r.LastLine, maxName)
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

// change applies do to a call, if the live view still has it.
func (c *Console) change(id uint64, do func(*call)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range slices.Backward(c.calls) {
		if one.ID == id {
			c.version++
			one.Version = c.version
			do(one)
			c.notify()
			return
		}
	}
}

// recent returns the calls of the live view that match a query, newest first, at most most of them.
func (c *Console) recent(q query, most int) (found []call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range slices.Backward(c.calls) {
		if len(found) < most && q.matches(one.Record) {
			found = append(found, *one)
		}
	}
	return found
}
