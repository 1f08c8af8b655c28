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
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// repeatedHeader finds a header that says twice what may be said once. Authorization is not among them: see
// [auth.ParseAuthorization].
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

// isEmpty reports whether a body ends before it has begun. It reads one byte at most.
func isEmpty(body io.Reader) bool {
	n, err := io.ReadFull(body, make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// readBody reads the message that a request carries, as far as there is room for it, and leaves it to be read again.
func readBody(w http.ResponseWriter, r *http.Request, room *lease) ([]byte, *httpError) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &httpError{status: http.StatusUnsupportedMediaType, text: "a message is sent as Content-Type: application/json"}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &httpError{status: http.StatusUnsupportedMediaType, text: fmt.Sprintf("the Content-Encoding %q is not taken: send the message uncompressed", coding)}
	}
	if r.ContentLength > transport.MaxMessage {
		return nil, tooLarge()
	}
	if !room.admitRead(1) {
		return nil, errNoRoom(http.StatusServiceUnavailable, "too many messages are on their way in: try again when some have arrived")
	}
	defer room.admitRead(-1)
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(room.admission.limits.Body)) // what has no connection to bound has none to hold
	body, err := io.ReadAll(&countingReader{r: http.MaxBytesReader(w, r.Body, transport.MaxMessage), lease: room})
	_ = rc.SetWriteDeadline(time.Now().Add(room.admission.limits.Write)) // the time to send is not that to read the answer
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge()
	case errors.Is(err, transport.ErrNoRoom):
		return nil, errNoRoom(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &httpError{status: http.StatusRequestTimeout, text: fmt.Sprintf("the message was not sent within %s", room.admission.limits.Body)}
	case err != nil:
		return nil, &httpError{status: http.StatusBadRequest, text: "the body could not be read: " + err.Error()}
	}
	_ = rc.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// tooLarge rejects a message that is longer than the limit.
func tooLarge() *httpError {
	return &httpError{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("a message is at most %d bytes long", transport.MaxMessage)}
}

// A countingReader takes room for what is read, as it is read: a length that is only announced holds nothing.
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

// unknownVersion returns the error for a protocol version that is not supported. Without a header the oldest
// version over this transport is meant.
func unknownVersion(m jsonrpc.Envelope, version string) *jsonrpc.Error {
	if version == "" || mcp.IsValidProtocolVersion(version) {
		return nil
	}
	details := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
	return &jsonrpc.Error{ID: m.ID, Code: details.Code, Text: details.Message, Data: details.Data}
}

// writeError answers a request that is refused as a whole.
func writeError(w http.ResponseWriter, status int, text string) {
	writeFault(w, status, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Text: text})
}

// writeFault sends a fault.
func writeFault(w http.ResponseWriter, status int, f *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f.Response()) // a client that is gone needs no answer
}

// checkHeaders reports whether the headers of a request of the era without sessions say what its body says. If not, that is what is wrong
// with it, and the library says so.
func checkHeaders(r *http.Request, m jsonrpc.Envelope) bool {
	return r.Header.Get(mcp.HeaderMethod) == m.Method && (m.Method != jsonrpc.MethodCall || r.Header.Get(mcp.HeaderName) == m.Params.Name)
}
