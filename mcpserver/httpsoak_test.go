//go:build slow

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A soakedServer is a server that is stopped and started anew on the same state while clients go on.
type soakedServer struct {
	t    *testing.T
	cfg  Config
	http *http.Client
	url  atomic.Pointer[string]
}

// serve runs one generation of the server; end stops it as SIGTERM does.
func (s *soakedServer) serve() (end func()) {
	h, err := Open(s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	url, stop := serveWeb(s.t, h)
	s.url.Store(&url)
	return func() {
		stop()
		if err := h.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// A soakTally counts what became of the calls of a soak.
type soakTally struct {
	done, refused, cut atomic.Int64
}

// TestWebSoak lets clients of both eras call, cancel, hang up and end their sessions while the server starts anew
// again and again. Every answer is one, what was written is whole, and nothing is left behind. Run it with -race.
func TestWebSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const clients = 12
	lasting := time.Duration(samples.Raced(4)) * time.Second
	generations := samples.Raced(3)
	home, root := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(root, "read.txt"), "content\n")
	goroutines := runtime.NumGoroutine()
	s := &soakedServer{t: t, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}},
		cfg: Config{Roots: []string{root}, StateDir: filepath.Join(home, "state"), Allow: []string{"Bash"},
			Remote: true}}
	end := s.serve()
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	var tally soakTally
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { s.client(ctx, i, &tally) })
	}
	for range generations - 1 {
		select {
		case <-time.After(lasting / time.Duration(generations)):
		case <-ctx.Done():
		}
		end()
		end = s.serve()
	}
	all.Wait()
	end()
	s.http.CloseIdleConnections()
	t.Logf("%d calls answered, %d refused or without a session while the server started anew, %d hung up, in %s",
		tally.done.Load(), tally.refused.Load(), tally.cut.Load(), lasting)
	if tally.done.Load() == 0 || tally.cut.Load() == 0 {
		t.Error("the soak has tried nothing")
	}
	written, err := filepath.Glob(filepath.Join(root, "new-*.txt"))
	if err != nil || len(written) == 0 {
		t.Errorf("%d files were written, %v", len(written), err)
	}
	for _, name := range written {
		if content, err := os.ReadFile(name); err != nil || string(content) != "whole\n" {
			t.Errorf("%s holds %q, %v", name, content, err)
		}
	}
	left := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // connections that were cut take a moment to go
		if left = runtime.NumGoroutine() - goroutines; left <= 3 {
			break
		}
	}
	if left > 3 {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left: %s", left, buf[:runtime.Stack(buf, true)])
	}
}

// client makes calls until ctx is done. Even ones are modern, odd ones legacy.
func (s *soakedServer) client(ctx context.Context, n int, tally *soakTally) {
	session, of := "", ""
	for i := 0; ctx.Err() == nil; i++ {
		url := *s.url.Load()
		modernEra := n%2 == 0
		if !modernEra && (session == "" || of != url) {
			resp, _, err := s.post(ctx, url, webRequest{body: initialize})
			if err != nil || resp.StatusCode != 200 {
				tally.refused.Add(1)
				continue
			}
			session, of = resp.Header.Get("Mcp-Session-Id"), url
		}
		tool, args, want := s.pick(n, i)
		q := modernCall(tool, args, fmt.Sprintf("client-%d", n))
		if !modernEra {
			q = webRequest{body: toolCall(i, tool, args),
				headers: map[string]string{"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}}
		}
		hangsUp := rand.IntN(8) == 0
		within, stop := ctx, context.CancelFunc(func() {})
		if hangsUp {
			within, stop = context.WithTimeout(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
		}
		resp, body, err := s.post(within, url, q)
		stop()
		switch {
		case within.Err() != nil:
			tally.cut.Add(1)
		case err != nil || resp.StatusCode == 503 || resp.StatusCode == 404:
			tally.refused.Add(1)
			session = ""
			if err == nil && resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "" &&
				!strings.Contains(body, transport.ErrClosed.Error()) {
				s.t.Errorf("refused without saying when to come again: %s", body)
			}
		case resp.StatusCode != 200 || !strings.Contains(body, want) &&
			!strings.Contains(body, transport.ErrClosed.Error()):
			s.t.Errorf("%s %s: %s %s", tool, args, resp.Status, body)
		default:
			tally.done.Add(1)
		}
		if !modernEra && rand.IntN(20) == 0 && session != "" {
			_, _, _ = s.post(ctx, url, webRequest{method: http.MethodDelete, headers: map[string]string{"Mcp-Session-Id": session}}) // it may be gone
			session = ""
		}
	}
}

// pick is a call, and what its answer holds.
func (s *soakedServer) pick(n, i int) (tool, args, want string) {
	switch rand.IntN(6) {
	case 0:
		return "Bash", fmt.Sprintf(`{"command":"echo client %d"}`, n), fmt.Sprintf("client %d", n)
	case 1:
		return "Bash", `{"command":"sleep 0.02; echo slept"}`, "slept"
	case 2:
		return "Write", fmt.Sprintf(`{"file_path":"new-%d-%d.txt","content":"whole\n"}`, n,
			i), fmt.Sprintf("new-%d-%d.txt", n, i)
	case 3:
		return "Glob", `{"pattern":"read*"}`, "read.txt"
	}
	return "Read", `{"file_path":"read.txt"}`, "content"
}

// post sends a request, as [webRequest.do] does, and returns what goes wrong.
func (s *soakedServer) post(ctx context.Context, url string, q webRequest) (*http.Response, string, error) {
	if q.method == "" {
		q.method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, q.method, url, strings.NewReader(q.body))
	if err != nil {
		return nil, "", err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + testToken,
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		req.Header.Set(name, value)
	}
	for name, value := range q.headers {
		req.Header.Set(name, value)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		if operr, ok := errors.AsType[*net.OpError](err); ok && operr.Op == "dial" {
			time.Sleep(time.Millisecond) // the next server is not there yet
		}
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}
