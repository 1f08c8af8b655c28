package mcpserver

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/time/rate"

	"toolhost/guard"
	"toolhost/mcpserver/audit"
	"toolhost/mcpserver/auth"
	"toolhost/mcpserver/internal/wire"
)

// Refused requests that are recorded: the log must not be something that strangers can fill.
const (
	refusalsBurst = 20
	refusalsEvery = time.Second
)

// refusals record requests that were refused before they became calls, as far as lines are not too many.
type refusals struct {
	host  *Host
	lines *rate.Limiter

	mu     sync.Mutex
	unsaid int // refusals since the last record
}

func newRefusals(h *Host) *refusals {
	return &refusals{host: h, lines: rate.NewLimiter(rate.Every(refusalsEvery), refusalsBurst)}
}

// admissionTool stands in the log in the place of a tool for a request that was refused for want of room.
const admissionTool = "(admission)"

// fromPeer is record for a request over HTTP.
func (c *refusals) fromPeer(r *http.Request, rec audit.Record) {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	rec.Scope, rec.Source = "http", from
	c.record(rec)
}

// record writes a line for a refused request, which is completed. The next line tells how many were left out.
func (c *refusals) record(rec audit.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lines.Allow() {
		c.unsaid++
		return
	}
	if c.unsaid > 0 {
		rec.Error = fmt.Sprintf("%s (and %d refusals before it that were not recorded)", rec.Error, c.unsaid)
	}
	c.unsaid = 0
	rec.Time, rec.Verdict = time.Now(), guard.Deny.String()
	if err := c.host.audit.Write(rec); err != nil {
		c.host.log.Error("a refused request could not be recorded", "error", err)
	}
}

// A rejection is why a request is not let in.
type rejection struct {
	status int
	text   string
	retry  bool // it may be let in later
	full   bool // for want of room
}

// noRoom rejects a request for want of room.
func noRoom(status int, text string) *rejection {
	return &rejection{status: status, text: text, retry: true, full: true}
}

func closingRejection() *rejection {
	return &rejection{status: http.StatusServiceUnavailable, retry: true, text: "this server is closing: try again in a moment"}
}

// send answers the request that is refused.
func (r *rejection) send(w http.ResponseWriter, m wire.Envelope) {
	if r.retry {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	answer(w, r.status, &wire.Fault{ID: m.ID, Code: mcp.INVALID_REQUEST, Text: r.text})
}

// reject answers a request that is not let in, and records it if that was for want of room: who was kept from their work,
// and by how much, is what the owner wants to know afterwards.
func (d *door) reject(w http.ResponseWriter, r *http.Request, who auth.Identity, m wire.Envelope, no *rejection) {
	if no.full {
		d.crowded.fromPeer(r, audit.Record{Principal: who.Principal, Tool: admissionTool, Rule: "limits", Error: no.text})
	}
	no.send(w, m)
}

// stepUp is the refusal of a call whose caller lacks the right to the tool, but can get it from an authorization server.
// The call itself takes its usual way, and is refused and recorded there; this says what its answer is called in HTTP
// ("Scope Challenge Handling" of the specification). It is nil when the call may pass or nobody could grant more: then a
// refusal that the model can read is better than one that the client takes for a broken connection.
func (d *door) stepUp(who auth.Identity, m wire.Envelope) *auth.Error {
	if m.Method != wire.MethodCall || who.Scopes == nil {
		return nil
	}
	tool, err := d.server.host.lookUp(m.Params.Name)
	if err != nil {
		return nil
	}
	need := rightTo(tool.Right)
	if who.Rights.Has(need) {
		return nil
	}
	return &auth.Error{Kind: auth.Insufficient, Reason: fmt.Sprintf("%s needs the right %s", tool.Name, need), Scope: who.Scopes(need)}
}
