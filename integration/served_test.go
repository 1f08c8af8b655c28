//go:build linux

package integration

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
)

// A served is a running toolhost that is spoken to by plain HTTP requests.
type served struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *lockedBuffer
	gone   chan error
	url    string
	token  string
	http   *http.Client
}

// serve starts toolhost on a ground and waits until it listens.
func serve(g *ground, web *http.Client, prepare func(*exec.Cmd), flags ...string) *served {
	g.t.Helper()
	cmd := exec.Command(binary, append([]string{"http", "--root", g.ws, "--state-dir", g.state}, flags...)...)
	cmd.Dir, cmd.Env = g.ws, cleanEnv(g.home)
	if prepare != nil {
		prepare(cmd)
	}
	s := &served{t: g.t, cmd: cmd, stderr: &lockedBuffer{}, gone: make(chan error, 1), http: web}
	if s.http == nil {
		s.http = &http.Client{Transport: &http.Transport{}}
	}
	r, w := io.Pipe()
	cmd.Stderr = io.MultiWriter(s.stderr, w)
	must(g.t, cmd.Start())
	g.t.Cleanup(func() { _ = cmd.Process.Kill(); s.http.CloseIdleConnections() })
	go func() { s.gone <- cmd.Wait(); w.Close() }()
	var err error
	if s.url, s.token, err = client.Announced(r); err != nil {
		g.t.Fatalf("%v: %v\n%s", err, <-s.gone, s.stderr)
	}
	return s
}

// end sends SIGTERM and waits for the end.
func (s *served) end() {
	s.t.Helper()
	must(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	if err := <-s.gone; err != nil {
		s.t.Errorf("%v\n%s", err, s.stderr)
	}
}

// A reply is what came of a call.
type reply struct {
	status     int
	retryAfter string
	Result     client.Result
	Error      *client.Error
}

// call calls a tool in the conversation of this name.
func (s *served) call(tool string, a args, meta map[string]any) reply {
	s.t.Helper()
	r, err := s.try(context.Background(), tool, a, meta)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", tool, err, s.stderr)
	}
	return r
}

func (s *served) try(ctx context.Context, tool string, a args, meta map[string]any) (r reply, err error) {
	all := map[string]any{"io.modelcontextprotocol/protocolVersion": client.Modern, "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	for k, v := range meta {
		all[k] = v
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": a, "_meta": all}})
	if err != nil {
		return r, err
	}
	url := s.url
	if strings.HasPrefix(url, "unix:") {
		url = "http://localhost/mcp"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return r, err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + s.token,
		"MCP-Protocol-Version": string(client.Modern), "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(k, v)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	r.status, r.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	answer, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(answer, &r)
	}
	return r, err
}
