package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/mcpserver/client"
)

// endTime is how long the program may take to end.
const endTime = 10 * time.Second

// maxComplaint is how much of what the program writes on stderr is shown, in bytes.
const maxComplaint = 2000

// startStdio starts a program as its client over stdin and stdout.
func startStdio(ctx context.Context, program string, p place) (*talk, error) {
	return startServer(ctx, p.root, p.env, program,
		append([]string{"stdio", "--root", p.root, "--state-dir", p.state}, p.flags...)...)
}

// startServer starts a server in a directory, with the variables env in addition to those of this process.
func startServer(ctx context.Context, dir string, env []string, program string, args ...string) (*talk, error) {
	cmd, stderr := exec.CommandContext(ctx, program, args...), &complaint{}
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.WaitDelay = dir, append(environment(), env...), stderr, endTime
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", err)
	}
	return &talk{client.New(out, in), stderr, func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("it did not end well: %w%s", err, stderr)
		}
		return nil
	}}, nil
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
