package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// maxInline is how long a request may run while no goroutine reads. Most Read and Edit calls take a quarter of it.
const maxInline = time.Millisecond

// read handles the messages of the client in order, and sends the error that ended them, or nil at their end, to ended.
// A request that arrives alone runs here, because waking a thread for it costs more than most calls. If it takes longer
// than maxInline, another goroutine reads on. So no message waits for a call.
func (c *conn) read(in *bufio.Reader, ended chan<- error) {
	for {
		c.out.WaitForRoom()
		run, err := c.message(in)
		switch {
		case errors.Is(err, io.EOF):
			ended <- nil
		case err != nil:
			ended <- fmt.Errorf("cannot read standard input: %w", err)
		}
		switch more, _ := in.Peek(in.Buffered()); {
		case run == nil:
		case err != nil || bytes.IndexByte(more, '\n') >= 0:
			go run()
		default:
			late := time.AfterFunc(maxInline, func() {
				if c.ctx.Err() == nil { // a closing connection reads no more
					c.read(in, ended)
				}
			})
			if run(); !late.Stop() {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// message handles a message. For a request it returns a function that runs it. It may return both a request and the
// error that follows it.
func (c *conn) message(in *bufio.Reader) (run func(), err error) {
	line, long, err := readLine(in, transport.MaxMessage)
	switch {
	case long != nil:
		c.refuse(&jsonrpc.Error{ID: long.ID(), Code: mcp.INVALID_REQUEST,
			Text: fmt.Sprintf("the message is longer than %d bytes: split the call", transport.MaxMessage)})
	case len(bytes.TrimSpace(line)) > 0:
		run = c.receive(line)
	}
	return run, err
}

// readLine reads up to the next newline. For a line of more than limit bytes it returns only long.
func readLine(r *bufio.Reader, limit int) (line []byte, long *jsonrpc.Oversized, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long == nil && len(line)+len(part) > limit {
			long = new(jsonrpc.Oversized)
			long.Write(line)
			line = nil
		}
		if long == nil {
			line = append(line, part...)
		} else {
			long.Write(part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
