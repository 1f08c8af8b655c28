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

// heartbeat is the interval of progress notifications for a call that reports nothing itself. Some clients cancel a
// silent call; the shortest timeout observed is 4 seconds, in clients built with the TypeScript SDK.
const heartbeat = 3 * time.Second

// asking is the progress message while a person decides about a call.
const asking = "Waiting for a person to allow the call."

// A reporter reports the progress of a call to its client, with an increasing value. It sends what the call reports
// and, if the call reports nothing for a heartbeat, that it still runs. The reporter is nil if the client did not ask
// for progress.
type reporter struct {
	ctx    context.Context // of the call: after it is cancelled nothing is reported
	notify func(ctx context.Context, method string, params map[string]any)
	token  any
	tool   string
	began  time.Time

	mu    sync.Mutex // held while a notification is sent, to keep their order
	sent  int
	last  string // the last report of the call
	beat  *time.Timer
	ended bool
}

// newReporter reports on a call if the client sent a token for it. It must be stopped.
func newReporter(ctx context.Context, from transport.Peer, tool string, meta *mcp.Meta) *reporter {
	if meta == nil || from.Notify == nil || !isReturnable(meta.ProgressToken) {
		return nil
	}
	r := &reporter{ctx: ctx, notify: from.Notify, token: meta.ProgressToken, tool: tool, began: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat = time.AfterFunc(heartbeat, r.repeat)
	return r
}

// callback returns the function that gets the last lines of the call's output, or nil if nothing is reported.
func (r *reporter) callback() func(lastLines string) {
	if r == nil {
		return nil
	}
	return r.report
}

// report sends the current activity of the call. The heartbeat repeats it.
func (r *reporter) report(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = text
	r.send(text)
}

// forget makes the heartbeat stop repeating the last report.
func (r *reporter) forget() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = ""
}

// repeat sends a heartbeat.
func (r *reporter) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.last
	if text == "" {
		text = fmt.Sprintf("%s: no result yet after %s", r.tool, time.Since(r.began).Round(time.Second))
	}
	r.send(text)
}

// send sends a notification and restarts the heartbeat. The caller holds the lock.
func (r *reporter) send(text string) {
	if r.ended || r.ctx.Err() != nil {
		return
	}
	r.sent++
	r.notify(r.ctx, "notifications/progress", map[string]any{"progressToken": r.token, "progress": r.sent,
		"message": text})
	r.beat.Reset(heartbeat)
}

// stop ends the reports. A report must not follow the response.
func (r *reporter) stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.beat.Stop()
}

// maxProgressToken is the length, in bytes, of the longest progress token that is sent back with each line that a
// command prints.
const maxProgressToken = 1 << 10

// isReturnable reports whether a progress token is valid (a string or an integer) and survives decoding and encoding. A
// call with any other token runs without progress reports.
func isReturnable(token any) bool {
	switch t := token.(type) {
	case string:
		// an invalid character is decoded as RuneError
		return len(t) <= maxProgressToken && !strings.ContainsRune(t, utf8.RuneError)
	case float64:
		return t == math.Trunc(t) && math.Abs(t) <= jsonrpc.LargestID
	}
	return false
}
