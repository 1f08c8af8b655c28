package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/toolhost/toolhost/integration/client"
)

// A server is a running program that speaks MCP on its input and output. Its client is kept lean, so that what is
// measured is the program: requests are bytes before the clock starts, and an answer's time is taken by the goroutine
// that reads it, before anything is decoded.
type server struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	next int64

	mu      sync.Mutex
	waiting map[int64]chan answer
	ended   error // set when the output has ended
}

// An answer is a line as it came, and when.
type answer struct {
	line []byte
	at   time.Time
}

// patience bounds every wait. It passes only when something is broken.
const patience = 2 * time.Minute

// launch starts a program without speaking to it.
func launch(cmd *exec.Cmd) (*server, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, in: in, waiting: map[int64]chan answer{}}
	go s.receive(out)
	return s, nil
}

// start starts a program and makes the handshake. It returns how long that took from the start of the process.
func start(cmd *exec.Cmd) (*server, time.Duration, error) {
	begun := time.Now()
	s, err := launch(cmd)
	if err != nil {
		return nil, 0, err
	}
	params := []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}`)
	p, err := s.send("initialize", params)
	if err != nil {
		return nil, 0, err
	}
	a, err := p.wait()
	if err != nil {
		return nil, 0, fmt.Errorf("initialize: %w", err)
	}
	_, err = s.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return s, a.at.Sub(begun), err
}

// A pending is a request that was sent.
type pending struct {
	sent time.Time
	ch   chan answer
	s    *server
}

// send sends a request. One goroutine at a time may send.
func (s *server) send(method string, params []byte) (*pending, error) {
	s.next++
	line := make([]byte, 0, len(params)+80)
	line = append(line, `{"jsonrpc":"2.0","id":`...)
	line = strconv.AppendInt(line, s.next, 10)
	line = append(line, `,"method":"`...)
	line = append(line, method...)
	line = append(line, `","params":`...)
	line = append(line, params...)
	line = append(line, "}\n"...)
	p := &pending{ch: make(chan answer, 1), s: s}
	s.mu.Lock()
	s.waiting[s.next] = p.ch
	s.mu.Unlock()
	p.sent = time.Now()
	_, err := s.in.Write(line)
	return p, err
}

func (p *pending) wait() (answer, error) {
	select {
	case a, ok := <-p.ch:
		if !ok {
			return a, fmt.Errorf("the server ended: %w", p.s.ended)
		}
		return a, nil
	case <-time.After(patience):
		return answer{}, fmt.Errorf("no answer within %v", patience)
	}
}

// receive hands out the answers until the output ends.
func (s *server) receive(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<18)
	var err error
	for err == nil {
		var line []byte
		line, err = lines.ReadBytes('\n')
		at := time.Now()
		id, ok := answered(line)
		if !ok {
			continue
		}
		s.mu.Lock()
		ch := s.waiting[id]
		delete(s.waiting, id)
		s.mu.Unlock()
		if ch != nil {
			ch <- answer{line, at}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	for _, ch := range s.waiting {
		close(ch)
	}
}

// answered returns the id of the request that a line answers. An id that stands first or last needs no decoding.
func answered(line []byte) (int64, bool) {
	line = bytes.TrimRight(line, "\r\n")
	if rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`)); ok {
		digits, rest := digits(rest)
		if bytes.HasPrefix(rest, []byte(`,"method"`)) {
			return 0, false // the server asks
		}
		id, err := strconv.ParseInt(string(digits), 10, 64)
		return id, err == nil
	}
	if i := bytes.LastIndex(line, []byte(`"id":`)); i >= 0 && bytes.HasSuffix(line, []byte("}")) {
		digits, rest := digits(line[i+len(`"id":`):])
		if len(digits) > 0 && len(rest) == 1 { // one brace closes the line: the id is the message's own
			id, err := strconv.ParseInt(string(digits), 10, 64)
			return id, err == nil
		}
	}
	var m struct {
		ID     *int64 `json:"id"`
		Method string `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method != "" {
		return 0, false
	}
	return *m.ID, true
}

// digits splits the digits off the front.
func digits(b []byte) (number, rest []byte) {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return b[:n], b[n:]
}

// decode decodes the answer to a call. A tool's error is an error.
func (a answer) decode() (*client.Result, error) {
	var m struct {
		Result client.Result `json:"result"`
		Error  *client.Error `json:"error"`
	}
	if err := json.Unmarshal(a.line, &m); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w: %.200s", err, a.line)
	}
	if m.Error != nil {
		return nil, m.Error
	}
	if m.Result.IsError {
		return nil, fmt.Errorf("%.500s", m.Result.Text())
	}
	return &m.Result, nil
}

// stop closes the input and waits for the end: a host that still saves its index on a machine under load may take
// some seconds.
func (s *server) stop() error {
	_ = s.in.Close()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case <-done:
		return nil
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-done
		return fmt.Errorf("%s did not end with its input", s.cmd.Path)
	}
}
