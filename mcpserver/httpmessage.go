package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// readBody reads the message that a request carries, and leaves it to be read again. It returns status 0 when
// the message may be looked at.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, text string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType, "a message is sent as Content-Type: application/json"
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, http.StatusUnsupportedMediaType, fmt.Sprintf("the Content-Encoding %q is not taken: send the message uncompressed", coding)
	}
	wire := http.NewResponseController(w)
	_ = wire.SetReadDeadline(time.Now().Add(bodyTime)) // what has no connection to bound has none to hold
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, fmt.Sprintf("a message is at most %d bytes long", MaxMessage)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, fmt.Sprintf("the message was not sent within %s", bodyTime)
	case err != nil:
		return nil, http.StatusBadRequest, "the body could not be read: " + err.Error()
	}
	_ = wire.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, 0, ""
}

// unknownVersion is the fault of a protocol version that nobody here speaks. Without a header the oldest
// version over this transport is meant.
func unknownVersion(m envelope, version string) *fault {
	if version == "" || mcp.IsValidProtocolVersion(version) {
		return nil
	}
	details := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
	return &fault{id: m.ID, code: details.Code, text: details.Message, data: details.Data}
}

// A runningTable holds the requests in flight. In a session an id names one request at a time; modern requests
// belong to nothing, so that theirs need not differ.
type runningTable struct {
	mu    sync.Mutex
	count int
	ids   map[string]bool // session and id
}

// enter takes a request in. leave is called when it has been answered.
func (t *runningTable) enter(session string, m envelope) (leave func(), status int, wrong *fault) {
	if m.Method == "" || m.ID == nil {
		return func() {}, 0, nil
	}
	key := session + "\x00" + string(m.ID)
	t.mu.Lock()
	defer t.mu.Unlock()
	if session != "" && t.ids[key] {
		return nil, http.StatusBadRequest, &fault{id: m.ID, code: mcp.INVALID_REQUEST, text: fmt.Sprintf("a request with the id %s is still running", m.ID)}
	}
	if t.count >= MaxInFlight {
		text := fmt.Sprintf("%d requests are in flight, no more are taken until some are answered", MaxInFlight)
		return nil, http.StatusServiceUnavailable, &fault{id: m.ID, code: mcp.INVALID_REQUEST, text: text}
	}
	t.count++
	if session != "" {
		t.ids[key] = true
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.count--
		delete(t.ids, key)
	}, 0, nil
}

// deny answers a request that is refused as a whole.
func deny(w http.ResponseWriter, status int, text string) {
	answer(w, status, &fault{code: mcp.INVALID_REQUEST, text: text})
}

// answer sends a fault.
func answer(w http.ResponseWriter, status int, f *fault) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f.response()) // a client that is gone needs no answer
}
