package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// Stdio starts a host as a client starts it and speaks to it over its input and output. The process is in
// cmd; Close closes its input and waits for its end.
func Stdio(ctx context.Context, era Era, cmd *exec.Cmd) (*Conn, error) {
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
	t := &stdio{cmd: cmd, in: in, waiting: map[string]chan Response{}, ended: make(chan struct{})}
	c := &Conn{era: era, t: t}
	go t.read(out, c)
	return c, c.start(ctx)
}

type stdio struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	writing sync.Mutex // apart from mu: while a host is slow to read, its answers are taken

	mu      sync.Mutex
	waiting map[string]chan Response
	strays  []string // lines that are not the protocol
}

func (t *stdio) send(ctx context.Context, request map[string]any) (<-chan Response, error) {
	answer := make(chan Response, 1)
	t.mu.Lock()
	t.waiting[fmt.Sprint(request["id"])] = answer
	t.mu.Unlock()
	return answer, t.notify(ctx, request)
}

func (t *stdio) notify(_ context.Context, message map[string]any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	_, err = t.in.Write(append(line, '\n'))
	return err
}

// read hands out what the host says until it ends.
func (t *stdio) read(out io.Reader, c *Conn) {
	defer close(t.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.receive(line, c)
		}
		if err != nil {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, answer := range t.waiting {
		close(answer)
	}
	t.waiting = map[string]chan Response{}
}

func (t *stdio) receive(line []byte, c *Conn) {
	var m struct {
		JSONRPC string `json:"jsonrpc"`
		Response
		Notification
	}
	if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
		t.mu.Lock()
		t.strays = append(t.strays, string(line))
		t.mu.Unlock()
		return
	}
	if m.Method != "" {
		if c.OnNotification != nil {
			c.OnNotification(m.Notification)
		}
		return
	}
	t.mu.Lock()
	answer, ok := t.waiting[string(m.ID)]
	delete(t.waiting, string(m.ID))
	t.mu.Unlock()
	if ok {
		answer <- m.Response
	}
}

func (t *stdio) closeInput() error { return t.in.Close() }

func (t *stdio) close() error {
	closed := t.in.Close()
	<-t.ended
	if err := t.cmd.Wait(); err != nil {
		return fmt.Errorf("the host ended with: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.strays) > 0 {
		return fmt.Errorf("the host wrote lines that are not the protocol: %q", t.strays)
	}
	return closed
}
