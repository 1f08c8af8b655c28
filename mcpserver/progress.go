package mcpserver

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// heartbeat is how often a client that asked for progress is told that its call still runs or waits. Some clients give up on a silent
// call; the shortest time seen is 4 seconds, by clients made with the SDK for TypeScript.
const heartbeat = 3 * time.Second

// asking is the progress message while a person decides about a call.
const asking = "Waiting for a person to allow the call."

// A reporter tells a client how its call goes, with a value that rises: what the call reports and, when nothing was reported for the time
// of a heartbeat, that it still runs. The nil reporter is for a client that did not ask for progress.
type reporter struct {
	ctx    context.Context // of the call: once it is cancelled nothing is reported
	notify func(ctx context.Context, method string, params map[string]any)
	token  any
	tool   string
	began  time.Time

	mu    sync.Mutex // held while a notification is sent, so that they keep their order
	sent  int
	last  string // what the call reported last
	beat  *time.Timer
	ended bool
}

// newReporter reports on a call if the client sent a token for it. It must be stopped.
func newReporter(ctx context.Context, from transport.Peer, tool string, meta *mcp.Meta) *reporter {
	if meta == nil || from.Notify == nil || !canComeBack(meta.ProgressToken) {
		return nil
	}
	r := &reporter{ctx: ctx, notify: from.Notify, token: meta.ProgressToken, tool: tool, began: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat = time.AfterFunc(heartbeat, r.repeat)
	return r
}

// callback returns the function that gets the last lines of the call's output, nil when nothing is reported.
func (r *reporter) callback() func(lastLines string) {
	if r == nil {
		return nil
	}
	return r.report
}

// report sends what the call does now. The heartbeat repeats it.
func (r *reporter) report(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = text
	r.send(text)
}

// forget makes the heartbeat not repeat what was reported last.
func (r *reporter) forget() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = ""
}

// repeat is the heartbeat.
func (r *reporter) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.last
	if text == "" {
		text = fmt.Sprintf("%s: no result yet after %s", r.tool, time.Since(r.began).Round(time.Second))
	}
	r.send(text)
}

// send sends a notification, and lets the next heartbeat follow it. The caller holds the lock.
func (r *reporter) send(text string) {
	if r.ended || r.ctx.Err() != nil {
		return
	}
	r.sent++
	r.notify(r.ctx, "notifications/progress", map[string]any{"progressToken": r.token, "progress": r.sent, "message": text})
	r.beat.Reset(heartbeat)
}

// stop ends the reports: none may follow the answer.
func (r *reporter) stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.beat.Stop()
}

// maxProgressToken is the length, in bytes, from which on a token is not sent back with each line that a command prints.
const maxProgressToken = 1 << 10

// canComeBack reports whether a progress token is one that the protocol knows, a string or an integer, and comes back as it came. A call
// with another one is made, without reports of its progress.
func canComeBack(token any) bool {
	switch t := token.(type) {
	case string:
		return len(t) <= maxProgressToken && !strings.ContainsRune(t, utf8.RuneError) // half a character was read as that
	case float64:
		return t == math.Trunc(t) && math.Abs(t) <= jsonrpc.LargestID
	}
	return false
}
