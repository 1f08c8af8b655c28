package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Delays before a stream is resumed.
const (
	retryUsual = time.Second            // unless the server sets another
	retryLeast = 100 * time.Millisecond // the minimum, whatever the server sets
)

// A position is how far an event stream was read.
type position struct {
	id    string        // of the last event; "" if none has an id
	retry time.Duration // the delay before the stream is resumed
}

// readEvents calls f with the data of each event until f returns false, and updates the position.
func readEvents(body io.Reader, at *position, f func(data []byte) bool) error {
	in := bufio.NewReaderSize(body, 64<<10)
	var data []byte
	for {
		line, err := readLine(in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		at.note(line)
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = append(data, bytes.TrimPrefix(rest, []byte(" "))...); len(data) > maxMessage {
				return fmt.Errorf("it sent an event of more than %d bytes", maxMessage)
			}
			data = append(data, '\n')
			continue
		}
		if len(line) == 0 && len(data) > 0 {
			if !f(data) {
				return nil
			}
			data = data[:0]
		}
	}
}

// note updates the position from an id or retry line.
func (p *position) note(line []byte) {
	if id, ok := bytes.CutPrefix(line, []byte("id:")); ok && len(id) <= maxLine {
		p.id = strings.TrimSpace(string(id))
	} else if text, ok := bytes.CutPrefix(line, []byte("retry:")); ok {
		if ms, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31); err == nil {
			p.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// find returns the response to the request with an id, or nil if the stream ends before it.
func (w *httpWire) find(body io.Reader, at *position, id string) (found *message, err error) {
	err = readEvents(body, at, func(data []byte) bool {
		var m message
		if json.Unmarshal(data, &m) == nil && m.Method == "" && string(m.ID) == id {
			found = &m
			return false
		}
		w.take(data)
		return true
	})
	return found, err
}

// resume requests the rest of a stream, after the delay that the server has set.
func (w *httpWire) resume(ctx context.Context, at position) (*http.Response, error) {
	select {
	case <-time.After(min(max(at.retry, retryLeast), backoffMost)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	resp, err := w.do(context.WithValue(ctx, resumeKey{}, at.id), http.MethodGet, nil, message{})
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body.Close()
		return nil, &errDied{"it ended its answer before the result, and cannot resume it"}
	}
	return resp, nil
}

// resumeKey is the context key of the event id after which a stream is resumed.
type resumeKey struct{}

// expect calls cancel if the response to a request arrives on another stream. The returned function ends that, and returns
// the response or nil.
func (w *httpWire) expect(id string, cancel context.CancelCauseFunc) func() *message {
	var found atomic.Pointer[message]
	w.expected.Store(id, func(m message) { found.Store(&m); cancel(nil) })
	return func() *message { w.expected.Delete(id); return found.Load() }
}

// take handles a message that is not the response to the request of its stream. It reports whether data is a message.
func (w *httpWire) take(data []byte) bool {
	var m message
	switch err := json.Unmarshal(data, &m); {
	case err != nil:
		return false
	case m.Method == "":
		if deliver, ok := w.expected.Load(string(m.ID)); ok {
			deliver.(func(message))(m)
		}
		return true
	case len(m.ID) == 0:
		w.to.notified(m.Method, m.Params)
		return true
	}
	w.to.asked(m.ID, m.Method, m.Params, func(reply message) {
		ctx, cancel := context.WithTimeout(w.ctx, connectTime)
		defer cancel()
		if resp, err := w.post(ctx, reply); err == nil {
			resp.Body.Close()
		}
	})
	return true
}

// listen reads the GET event stream of a legacy server, if it has one. It calls asked after the request was sent.
func (w *httpWire) listen(asked func()) {
	defer asked()
	at, pause := position{retry: retryUsual}, retryLeast
	ctx := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { asked() }})
	for w.ctx.Err() == nil {
		resp, err := w.do(ctx, http.MethodGet, nil, message{})
		if err != nil {
			return // the server has no such stream
		}
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
			resp.Body.Close()
			return
		}
		_ = readEvents(resp.Body, &at, func(data []byte) bool {
			if w.take(data) {
				pause = retryLeast
			}
			return true
		})
		resp.Body.Close()
		pause = min(max(pause, at.retry), backoffMost)
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
		}
		if pause *= 2; at.id != "" { // resume, so that no message is lost
			ctx = context.WithValue(w.ctx, resumeKey{}, at.id)
		}
	}
}
