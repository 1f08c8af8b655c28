package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/mcpserver/client"
)

// Limit bounds each conversation, the start of the program included.
const Limit = 20 * time.Second

// The eras of the protocol that are spoken.
const (
	Modern = "2026-07-28" // without handshake and sessions
	Legacy = "2025-11-25"
)

// A Result is how one conversation went.
type Result struct {
	Transport, Era string
	// Tools is how many tools are listed.
	Tools int
	Took  time.Duration
	// Err is the reason why it failed, or nil.
	Err error
}

// Run starts program over each transport and in each era, in a temporary directory. It has the program list its tools
// and read a file. The user's settings apply.
func Run(ctx context.Context, program string) ([]Result, error) {
	place, err := newPlace("doctor")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(place.dir)
	var all []Result
	for _, era := range []string{Modern, Legacy} {
		all = append(all, converse(ctx, "stdio", era, place,
			func(ctx context.Context) (*talk, error) { return startStdio(ctx, program, place) }))
	}
	for _, era := range []string{Modern, Legacy} {
		all = append(all, converse(ctx, "http", era, place,
			func(ctx context.Context) (*talk, error) { return startHTTP(ctx, program, place) }))
	}
	return all, nil
}

// A place is where the program works during the test.
type place struct {
	dir, root, state, tokenFile string
	token, content              string
	env, flags                  []string // in addition to those of every conversation
}

// fileName is the file that is read.
const fileName = "hello.txt"

// newPlace makes the place of a command, in the directory for temporary files.
func newPlace(command string) (p place, err error) {
	dir, err := os.MkdirTemp("", "toolhost-"+command+"-*")
	if err != nil {
		return p, fmt.Errorf("no directory for the test: %w", err)
	}
	p = place{
		dir: dir, root: filepath.Join(dir, "root"), state: filepath.Join(dir, "state"),
		tokenFile: filepath.Join(dir, "token"),
		token:     rand.Text(), content: "this is " + rand.Text(),
	}
	err = errors.Join(os.Mkdir(p.root, 0o700), os.WriteFile(p.tokenFile, []byte(p.token+"\n"), 0o600),
		os.WriteFile(filepath.Join(p.root, fileName), []byte(p.content+"\n"), 0o600))
	if err != nil {
		return p, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// environment returns the environment of this process, without variables that would make the program report the test
// to others, or take listeners that are meant for another process.
func environment() []string {
	var kept []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "OTEL_") && name != "NOTIFY_SOCKET" && !strings.HasPrefix(name, "LISTEN_") &&
			name != "WATCHDOG_USEC" {
			kept = append(kept, v)
		}
	}
	return kept
}

// A talk is a conversation with a server that this process may have started.
type talk struct {
	*client.Client
	stderr *complaint
	end    func() error // ends a server that this process has started; the error has its error output
}

// close ends the conversation, whose error is given.
func (t *talk) close(err error) error {
	if err != nil {
		err = fmt.Errorf("%w%s", err, t.stderr)
	}
	return errors.Join(err, t.Close(), t.end())
}

func converse(ctx context.Context, over, era string, p place, start func(context.Context) (*talk, error)) Result {
	r := Result{Transport: over, Era: era}
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, fmt.Errorf("it did not answer within %s", Limit))
	defer cancel()
	began := time.Now()
	t, err := start(ctx)
	if err == nil {
		r.Tools, err = t.examine(ctx, era, p)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		r.Took = time.Since(began)
		err = t.close(err)
	}
	r.Err = err
	return r
}

// examine runs the conversation, and returns how many tools are listed.
func (t *talk) examine(ctx context.Context, era string, p place) (tools int, err error) {
	if err := t.Greet(ctx, era, nil); err != nil {
		return 0, err
	}
	names, err := t.Tools(ctx)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(names, "Read") {
		return len(names), fmt.Errorf("tools/list: Read is not among the %d tools; is it denied by a rule?", len(names))
	}
	text, failed, err := t.Call(ctx, "Read", map[string]any{"file_path": fileName})
	if err == nil && (failed || !strings.Contains(text, p.content)) {
		err = fmt.Errorf("tools/call: Read did not return the file: %s", text)
	}
	return len(names), err
}
