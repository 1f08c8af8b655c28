package transport

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// How many refused requests are recorded: the log must not be something that strangers can fill.
const (
	RefusalsBurst = 20          // at once
	RefusalsEvery = time.Second // from then on, one
)

// RejectionLog record requests that were refused before they became calls, as far as lines are not too many.
type RejectionLog struct {
	handler Handler
	lines   *rate.Limiter

	mu      sync.Mutex
	skipped int // refusals since the last record
}

// NewRejectionLog records with a server.
func NewRejectionLog(h Handler) *RejectionLog {
	return &RejectionLog{handler: h, lines: rate.NewLimiter(rate.Every(RefusalsEvery), RefusalsBurst)}
}

// AdmissionTool is the tool in the log of a request that was refused because a limit was reached.
const AdmissionTool = "(admission)"

// FromPeer is [RejectionLog.Record] for a request over HTTP.
func (c *RejectionLog) FromPeer(r *http.Request, rec audit.Record) {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	rec.Scope, rec.Source = "http", from
	c.Record(rec)
}

// Record writes a line for a refused request, which is completed. The next line tells how many were left out.
func (c *RejectionLog) Record(rec audit.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lines.Allow() {
		c.skipped++
		return
	}
	if c.skipped > 0 {
		rec.Error = fmt.Sprintf("%s (and %d refusals before it that were not recorded)", rec.Error, c.skipped)
	}
	c.skipped = 0
	rec.Time, rec.Verdict = time.Now(), guard.Deny.String()
	if err := c.handler.Record(rec); err != nil {
		c.handler.Log().Error("a refused request could not be recorded", "error", err)
	}
}
