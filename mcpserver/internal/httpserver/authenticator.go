package httpserver

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// errRevoked is the cause of cancelling a call if its credential is revoked.
var errRevoked = errors.New("the credential of this call was revoked, the call was ended")

// An authenticator identifies callers. It throttles and records failures.
type authenticator struct {
	verifier auth.Verifier
	metadata *auth.Metadata // nil without an authorization server
	to       transport.Recorder
	throttle *throttle
	refused  *transport.RejectionLog
	watched  sync.Map // set of Identity.Valid: credentials whose revocation is watched
}

func newAuthenticator(to transport.Recorder, cfg Config) *authenticator {
	return &authenticator{
		verifier: cfg.Verifier, metadata: cfg.Metadata, to: to, throttle: newThrottle(),
		refused: transport.NewRejectionLog(to),
	}
}

// identify returns the caller of a request. If it reports false, it has answered the request.
func (c *authenticator) identify(w http.ResponseWriter, r *http.Request) (who auth.Identity, ok bool) {
	bearer, wrong := auth.ParseAuthorization(r.Header.Values("Authorization"))
	if wait := c.throttle.Delay(r.RemoteAddr, bearer); wait > 0 {
		c.refuse(w, r, errors.New("token not verified: too many wrong tokens from this address"), wait)
		return auth.Identity{}, false
	}
	who, err := c.verifier.Verify(r.Context(), bearer)
	if err == nil && wrong == "" && who.Principal != "" && who.Rights != 0 {
		c.throttle.Passed(r.RemoteAddr, bearer)
		c.watch(who)
		return who, true
	}
	if err == nil {
		err = &auth.Error{Kind: auth.Insufficient, Reason: "the token gives no rights"}
	}
	if e, ok := errors.AsType[*auth.Error](err); ok && wrong != "" {
		err = &auth.Error{Kind: auth.Missing, Reason: wrong, Scope: e.Scope}
	}
	var wait time.Duration
	if e, ok := errors.AsType[*auth.Error](err); !ok || e.Kind == auth.Invalid {
		wait = c.throttle.Failed(r.RemoteAddr)
	}
	c.refuse(w, r, err, wait)
	return auth.Identity{}, false
}

// refuse answers and records a request without a valid token. A positive wait means that the address has sent too many.
func (c *authenticator) refuse(w http.ResponseWriter, r *http.Request, err error, wait time.Duration) {
	c.record(r, err)
	c.to.CountUnauthorized()
	status, text := auth.Status(err), err.Error()
	if e, ok := errors.AsType[*auth.Error](err); ok && e.Retry > 0 {
		w.Header().Set("Retry-After", wholeSeconds(e.Retry))
	}
	switch {
	case wait > 0:
		status, text = http.StatusTooManyRequests, "too many wrong tokens from this address: try again later"
		w.Header().Set("Retry-After", wholeSeconds(wait))
	case status == http.StatusUnauthorized:
		text += "; a bearer token is required: send Authorization: Bearer <token>"
		fallthrough
	case status == http.StatusForbidden:
		w.Header().Set("WWW-Authenticate", auth.Challenge(err, c.metadataURL(r)))
	}
	writeError(w, status, text)
}

func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// record writes an audit record of a refused request. It leaves out the token, which may be valid for another server.
func (c *authenticator) record(r *http.Request, err error) {
	text := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		text += ": " + cause.Error()
	}
	c.refused.FromPeer(r, audit.Record{Tool: "(authentication)", Rule: "authentication", Error: text})
}

// watch ends the background tasks of a principal when its credential is revoked. [bindCredential] ends the requests.
func (c *authenticator) watch(who auth.Identity) {
	if who.Valid == nil {
		return
	}
	if _, known := c.watched.LoadOrStore(who.Valid, true); known {
		return
	}
	context.AfterFunc(who.Valid, func() {
		c.watched.Delete(who.Valid)
		c.to.EndTasks(who.Principal)
	})
}

// bindCredential returns a context that is done when the credential of a request is revoked. A stream has no end of its
// own, so its context is also done when the credential expires.
func bindCredential(ctx context.Context, who auth.Identity, stream bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopWatching, stopTimer := func() bool { return true }, func() {}
	if who.Valid != nil {
		stopWatching = context.AfterFunc(who.Valid, func() { cancel(errRevoked) })
	}
	if stream && !who.Expires.IsZero() {
		ctx, stopTimer = context.WithDeadline(ctx, who.Expires)
	}
	return ctx, func() {
		stopWatching()
		stopTimer()
		cancel(nil)
	}
}

// serveMetadata serves the metadata that names the authorization server.
func (e *entrance) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if err := CheckAddress(r, e.cfg.Hosts); err != nil {
		writeError(w, http.StatusForbidden, err.Error())
		return
	}
	m := *e.auth.metadata
	m.Resource = e.auth.resource(r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=3600")
	_ = json.NewEncoder(w).Encode(m) // fails if the client has disconnected
}

// resource returns the URL of the MCP endpoint that clients use.
func (c *authenticator) resource(r *http.Request) string {
	if c.metadata.Resource != "" {
		return c.metadata.Resource
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	path := strings.TrimPrefix(r.URL.Path, auth.MetadataPath)
	if !strings.HasPrefix(path, workspacesPath) {
		path = Endpoint
	}
	return scheme + "://" + r.Host + path
}

// metadataURL returns the URL of the metadata. RFC 9728, section 3.1 inserts its path between the host and the path of
// the resource.
func (c *authenticator) metadataURL(r *http.Request) string {
	if c.metadata == nil {
		return ""
	}
	u, err := url.Parse(c.resource(r))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + auth.MetadataPath + strings.TrimSuffix(u.EscapedPath(), "/")
}
