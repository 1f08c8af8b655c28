package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// An input reads the messages of a client in order.
type input struct {
	conn  *conn
	in    *bufio.Reader
	ended chan error // receives the error that ended the input, nil for EOF
}

func newInput(c *conn, in io.Reader) input {
	return input{conn: c, in: bufio.NewReaderSize(in, 64<<10), ended: make(chan error, 1)}
}

// buffered reports whether the buffer has a whole message.
func (i *input) buffered() bool {
	read, _ := i.in.Peek(i.in.Buffered())
	return bytes.IndexByte(read, '\n') >= 0
}

// end sends the error that ended the input to i.ended.
func (i *input) end(err error) {
	if errors.Is(err, io.EOF) {
		i.ended <- nil
		return
	}
	i.ended <- fmt.Errorf("cannot read standard input: %w", err)
}

// next handles messages up to the next request, and returns a function that runs it. It may return both a request and
// the error that follows it.
func (i *input) next() (run func(), err error) {
	for run == nil && err == nil {
		i.conn.out.WaitForRoom()
		run, err = i.message()
	}
	return run, err
}

// message handles a message. For a request it returns a function that runs it.
func (i *input) message() (run func(), err error) {
	line, long, err := readLine(i.in, transport.MaxMessage)
	switch {
	case long != nil:
		i.conn.refuse(&jsonrpc.Error{ID: long.ID(), Code: mcp.INVALID_REQUEST,
			Text: fmt.Sprintf("the message is longer than %d bytes: split the call", transport.MaxMessage)})
	case len(bytes.TrimSpace(line)) > 0:
		run = i.conn.receive(line)
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
