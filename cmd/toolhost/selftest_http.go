package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/toolhost/toolhost/mcpserver/client"
)

// announced precedes the address in the output of the program.
const announced = "listening on "

// startHTTP starts a program that serves on a port of its own choice.
func startHTTP(ctx context.Context, program string, p place) (*talk, error) {
	cmd := exec.CommandContext(ctx, program,
		"http", "--listen", "127.0.0.1:0", "--token-file", p.tokenFile, "--root", p.root, "--state-dir", p.state)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.root, environment(), endTime
	r, pipe := io.Pipe()
	stderr := &complaint{}
	cmd.Stderr = io.MultiWriter(stderr, pipe)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", err)
	}
	found := make(chan string, 1)
	go func() { // reads to the end, otherwise the program would block
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if url, ok := strings.CutPrefix(lines.Text(), announced); ok {
				found <- url
				break
			}
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		pipe.Close()
	}()
	select {
	case url := <-found:
		c, err := client.NewHTTP(url, p.token, &http.Transport{}) // no proxy: the program is on this machine
		if err != nil {
			return nil, errors.Join(err, interrupt(cmd, ended, stderr))
		}
		return &talk{c, stderr, func() error { return interrupt(cmd, ended, stderr) }}, nil
	case err := <-ended:
		return nil, fmt.Errorf("it did not listen: %w%s", err, stderr)
	}
}

// interrupt ends a program.
func interrupt(cmd *exec.Cmd, ended <-chan error, stderr *complaint) error {
	if runtime.GOOS == "windows" { // Windows has no signal that asks a process to end
		err := cmd.Process.Kill()
		<-ended
		return err
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("it did not end well: %w%s", err, stderr)
	}
	return nil
}
