package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// workspacesPath begins the paths of workspaces.
const workspacesPath = "/w/"

// WorkspacePath returns the path of the MCP endpoint of a workspace.
func WorkspacePath(name string) string { return workspacesPath + name + Endpoint }

// WorkspacesDrain is how long requests in workspaces may run after SIGTERM: longer than a command is waited for.
const WorkspacesDrain = time.Minute

// Errors of [Workspaces].
var (
	// ErrNoWorkspace means that there is no workspace of this name, or that the caller may not know of it.
	ErrNoWorkspace = errors.New("this token has no workspace of this name: correct the address, or ask the owner of " +
		"this server")
	// ErrManyWorkspaces means that the caller has too many workspaces in use.
	ErrManyWorkspaces = errors.New("you have too many workspaces in use: try again after calls in others have ended")
)

// Workspaces are the workspaces that a server leads its callers to.
type Workspaces interface {
	transport.Recorder
	// Enter returns what answers one request of a caller in a workspace, which is idle if it has had only requests that
	// rest: those wait for events.
	Enter(ctx context.Context, who auth.Identity, name string, rests bool) (http.Handler, error)
}

// ServeWorkspaces serves clients of workspaces on l until ctx is done. It looks into messages as far as the limits need
// it; the host of the workspace checks them.
func ServeWorkspaces(ctx context.Context, all Workspaces, l net.Listener, cfg Config) error {
	e, err := newEntrance(ctx, all, cfg)
	if err != nil {
		return err
	}
	defer e.stop(transport.ErrClosed)
	mux := http.NewServeMux()
	e.withHealth(mux, func() error { return nil })
	front := &front{e, all}
	mux.HandleFunc(WorkspacePath("{name}"), front.serveMCP)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusNotFound, "the MCP endpoint of a workspace is "+WorkspacePath("NAME"))
	})
	return e.serve(ctx, l, mux, WorkspacesDrain, func(web *http.Server) error {
		rest, cancel := context.WithTimeout(context.Background(), transport.DrainRest)
		defer cancel()
		if web.Shutdown(rest) != nil {
			return web.Close() // a client has sent only part of a request
		}
		return nil
	})
}

// A front passes the requests of callers on to the hosts of workspaces.
type front struct {
	*entrance
	all Workspaces
}

// serveMCP passes one request on.
func (f *front) serveMCP(w http.ResponseWriter, r *http.Request) {
	who, ok := f.enter(w, r)
	if !ok || !checkMethod(w, r) {
		return
	}
	held := f.admission.lease(who.Principal)
	defer held.release()
	m, rests, refused := f.admit(w, r, held)
	if refused != nil {
		f.reject(w, r, who, m, refused)
		return
	}
	ctx, release := bindCredential(r.Context(), who, rests)
	defer release()
	if rests { // a stream would delay the shutdown
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(f.streams, end)()
	}
	next, err := f.all.Enter(ctx, who, r.PathValue("name"), rests || m.Method == string(mcp.MethodPing))
	if err != nil {
		f.reject(w, r, who, m, refusalOf(err))
		return
	}
	r = r.WithContext(ctx)
	r.URL.Path, r.URL.RawPath = Endpoint, ""
	next.ServeHTTP(&deadlineWriter{w, f.cfg.Limits.Write}, r)
}

// admit reads the message of a request, if it has one, and admits it. It reports whether the request waits for events.
func (f *front) admit(w http.ResponseWriter, r *http.Request, held *lease) (m jsonrpc.Envelope, rests bool,
	refused *httpError) {
	if r.Method != http.MethodPost {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a stream has no deadline
		if r.Method == http.MethodGet {
			return m, true, held.admitStream()
		}
		return m, false, nil
	}
	body, refused := readBody(w, r, held)
	if refused != nil {
		return m, false, refused
	}
	m, _ = jsonrpc.Open(body) // the host says what is wrong
	if m.Method == string(mcp.MethodSubscriptionsListen) {
		return m, true, held.admitStream()
	}
	return m, false, held.admitRequest("", m)
}

// refusalOf returns the answer to a request that no workspace gets.
func refusalOf(err error) *httpError {
	switch {
	case errors.Is(err, ErrNoWorkspace):
		return &httpError{status: http.StatusNotFound, text: ErrNoWorkspace.Error()}
	case errors.Is(err, ErrManyWorkspaces):
		return errNoRoom(http.StatusTooManyRequests, err.Error())
	}
	return &httpError{status: http.StatusServiceUnavailable, retry: true, text: err.Error()}
}

// A deadlineWriter gives the client the full time-out for each write.
type deadlineWriter struct {
	http.ResponseWriter
	timeout time.Duration
}

// Unwrap lets http.ResponseController reach the connection.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *deadlineWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *deadlineWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

func (w *deadlineWriter) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout)) // fails only without one
}
