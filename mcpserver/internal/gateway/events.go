package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
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
func (w *httpWire) find(body io.Reader, at *position, id int64) (found *message, err error) {
	var wrong error
	err = readEvents(body, at, func(data []byte) bool {
		all, odd := messagesIn(data)
		for _, m := range all {
			if found == nil && m.answers(id) {
				found = &m
			} else {
				w.handle(m)
			}
		}
		if odd {
			w.noise.add(data)
		}
		if odd && len(all) == 0 && isDamaged(data) {
			wrong = &notMessage{bytes.Clone(data)}
		}
		return found == nil && wrong == nil
	})
	return found, cmp.Or(wrong, err)
}

// answers reports whether a message on the stream of a request is the response to it. An error that names no request
// is.
func (m message) answers(id int64) bool {
	n, ok := m.number()
	return m.Method == "" && (ok && n == id || m.isNull() && m.Error != nil)
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

// expect calls cancel if the response to a request arrives on another stream. The returned function ends that, and
// returns the response or nil.
func (w *httpWire) expect(id int64, cancel context.CancelCauseFunc) func() *message {
	var found atomic.Pointer[message]
	w.expected.Store(id, func(m message) { found.Store(&m); cancel(nil) })
	return func() *message { w.expected.Delete(id); return found.Load() }
}

// take handles the messages of an event that is not on the stream of a request. It reports whether there are any.
func (w *httpWire) take(data []byte) bool {
	all, _ := messagesIn(data)
	for _, m := range all {
		w.handle(m)
	}
	return len(all) > 0
}

// handle handles a message that is not the response to the request of its stream.
func (w *httpWire) handle(m message) {
	switch {
	case m.Method == "":
		id, _ := m.number()
		if deliver, ok := w.expected.Load(id); ok {
			deliver.(func(message))(m)
		}
	case len(m.ID) == 0:
		w.to.notified(m.Method, m.Params)
	default:
		w.to.asked(m.ID, m.Method, m.Params, func(reply message) {
			ctx, cancel := context.WithTimeout(w.ctx, connectTime)
			defer cancel()
			if resp, err := w.post(ctx, reply); err == nil {
				resp.Body.Close()
			}
		})
	}
}

// listen reads the GET event stream of a legacy server, if it has one. It calls asked after the request was sent.
func (w *httpWire) listen(asked func()) {
	defer asked()
	at, pause := position{retry: retryUsual}, retryLeast
	ctx := httptrace.WithClientTrace(w.ctx,
		&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { asked() }})
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
