package httpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// repeatedHeader returns the name of a header that must occur once and occurs more often. A proxy could have used the
// other value. [auth.ParseAuthorization] checks Authorization.
func repeatedHeader(h http.Header) (name string) {
	for _, name := range []string{
		"Origin", "Content-Type", "Content-Encoding", mcp.HeaderProtocolVersion, server.HeaderKeySessionID,
		mcp.HeaderMethod, mcp.HeaderName, headerLastEvent,
	} {
		if len(h.Values(name)) > 1 {
			return name
		}
	}
	return ""
}

// isEmpty reports whether a body is empty. It reads at most one byte.
func isEmpty(body io.Reader) bool {
	n, err := io.ReadFull(body, make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// readBody reads the message of a request within the limits, and replaces r.Body so that it can be read again.
func readBody(w http.ResponseWriter, r *http.Request, room *lease) ([]byte, *httpError) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &httpError{status: http.StatusUnsupportedMediaType,
			text: fmt.Sprintf("the Content-Type is %q: send messages as application/json",
				r.Header.Get("Content-Type"))}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &httpError{status: http.StatusUnsupportedMediaType,
			text: fmt.Sprintf("the Content-Encoding %q is not supported: send messages uncompressed", coding)}
	}
	if r.ContentLength > transport.MaxMessage {
		return nil, tooLarge()
	}
	if !room.admitRead(1) {
		return nil, errNoRoom(http.StatusServiceUnavailable,
			"too many messages are being received: try again after some have arrived")
	}
	defer room.admitRead(-1)
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(room.admission.limits.Body)) // fails only without a connection
	body, err := io.ReadAll(&countingReader{r: http.MaxBytesReader(w, r.Body, transport.MaxMessage), lease: room})
	_ = rc.SetWriteDeadline(time.Now().Add(room.admission.limits.Write)) // starts only after the body was read
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge()
	case errors.Is(err, transport.ErrNoRoom):
		return nil, errNoRoom(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &httpError{status: http.StatusRequestTimeout,
			text: fmt.Sprintf("the message did not arrive within %s: send it again", room.admission.limits.Body)}
	case err != nil:
		return nil, &httpError{status: http.StatusBadRequest, text: "cannot read the body: " + err.Error()}
	}
	_ = rc.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// tooLarge returns the error for a message over the limit.
func tooLarge() *httpError {
	return &httpError{status: http.StatusRequestEntityTooLarge,
		text: fmt.Sprintf("the message is longer than %d bytes: split the call", transport.MaxMessage)}
}

// A countingReader reserves bytes as they are read. A Content-Length alone reserves nothing.
type countingReader struct {
	r     io.Reader
	lease *lease
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if !r.lease.takeBytes(n) {
		return 0, transport.ErrNoRoom
	}
	return n, err
}

// unknownVersion returns the error for a protocol version that is not supported. A missing header means the oldest
// version of this transport.
func unknownVersion(m jsonrpc.Envelope, version string) *jsonrpc.Error {
	if version == "" || mcp.IsValidProtocolVersion(version) {
		return nil
	}
	details := mcp.UnsupportedProtocolVersionError{Version: version,
		Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
	return &jsonrpc.Error{ID: m.ID, Code: details.Code, Text: details.Message, Data: details.Data}
}

// writeError answers a request before its message is known.
func writeError(w http.ResponseWriter, status int, text string) {
	writeRPCError(w, status, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Text: text})
}

// writeRPCError answers with a JSON-RPC error.
func writeRPCError(w http.ResponseWriter, status int, f *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f.Response()) // fails if the client has disconnected
}

// checkHeaders reports whether the headers of a modern request agree with its body. If they do not, the library refuses
// the request.
func checkHeaders(r *http.Request, m jsonrpc.Envelope) bool {
	return r.Header.Get(mcp.HeaderMethod) == m.Method &&
		(m.Method != jsonrpc.MethodCall || r.Header.Get(mcp.HeaderName) == m.Params.Name)
}

// checkOwn returns the error for a modern request that the library does not get, if its headers do not agree with its
// body. A request without a name may have any.
func checkOwn(r *http.Request, m jsonrpc.Envelope, name string) *jsonrpc.Error {
	declared, _ := m.Params.Meta[mcp.MetaKeyProtocolVersion].(string)
	given, ok := mcp.DecodeHeaderValue(r.Header.Get(mcp.HeaderName))
	text := ""
	switch {
	case r.Header.Get(mcp.HeaderProtocolVersion) != declared:
		text = fmt.Sprintf("the header %s is %q, but the message says %q: send the same version",
			mcp.HeaderProtocolVersion, r.Header.Get(mcp.HeaderProtocolVersion), declared)
	case r.Header.Get(mcp.HeaderMethod) != m.Method:
		text = fmt.Sprintf("the header %s is %q, but the method is %q: send the same", mcp.HeaderMethod,
			r.Header.Get(mcp.HeaderMethod), m.Method)
	case name != "" && (!ok || given != name):
		text = fmt.Sprintf("the header %s is %q, but the task is %q: send the same", mcp.HeaderName,
			r.Header.Get(mcp.HeaderName), name)
	default:
		return nil
	}
	return &jsonrpc.Error{ID: m.ID, Code: mcp.HEADER_MISMATCH, Text: text}
}

// An httpError says why a request is refused.
type httpError struct {
	status int
	text   string
	retry  bool // the client may try again
	full   bool // a limit is reached
}

// errNoRoom returns the error for a request that exceeds a limit.
func errNoRoom(status int, text string) *httpError {
	return &httpError{status: status, text: text, retry: true, full: true}
}

func errClosing() *httpError {
	return &httpError{status: http.StatusServiceUnavailable, retry: true,
		text: "this server is closing: try again in a moment"}
}

// send writes the error as the response.
func (r *httpError) send(w http.ResponseWriter, m jsonrpc.Envelope) {
	f := &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_REQUEST, Text: r.text}
	if r.retry {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		f.Code = transport.CodeUnavailable
	}
	writeRPCError(w, r.status, f)
}

// stepUp returns an error if the caller lacks the right to a tool but can get it from an authorization server. It
// decides only about the HTTP status ("Scope Challenge Handling" of the specification): the pipeline refuses and
// records the call. Without an authorization server, stepUp returns nil: a client would take the status for a broken
// connection, and the model would not see the refusal.
func stepUp(who auth.Identity, message transport.Message) *auth.Error {
	need := message.MissingRights(who)
	if need == 0 || who.Scopes == nil {
		return nil
	}
	return &auth.Error{Kind: auth.Insufficient, Reason: fmt.Sprintf("%s needs the right %s", message.Content().Params.Name,
		need), Scope: who.Scopes(need)}
}
