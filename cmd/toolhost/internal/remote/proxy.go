package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// Proxy relays HTTP clients, whose requests were authorized before and carry the authorization for the far host. A
// client that leaves ends its request at the far host too, which does what it does for a client of its own.
func Proxy(near *Near, quiet *log.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
			r.Out.Header.Del("Origin") // it was checked here
			// An offer of HTTP/2, as curl and Java make it, is for the next hop alone. Connection cannot take the token away.
			r.Out.Header.Del("Connection")
			r.Out.Header.Del("Upgrade")
			r.Out.Header.Set("Authorization", r.In.Header.Get("Authorization"))
		},
		Transport: near, FlushInterval: -1, ErrorLog: quiet,
		ModifyResponse: func(response *http.Response) error {
			if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
				ctx := response.Request.Context()
				visit, _ := ctx.Value(visitKey{}).(*visit)
				response.Body = &eventBody{ReadCloser: response.Body, ctx: ctx, id: idOf(ctx), session: near.session(),
					visit: visit}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			status, code := http.StatusBadGateway, codeInternal
			if _, ok := errors.AsType[*NoLink](err); ok {
				status, code = http.StatusServiceUnavailable, codeUnavailable
			} else if cause := context.Cause(r.Context()); cause != nil {
				err = cause
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(errorMessage(idOf(r.Context()), code, err)) // fails when the client is gone
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
		if err != nil {
			http.Error(w, "the message cannot be read: "+err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), idKey{}, examine(body))))
	})
}

type idKey struct{}

// idOf returns the id of the message of a request; nil if it has none.
func idOf(ctx context.Context) json.RawMessage {
	m, _ := ctx.Value(idKey{}).(message)
	if !m.isRequest() {
		return nil
	}
	return m.ID
}

// An eventBody is an event stream that tells its client when the far host is lost before the answer came.
type eventBody struct {
	io.ReadCloser
	ctx     context.Context
	id      json.RawMessage // of the request; nil if it has been answered or is none
	session *session
	visit   *visit        // nil if the link stays
	parked  bool          // the link was closed because the workspace is idle
	line    []byte        // the beginning of the current line
	last    *bytes.Reader // the last event; nil while the far host sends
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	switch {
	case b.last != nil:
		return b.last.Read(p)
	case b.parked:
		return b.visit.wait(b.ctx, p)
	}
	n, err := b.ReadCloser.Read(p)
	b.follow(p[:n])
	if err != nil && b.visit != nil && b.visit.idle() {
		b.parked = true
		return n, nil
	}
	if err != nil && !errors.Is(err, io.EOF) && b.id != nil && b.ctx.Err() == nil {
		unknown := errorMessage(b.id, codeInternal, &Unknown{b.session.lost(err)})
		b.last = bytes.NewReader(fmt.Appendf(nil, "\n\nevent: message\ndata: %s\n\n", unknown))
		return n, nil
	}
	return n, err
}

// maxIDWithin is how much of an event is examined for the id that it answers, which begins it.
const maxIDWithin = 512

// follow notes when the answer has passed.
func (b *eventBody) follow(text []byte) {
	for part := range bytes.Lines(text) {
		if b.id == nil {
			return
		}
		b.line = append(b.line, part[:min(len(part), maxIDWithin-len(b.line))]...)
		if part[len(part)-1] != '\n' {
			continue
		}
		data, isData := bytes.CutPrefix(b.line, []byte("data:"))
		if m := examine(data); isData && m.Method == "" && bytes.Equal(m.ID, b.id) {
			b.id = nil
		}
		b.line = b.line[:0]
	}
}

const (
	// maxAbout bounds the description that a far host gives of itself, and aboutTime how long it may take to give it.
	maxAbout, aboutTime = 1 << 20, time.Minute
)

// ReadAbout reads the description that a far host gives of itself.
func ReadAbout(ctx context.Context, near *Near, path string, into any) error {
	slow := fmt.Errorf("the far host described nothing of itself in %s", aboutTime)
	ctx, cancel := context.WithTimeoutCause(ctx, aboutTime, slow)
	defer cancel()
	raw, err := near.ask(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// ask sends a request of the near side itself.
func (n *Near) ask(ctx context.Context, method, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := n.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAbout))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the far host answers %s: %s", response.Status, bytes.TrimSpace(raw))
	}
	return raw, err
}

// Tunnel connects to what a far host joins at a path.
func Tunnel(ctx context.Context, near *Near, path string) (net.Conn, error) {
	s, err := near.linked(ctx, time.Now().Add(LinkWait))
	if err != nil {
		return nil, err
	}
	body, in := io.Pipe()
	response, err := s.post(context.WithoutCancel(ctx), path, body)
	if err != nil {
		return nil, err
	}
	return &tunnel{ReadCloser: response.Body, in: in}, nil
}

// A tunnel is a connection through a channel.
type tunnel struct {
	io.ReadCloser
	address
	in *io.PipeWriter
}

// Write implements net.Conn.
func (t *tunnel) Write(p []byte) (int, error) { return t.in.Write(p) }

// Close implements net.Conn.
func (t *tunnel) Close() error { return errors.Join(t.in.Close(), t.ReadCloser.Close()) }

// CloseWrite ends the direction to the far host.
func (t *tunnel) CloseWrite() error { return t.in.Close() }

// LocalAddr, RemoteAddr and the deadlines implement net.Conn. There are no deadlines.
func (t *tunnel) LocalAddr() net.Addr              { return t.address }
func (t *tunnel) RemoteAddr() net.Addr             { return t.address }
func (t *tunnel) SetDeadline(time.Time) error      { return nil }
func (t *tunnel) SetReadDeadline(time.Time) error  { return nil }
func (t *tunnel) SetWriteDeadline(time.Time) error { return nil }

// Join copies between a connection and a stream until the connection has nothing more to send, and, if the end of that
// can be passed on, until the stream has ended as well.
func Join(ctx context.Context, conn net.Conn, in io.Reader, out io.Writer) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := io.Copy(conn, in)
		half, ok := conn.(halfCloser)
		if err != nil || !ok || half.CloseWrite() != nil {
			conn.Close()
		}
	}()
	_, err := io.Copy(out, conn)
	if half, ok := out.(halfCloser); ok && err == nil && half.CloseWrite() == nil {
		<-done
	}
}

// A halfCloser can end one direction of a connection.
type halfCloser interface{ CloseWrite() error }
