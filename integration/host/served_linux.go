package host

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

// A Served is a running toolhost that is spoken to by plain HTTP requests.
type Served struct {
	t      *testing.T
	Cmd    *exec.Cmd
	Stderr *LockedBuffer
	Gone   chan error
	URL    string
	Token  string
	HTTP   *http.Client
}

// Serve starts toolhost on a ground and waits until it listens.
func (g *Ground) Serve(web *http.Client, prepare func(*exec.Cmd), flags ...string) *Served {
	g.T.Helper()
	cmd := exec.Command(Binary, append([]string{"http", "--root", g.WS, "--state-dir", g.State}, flags...)...)
	cmd.Dir, cmd.Env = g.WS, CleanEnv(g.Home)
	if prepare != nil {
		prepare(cmd)
	}
	s := &Served{t: g.T, Cmd: cmd, Stderr: &LockedBuffer{}, Gone: make(chan error, 1), HTTP: web}
	if s.HTTP == nil {
		s.HTTP = &http.Client{Transport: &http.Transport{}}
	}
	r, w := io.Pipe()
	cmd.Stderr = io.MultiWriter(s.Stderr, w)
	Must(g.T, cmd.Start())
	g.T.Cleanup(func() { _ = cmd.Process.Kill(); s.HTTP.CloseIdleConnections() })
	go func() { s.Gone <- cmd.Wait(); w.Close() }()
	var err error
	if s.URL, s.Token, err = client.Announced(r); err != nil {
		g.T.Fatalf("%v: %v\n%s", err, <-s.Gone, s.Stderr)
	}
	return s
}

// End sends SIGTERM and waits for the end.
func (s *Served) End() {
	s.t.Helper()
	Must(s.t, s.Cmd.Process.Signal(syscall.SIGTERM))
	if err := <-s.Gone; err != nil {
		s.t.Errorf("%v\n%s", err, s.Stderr)
	}
}

// A Reply is what came of a call.
type Reply struct {
	Status     int
	retryAfter string
	Result     client.Result
	Error      *client.Error
}

// MustCall calls a tool in the conversation of this name.
func (s *Served) MustCall(tool string, a Args, meta map[string]any) Reply {
	s.t.Helper()
	r, err := s.Try(context.Background(), tool, a, meta)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", tool, err, s.Stderr)
	}
	return r
}

// Try calls a tool in the conversation that meta names, and returns the reply or why there is none.
func (s *Served) Try(ctx context.Context, tool string, a Args, meta map[string]any) (r Reply, err error) {
	all := map[string]any{"io.modelcontextprotocol/protocolVersion": client.Modern,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	for k, v := range meta {
		all[k] = v
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": a, "_meta": all}})
	if err != nil {
		return r, err
	}
	url := s.URL
	if strings.HasPrefix(url, "unix:") {
		url = "http://localhost/mcp"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return r, err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + s.Token,
		"MCP-Protocol-Version": string(client.Modern), "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(k, v)
	}
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	r.Status, r.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	answer, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(answer, &r)
	}
	return r, err
}
