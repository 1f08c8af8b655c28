package httpserver

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// An httpError is the reason why a request is not admitted.
type httpError struct {
	status int
	text   string
	retry  bool // it may be let in later
	full   bool // for want of room
}

// errNoRoom refuses a request because of a limit.
func errNoRoom(status int, text string) *httpError {
	return &httpError{status: status, text: text, retry: true, full: true}
}

func errClosing() *httpError {
	return &httpError{status: http.StatusServiceUnavailable, retry: true, text: "this server is closing: try again in a moment"}
}

// send answers the refused request.
func (r *httpError) send(w http.ResponseWriter, m jsonrpc.Envelope) {
	f := &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_REQUEST, Text: r.text}
	if r.retry {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		f.Code = transport.CodeUnavailable
	}
	writeFault(w, r.status, f)
}

// reject answers a refused request. If a limit was the cause, it records the refusal, so that the owner of the host can
// see which callers were refused, and how often.
func (d *handler) reject(w http.ResponseWriter, r *http.Request, who auth.Identity, m jsonrpc.Envelope, no *httpError) {
	if no.full {
		d.overload.FromPeer(r, audit.Record{Principal: who.Principal, Tool: transport.AdmissionTool, Rule: "limits", Error: no.text})
	}
	no.send(w, m)
}

// stepUp is the refusal of a call whose caller lacks the right to the tool, but can get it from an authorization server.
// The call itself takes its usual way, and is refused and recorded there; this says what its answer is called in HTTP
// ("Scope Challenge Handling" of the specification). It is nil when the call may pass or nothing could grant more: then a
// refusal that the model can read is better than one that the client takes for a broken connection.
func stepUp(who auth.Identity, message transport.Message) *auth.Error {
	need := message.MissingRights(who)
	if need == 0 || who.Scopes == nil {
		return nil
	}
	return &auth.Error{Kind: auth.Insufficient, Reason: fmt.Sprintf("%s needs the right %s", message.Content().Params.Name, need), Scope: who.Scopes(need)}
}
