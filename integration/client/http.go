package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// HTTP speaks to a host over streamable HTTP.
func HTTP(ctx context.Context, era Era, url, token string) (*Conn, error) {
	t := &web{era: era, url: url, token: token, http: &http.Client{Transport: sending()},
		running: map[int64]context.CancelFunc{}}
	c := &Conn{era: era, t: t}
	t.conn = c
	return c, c.start(ctx)
}

// Session returns the id of the legacy session of a client over HTTP.
func (c *Conn) Session() string {
	w, ok := c.t.(*web)
	if !ok {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

type web struct {
	era        Era
	url, token string
	http       *http.Client
	conn       *Conn

	mu      sync.Mutex
	session string
	running map[int64]context.CancelFunc
}

// send returns when the request has gone out: the host gets it, also from a client that leaves at once.
func (t *web) send(ctx context.Context, request map[string]any) (<-chan Response, error) {
	answer := make(chan Response, 1)
	ctx, cancel := context.WithCancel(ctx)
	written := make(chan struct{})
	leave := sync.OnceFunc(func() { close(written) })
	ctx = onceSent(ctx, leave)
	id := request["id"].(int64)
	t.mu.Lock()
	t.running[id] = cancel
	t.mu.Unlock()
	go func() {
		defer leave() // it may never have been written
		defer cancel()
		r, err := t.post(ctx, request)
		t.mu.Lock()
		delete(t.running, id)
		t.mu.Unlock()
		if err != nil {
			r.Error = &Error{Message: err.Error()}
		}
		answer <- r
	}()
	<-written
	return answer, nil
}

func (t *web) notify(ctx context.Context, notification map[string]any) error {
	if t.era == Modern && notification["method"] == "notifications/cancelled" {
		id := notification["params"].(map[string]any)["requestId"].(int64)
		t.mu.Lock()
		defer t.mu.Unlock()
		if cancel, ok := t.running[id]; ok { // else it has been answered
			cancel() // closing the stream cancels in this era
		}
		return nil
	}
	_, err := t.post(ctx, notification)
	return err
}

// post sends one message and reads its answer, if it has one.
func (t *web) post(ctx context.Context, message map[string]any) (Response, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return Response{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return Response{}, err
	}
	t.headers(req, message)
	resp, err := t.http.Do(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		t.mu.Lock()
		t.session = id
		t.mu.Unlock()
	}
	if resp.StatusCode == http.StatusAccepted {
		return Response{}, nil
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return t.events(resp.Body)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Response{}, err
	}
	var r Response
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("HTTP status %s: %s", resp.Status, raw)
	}
	return r, nil
}

func (t *web) headers(req *http.Request, message map[string]any) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+t.token)
	method, _ := message["method"].(string)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != "" {
		req.Header.Set("Mcp-Session-Id", t.session)
	}
	if t.era == Legacy && method != "initialize" || t.era == Modern {
		req.Header.Set("MCP-Protocol-Version", string(t.era))
	}
	if t.era == Modern {
		req.Header.Set("Mcp-Method", method)
		if params, ok := message["params"].(map[string]any); ok {
			if name, ok := params["name"].(string); ok {
				req.Header.Set("Mcp-Name", name)
			}
		}
	}
}

// events reads a stream of server-sent events up to the answer.
func (t *web) events(body io.Reader) (Response, error) {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			var m struct {
				Response
				Notification
			}
			if err := json.Unmarshal(data, &m); err != nil {
				return Response{}, err
			}
			if m.Method == "" {
				return m.Response, nil
			}
			if t.conn.OnNotification != nil {
				t.conn.OnNotification(m.Notification)
			}
		}
		if err != nil {
			return Response{}, fmt.Errorf("the stream ended without an answer: %w", err)
		}
	}
}

func (t *web) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, cancel := range t.running {
		cancel()
	}
	t.http.CloseIdleConnections()
	return nil
}
