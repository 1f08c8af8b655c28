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
	"strconv"
	"strings"
	"time"
)

// How long a client waits before it asks for the rest of a stream.
const (
	retryUsual = time.Second            // where the server does not say
	retryLeast = 100 * time.Millisecond // whatever the server says
)

// A position is how far a stream of events was read: the id of the last event, "" if none has one, and how long the server wants a client
// to wait before it asks for the rest.
type position struct {
	id    string
	retry time.Duration
}

// readEvents calls f with the data of each event until it returns false, and notes the position.
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

// note notes a line that tells the position.
func (p *position) note(line []byte) {
	if id, ok := bytes.CutPrefix(line, []byte("id:")); ok && len(id) <= maxLine {
		p.id = strings.TrimSpace(string(id))
	} else if text, ok := bytes.CutPrefix(line, []byte("retry:")); ok {
		if ms, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31); err == nil {
			p.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// find returns the answer to the request of an id in a stream, nil if the stream ends before.
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

// resume waits as long as the server wants and asks for the rest of a stream.
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
		return nil, &errDied{"it ended its answer before the result, and does not go on with it"}
	}
	return resp, nil
}

// resumeKey carries the id of the event after which a stream goes on.
type resumeKey struct{}
