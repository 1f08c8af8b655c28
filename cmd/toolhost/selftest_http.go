package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// A web is a program that serves on a port of its own choice.
type web struct {
	cmd     *exec.Cmd
	stderr  complaint
	url     string
	token   string
	era     string
	session string
	client  http.Client
}

// announced precedes the address in the output of the program.
const announced = "listening on "

func startHTTP(ctx context.Context, program string, p place, era string) (wire, error) {
	w := &web{era: era, token: p.token, cmd: exec.CommandContext(ctx, program,
		"http", "--listen", "127.0.0.1:0", "--token-file", p.tokenFile, "--root", p.root, "--state-dir", p.state)}
	w.client.Transport = &http.Transport{} // no proxy: the program is on this machine
	w.cmd.Dir, w.cmd.Env, w.cmd.WaitDelay = p.root, environment(), endTime
	r, pipe := io.Pipe()
	w.cmd.Stderr = io.MultiWriter(&w.stderr, pipe)
	if err := w.cmd.Start(); err != nil {
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
		ended <- w.cmd.Wait()
		pipe.Close()
	}()
	select {
	case w.url = <-found:
		return &started{w, ended}, nil
	case err := <-ended:
		return nil, fmt.Errorf("it did not listen: %w%s", err, &w.stderr)
	}
}

// A started web is a web with a process that must be waited for.
type started struct {
	*web
	ended <-chan error
}

func (s *started) close() error {
	s.client.CloseIdleConnections()
	if runtime.GOOS == "windows" { // Windows has no signal that asks a process to end
		err := s.cmd.Process.Kill()
		<-s.ended
		return err
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := <-s.ended; err != nil {
		return fmt.Errorf("it did not end well: %w%s", err, &s.stderr)
	}
	return nil
}

func (w *web) notify(ctx context.Context, m message) error {
	resp, err := w.post(ctx, m)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (w *web) exchange(ctx context.Context, m message) (answer, error) {
	resp, err := w.post(ctx, m)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		w.session = id
	}
	a, err := readAnswer(resp)
	if err != nil {
		return answer{}, fmt.Errorf("HTTP status %s: %w", resp.Status, err)
	}
	return a, nil
}

// readAnswer reads a single answer, or the one in a stream of server-sent events.
func readAnswer(resp *http.Response) (a answer, err error) {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return a, json.NewDecoder(resp.Body).Decode(&a)
	}
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			var a answer
			if err := json.Unmarshal(data, &a); err != nil {
				return answer{}, err
			}
			if a.Result != nil || a.Error != nil {
				return a, nil
			}
		}
		if err != nil {
			return answer{}, fmt.Errorf("the stream ended without an answer: %w", err)
		}
	}
}

func (w *web) post(ctx context.Context, m message) (*http.Response, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	method, _ := m["method"].(string)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+w.token)
	if w.session != "" {
		req.Header.Set("Mcp-Session-Id", w.session)
	}
	if method != "initialize" {
		req.Header.Set("MCP-Protocol-Version", w.era)
	}
	if w.era == Modern {
		req.Header.Set("Mcp-Method", method)
		if params, ok := m["params"].(message); ok && params["name"] != nil {
			req.Header.Set("Mcp-Name", fmt.Sprint(params["name"]))
		}
	}
	return w.client.Do(req)
}
