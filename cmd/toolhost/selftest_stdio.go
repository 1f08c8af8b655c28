package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// endTime is how long the program may take to end.
const endTime = 10 * time.Second

// maxComplaint is how much of what the program writes on stderr is shown, in bytes.
const maxComplaint = 2000

// A stdio is a program that this process is a client of, over its stdin and stdout.
type stdio struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr complaint
}

func startStdio(ctx context.Context, program string, p place) (wire, error) {
	return startServer(ctx, p.root, p.env, program,
		append([]string{"stdio", "--root", p.root, "--state-dir", p.state}, p.flags...)...)
}

// startServer starts a server in a directory, with the variables env in addition to those of this process.
func startServer(ctx context.Context, dir string, env []string, program string, args ...string) (wire, error) {
	s := &stdio{cmd: exec.CommandContext(ctx, program, args...)}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr, s.cmd.WaitDelay = dir, append(environment(), env...), &s.stderr, endTime
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", err)
	}
	return s, nil
}

func (s *stdio) exchange(ctx context.Context, m message) (answer, error) {
	if err := s.notify(ctx, m); err != nil {
		return answer{}, err
	}
	id, _ := json.Marshal(m["id"]) // a number
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return answer{}, fmt.Errorf("it ended without an answer: %w%s", err, &s.stderr)
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return answer{}, fmt.Errorf("its output is not a message: %q", line)
		}
		if bytes.Equal(a.ID, id) {
			return a, nil
		}
	}
}

func (s *stdio) notify(_ context.Context, m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = s.in.Write(append(line, '\n'))
	return err
}

func (s *stdio) close() error {
	err := s.in.Close()
	if e := s.cmd.Wait(); e != nil {
		err = errors.Join(err, fmt.Errorf("it did not end well: %w%s", e, &s.stderr))
	}
	return err
}

// A complaint is the beginning of what a program writes on stderr.
type complaint struct {
	mu   sync.Mutex
	text []byte
}

func (c *complaint) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := maxComplaint - len(c.text); room > 0 {
		c.text = append(c.text, p[:min(len(p), room)]...)
	}
	return len(p), nil
}

// String returns "" if there is none.
func (c *complaint) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := strings.TrimSpace(string(c.text)); text != "" {
		return "; it says: " + text
	}
	return ""
}
