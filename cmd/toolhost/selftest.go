package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
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
			func(ctx context.Context) (wire, error) { return startStdio(ctx, program, place) }))
	}
	for _, era := range []string{Modern, Legacy} {
		all = append(all, converse(ctx, "http", era, place,
			func(ctx context.Context) (wire, error) { return startHTTP(ctx, program, place, era) }))
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

// A wire carries messages to a program that was started.
type wire interface {
	// exchange sends a request and returns its answer.
	exchange(ctx context.Context, m message) (answer, error)
	notify(ctx context.Context, m message) error
	// close ends the program. The error has its error output if it did not end well.
	close() error
}

type message map[string]any

// An answer is a JSON-RPC response.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// A talk is one conversation.
type talk struct {
	wire wire
	era  string
	next int
	// capabilities are what the client can do, as a modern request declares it.
	capabilities message
}

func converse(ctx context.Context, transport, era string, p place, start func(context.Context) (wire, error)) Result {
	r := Result{Transport: transport, Era: era}
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, fmt.Errorf("it did not answer within %s", Limit))
	defer cancel()
	began := time.Now()
	w, err := start(ctx)
	if err == nil {
		t := &talk{wire: w, era: era}
		r.Tools, err = t.talk(ctx, p)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		r.Took = time.Since(began)
		err = errors.Join(err, w.close())
	}
	r.Err = err
	return r
}

// talk runs the conversation, and returns how many tools are listed.
func (t *talk) talk(ctx context.Context, p place) (tools int, err error) {
	if t.era == Legacy {
		if err := t.initialize(ctx); err != nil {
			return 0, fmt.Errorf("initialize: %w", err)
		}
	}
	names, err := t.tools(ctx)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(names, "Read") {
		return len(names), fmt.Errorf("tools/list: Read is not among the %d tools; is it denied by a rule?", len(names))
	}
	var read struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	if err := t.request(ctx, "tools/call", message{"name": "Read", "arguments": message{"file_path": fileName}},
		&read); err != nil {
		return len(names), fmt.Errorf("tools/call: %w", err)
	}
	if len(read.Content) == 0 || read.IsError || !strings.Contains(read.Content[0].Text, p.content) {
		return len(names), fmt.Errorf("tools/call: Read did not return the file: %+v", read)
	}
	return len(names), nil
}

// tools lists the names of the tools that are served.
func (t *talk) tools(ctx context.Context) (names []string, err error) {
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := t.request(ctx, "tools/list", message{}, &list); err != nil {
		return nil, fmt.Errorf("tools/list: %w", err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (t *talk) initialize(ctx context.Context) error {
	var hello struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	err := t.request(ctx, "initialize", message{"protocolVersion": Legacy, "capabilities": message{},
		"clientInfo": about()}, &hello)
	if err != nil {
		return err
	}
	if hello.ProtocolVersion != Legacy {
		return fmt.Errorf("the revision %q was answered to %s", hello.ProtocolVersion, Legacy)
	}
	return t.wire.notify(ctx, message{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

func about() message { return message{"name": "toolhost doctor", "version": "1"} }

// request makes a request and reads its result.
func (t *talk) request(ctx context.Context, method string, params message, into any) error {
	t.next++
	if t.era == Modern {
		can := t.capabilities
		if can == nil {
			can = message{}
		}
		params["_meta"] = message{
			"io.modelcontextprotocol/protocolVersion":    Modern,
			"io.modelcontextprotocol/clientCapabilities": can,
			"io.modelcontextprotocol/clientInfo":         about(),
		}
	}
	a, err := t.wire.exchange(ctx, message{"jsonrpc": "2.0", "id": t.next, "method": method, "params": params})
	if err != nil {
		return err
	}
	if a.Error != nil {
		return fmt.Errorf("error %d: %s", a.Error.Code, a.Error.Message)
	}
	return json.Unmarshal(a.Result, into)
}
