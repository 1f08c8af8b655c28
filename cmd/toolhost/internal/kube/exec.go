package kube

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The streams of a command, by the first byte of a message, and the message that ends one.
const (
	stdinStream, stdoutStream, stderrStream, endStream = 0, 1, 2, 3
	closeStream                                        = 255
)

// The operations of WebSocket that are used.
const (
	binaryFrame, closeFrame, pingFrame, pongFrame = 2, 8, 9, 10
	finalBit, maskBit                             = 0x80, 0x80
	lengthOfTwo, lengthOfEight                    = 126, 127
)

const (
	// maxMessage bounds a message of a command, in bytes. API servers send much shorter ones.
	maxMessage = 1 << 20
	// beatTime is how often the server is asked whether it is there, and maxMissed how often it may not answer.
	beatTime, maxMissed = 15 * time.Second, 2
	// closeTime is how long the end of the input may take to send.
	closeTime = time.Second
	// maxFrame is how much input is sent at once.
	maxFrame = 32 << 10
)

// streamProtocol is the protocol of commands: version 5 can end the input alone.
const streamProtocol = "v5.channel.k8s.io"

// A Command runs in a pod.
type Command struct {
	conn io.ReadWriteCloser
	r    *bufio.Reader

	heard   atomic.Bool // something came since the last beat
	begun   byte        // the operation of a message that has not ended
	partial []byte

	mu sync.Mutex // of writing
}

// Exec starts a command in the first container of a pod.
func (c *Client) Exec(ctx context.Context, namespace, pod string, argv ...string) (*Command, error) {
	slow := fmt.Errorf("%s did not start a command in %s", c.server, answerTime)
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, slow)
	defer cancel() // a connection that was upgraded outlives it
	query := url.Values{"command": argv, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/exec", namespace, pod)
	request := Request{Method: http.MethodGet, Path: path, Query: query, Accept: "*/*"}
	response, err := c.send(ctx, c.plain, request, http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key":      {base64.StdEncoding.EncodeToString([]byte(rand.Text()[:16]))},
		"Sec-Websocket-Protocol": {streamProtocol},
	})
	if err != nil {
		return nil, err
	}
	conn, ok := response.Body.(io.ReadWriteCloser)
	if !ok || response.Header.Get("Sec-Websocket-Protocol") != streamProtocol {
		response.Body.Close()
		return nil, fmt.Errorf("%s starts no command over WebSocket with %s: it must be Kubernetes 1.30 or later",
			c.server, streamProtocol)
	}
	return &Command{conn: conn, r: bufio.NewReader(conn)}, nil
}

// Run copies the output of the command until it ends, and returns how it has ended.
func (c *Command) Run(stdout, stderr io.Writer) error {
	end := make(chan struct{})
	defer close(end)
	go c.beat(end)
	for {
		op, message, err := c.message()
		c.heard.Store(true)
		switch {
		case err != nil:
			return fmt.Errorf("the connection to the pod broke: %w", err)
		case op == closeFrame:
			return errors.New("the connection to the pod was closed")
		case op == pingFrame:
			err = c.send(pongFrame, message)
		case op != binaryFrame || len(message) == 0:
		case message[0] == stdoutStream:
			_, err = stdout.Write(message[1:])
		case message[0] == stderrStream:
			_, err = stderr.Write(message[1:])
		case message[0] == endStream:
			return ended(message[1:])
		}
		if err != nil {
			return err
		}
	}
}

// beat breaks a connection whose server does not answer.
func (c *Command) beat(end <-chan struct{}) {
	tick := time.NewTicker(beatTime)
	defer tick.Stop()
	for missed := 0; missed <= maxMissed; missed++ {
		select {
		case <-end:
			return
		case <-tick.C:
		}
		if c.heard.Swap(false) {
			missed = 0
		}
		go func() { _ = c.send(pingFrame, nil) }() // where it cannot be sent, nothing comes
	}
	c.Kill()
}

// ended reads how a command has ended.
func ended(raw []byte) error {
	var status struct{ Status, Message string }
	if err := json.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("it ended with %.200q", raw)
	}
	if status.Status == "Success" {
		return nil
	}
	return errors.New(strings.TrimSpace(status.Message))
}

// Write writes to the input of the command.
func (c *Command) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), maxFrame)]
		if err := c.send(binaryFrame, append([]byte{stdinStream}, part...)); err != nil {
			return n, err
		}
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

// Close ends the input of the command.
func (c *Command) Close() error {
	defer time.AfterFunc(closeTime, c.Kill).Stop()
	return c.send(binaryFrame, []byte{closeStream, stdinStream})
}

// Kill breaks the connection; the node ends the command.
func (c *Command) Kill() { c.conn.Close() }

// message reads one message, or a frame that controls the connection.
func (c *Command) message() (op byte, message []byte, err error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(c.r, head[:]); err != nil {
			return 0, nil, err
		}
		length := uint64(head[1] &^ maskBit)
		long := make([]byte, map[uint64]int{lengthOfTwo: 2, lengthOfEight: 8}[length])
		if _, err := io.ReadFull(c.r, long); err != nil {
			return 0, nil, err
		}
		switch len(long) {
		case 2:
			length = uint64(binary.BigEndian.Uint16(long))
		case 8:
			length = binary.BigEndian.Uint64(long)
		}
		if head[1]&maskBit != 0 || length > maxMessage-uint64(len(c.partial)) {
			return 0, nil, fmt.Errorf("a frame of %d bytes is none of the protocol", length)
		}
		part := make([]byte, length)
		if _, err := io.ReadFull(c.r, part); err != nil {
			return 0, nil, err
		}
		if op := head[0] & 0xf; op >= closeFrame { // also between the parts of a message
			return op, part, nil
		} else if op != 0 {
			c.begun = op
		}
		if c.partial = append(c.partial, part...); head[0]&finalBit != 0 {
			message, c.partial = c.partial, nil
			return c.begun, message, nil
		}
	}
}

// send sends one frame of less than 64 KiB. Those of a client are masked, against caches that would take them for
// answers.
func (c *Command) send(op byte, message []byte) error {
	frame := []byte{finalBit | op, maskBit}
	if len(message) < lengthOfTwo {
		frame[1] |= byte(len(message))
	} else {
		frame[1] |= lengthOfTwo
		frame = binary.BigEndian.AppendUint16(frame, uint16(len(message)))
	}
	var mask [4]byte
	_, _ = rand.Read(mask[:]) // it never fails
	frame = append(frame, mask[:]...)
	for i, b := range message {
		frame = append(frame, b^mask[i%4])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.conn.Write(frame)
	return err
}
