package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A stdioStream carries the messages to one far host.
type stdioStream struct {
	session *session
	in      *io.PipeWriter
	lines   chan []byte   // to be written to in, which blocks while the link is down; closed after the last one
	ended   chan struct{} // closed after the far host has ended it and its requests are answered
}

// A waiting is a message that waits to be sent.
type waiting struct {
	line []byte
	message
	deadline time.Time
	part     bool // of a line that is too long
	more     bool // a part that is not the first
}

// open begins a stream.
func (c *stdioClient) open(ctx context.Context, s *session) *stdioStream {
	body, in := io.Pipe()
	stream := &stdioStream{session: s, in: in, lines: make(chan []byte), ended: make(chan struct{})}
	go stream.write()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer close(stream.ended)
		defer stop()
		err := c.receive(ctx, s, body)
		body.CloseWithError(io.ErrClosedPipe)
		c.mu.Lock()
		lost := c.pending
		c.pending, c.hidden = map[string]bool{}, map[string]bool{}
		c.mu.Unlock()
		for id := range lost {
			c.fail(message{ID: json.RawMessage(id), Method: "?"}, codeInternal, &Unknown{s.lost(err)})
		}
	}()
	return stream
}

// errStreamEnded is the reason when a far host ends a stream in order.
var errStreamEnded = errors.New("the far host has ended")

// receive passes what the far host sends to the client.
func (c *stdioClient) receive(ctx context.Context, s *session, body io.ReadCloser) error {
	response, err := s.post(context.WithoutCancel(ctx), StdioPath, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	r := bufio.NewReaderSize(response.Body, maxPacket)
	for {
		line, err := readMessage(r)
		if err == nil {
			err = c.deliver(line)
		}
		if errors.Is(err, io.EOF) {
			return errStreamEnded
		}
		if err != nil {
			return err
		}
	}
}

// errBusy is the reason why a message was not sent.
var errBusy = fmt.Errorf("an earlier message has not been sent for %s", LinkWait)

// queue passes a message to write. It fails if the stream has ended, or if an earlier message is not written before the
// deadline.
func (s *stdioStream) queue(w waiting) error {
	timer := time.NewTimer(time.Until(w.deadline))
	defer timer.Stop()
	select {
	case s.lines <- w.line:
		return nil
	case <-s.ended:
		return errStreamEnded
	case <-timer.C:
		return errBusy
	}
}

// write writes the lines of the stream until it has ended. It ends the input of the far host after the last line.
func (s *stdioStream) write() {
	for {
		select {
		case line, more := <-s.lines:
			if !more {
				s.in.Close()
				return
			}
			_, _ = s.in.Write(line) // fails when the stream ends, which answers its requests
		case <-s.ended:
			return
		}
	}
}
