package web

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

	"github.com/toolhost/toolhost/mcpserver/internal/transport"
	"github.com/toolhost/toolhost/mcpserver/internal/wire"
)

// repeated finds a header that says twice what may be said once. Authorization is not among them: see
// [auth.Sent].
func repeated(h http.Header) (name string) {
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

// empty reports whether a body ends before it has begun. It reads one byte at most.
func empty(body io.Reader) bool {
	n, err := io.ReadFull(body, make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// readBody reads the message that a request carries, as far as there is room for it, and leaves it to be read again.
func readBody(w http.ResponseWriter, r *http.Request, room *place) ([]byte, *rejection) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &rejection{status: http.StatusUnsupportedMediaType, text: "a message is sent as Content-Type: application/json"}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &rejection{status: http.StatusUnsupportedMediaType, text: fmt.Sprintf("the Content-Encoding %q is not taken: send the message uncompressed", coding)}
	}
	if r.ContentLength > transport.MaxMessage {
		return nil, tooLarge()
	}
	if !room.read(1) {
		return nil, noRoom(http.StatusServiceUnavailable, "too many messages are on their way in: try again when some have arrived")
	}
	defer room.read(-1)
	wire := http.NewResponseController(w)
	_ = wire.SetReadDeadline(time.Now().Add(room.a.limits.Body)) // what has no connection to bound has none to hold
	body, err := io.ReadAll(&roomReader{r: http.MaxBytesReader(w, r.Body, transport.MaxMessage), room: room})
	_ = wire.SetWriteDeadline(time.Now().Add(room.a.limits.Write)) // the time to send is not that to read the answer
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge()
	case errors.Is(err, transport.ErrNoRoom):
		return nil, noRoom(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &rejection{status: http.StatusRequestTimeout, text: fmt.Sprintf("the message was not sent within %s", room.a.limits.Body)}
	case err != nil:
		return nil, &rejection{status: http.StatusBadRequest, text: "the body could not be read: " + err.Error()}
	}
	_ = wire.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// tooLarge rejects a message that is longer than the limit.
func tooLarge() *rejection {
	return &rejection{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("a message is at most %d bytes long", transport.MaxMessage)}
}

// A roomReader takes room for what is read, as it is read: a length that is only announced holds nothing.
type roomReader struct {
	r    io.Reader
	room *place
}

func (r *roomReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if !r.room.takeBytes(n) {
		return 0, transport.ErrNoRoom
	}
	return n, err
}

// unknownVersion is the fault of a protocol version that nobody here speaks. Without a header the oldest
// version over this transport is meant.
func unknownVersion(m wire.Envelope, version string) *wire.Fault {
	if version == "" || mcp.IsValidProtocolVersion(version) {
		return nil
	}
	details := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
	return &wire.Fault{ID: m.ID, Code: details.Code, Text: details.Message, Data: details.Data}
}

// deny answers a request that is refused as a whole.
func deny(w http.ResponseWriter, status int, text string) {
	answer(w, status, &wire.Fault{Code: mcp.INVALID_REQUEST, Text: text})
}

// answer sends a fault.
func answer(w http.ResponseWriter, status int, f *wire.Fault) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f.Response()) // a client that is gone needs no answer
}

// announced reports whether the headers of a request of the era without sessions say what its body says. If not, that is what is wrong
// with it, and the library says so.
func announced(r *http.Request, m wire.Envelope) bool {
	return r.Header.Get(mcp.HeaderMethod) == m.Method && (m.Method != wire.MethodCall || r.Header.Get(mcp.HeaderName) == m.Params.Name)
}
