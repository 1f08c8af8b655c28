package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// serveWeb serves a host; stop ends the server and waits for it.
func serveWeb(t testing.TB, h *Host, change ...func(*httpserver.Config)) (url string, stop func()) {
	t.Helper()
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := testCallers(t)
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.ServeHTTP(ctx, l, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	t.Cleanup(stop)
	return "http://" + l.Addr().String() + httpserver.Endpoint, stop
}

func mayRun(c *Config) { c.Allow, c.Remote = []string{"Bash"}, true }

// modernCall is a call of a tool in the conversation of this name.
func modernCall(tool, args, thread string) webRequest {
	meta := strings.Replace(modernMeta, `"_meta":{`, fmt.Sprintf(`"_meta":{"threadId":%q,`, thread), 1)
	return modern(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`,
		tool, args, meta))
}

// holdCommands starts a command in each conversation that runs until the file go exists, and waits until all of them run.
func holdCommands(t *testing.T, url, root string, threads ...string) (answers chan string) {
	t.Helper()
	answers = make(chan string, len(threads))
	for _, thread := range threads {
		go func() {
			_, body := modernCall("Bash", fmt.Sprintf(`{"command":"touch started-%s; until [ -e go ]; do sleep 0.01; done; echo finished"}`, thread), thread).do(t, url)
			answers <- body
		}()
	}
	for _, thread := range threads {
		await(t, filepath.Join(root, "started-"+thread))
	}
	return answers
}

// A log that can be written no more makes the server unready, and one that can again ready, whoever has named it.
func TestReadyAsTheLogIs(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprint("named=", named), func(t *testing.T) {
			var log string
			h, _ := openHost(t, map[string]string{"a.txt": ""}, func(c *Config) {
				if log = filepath.Join(c.StateDir, "audit.jsonl"); named {
					c.AuditLog = log
				}
			})
			do(h, "Read", `{"file_path":"a.txt"}`)
			if err := h.Ready(); err != nil {
				t.Errorf("at first: %v", err)
			}
			if err := errors.Join(os.Rename(log, log+".away"), os.Mkdir(log, 0o700)); err != nil {
				t.Fatal(err)
			}
			if err := h.Ready(); err == nil || !strings.Contains(err.Error(), "not recorded") {
				t.Errorf("with a directory in its place: %v", err)
			}
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
			if err := h.Ready(); err != nil {
				t.Errorf("without it: %v", err)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, address, path string) int {
		t.Helper()
		resp, err := http.Get(strings.TrimSuffix(address, httpserver.Endpoint) + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); len(body) > 20 {
			t.Errorf("%s tells strangers too much: %s", path, body)
		}
		return resp.StatusCode
	}
	broken := filepath.Join(t.TempDir(), "settings.json")
	writeFile(t, broken, "{")
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for _, tt := range []struct {
		name   string
		change func(*Config)
		ready  int
	}{
		{"as it should be", func(*Config) {}, 200},
		{"broken settings", func(c *Config) { c.Settings = []string{broken} }, 503},
		{"no record", func(c *Config) { writeFile(t, filepath.Join(c.StateDir, "audit.jsonl", "in"), "") }, 503},
		{"no state", func(c *Config) { c.StateDir = filepath.Join(file, "state") }, 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := openHost(t, nil, tt.change)
			url, _ := serveWeb(t, h)
			if health, ready := ask(t, url, "/healthz"), ask(t, url, "/readyz"); health != 200 || ready != tt.ready {
				t.Errorf("health %d, ready %d, want %d", health, ready, tt.ready)
			}
		})
	}
}

// A server whose listener breaks ends, and nothing of it goes on.
func TestBrokenListener(t *testing.T) {
	h, _ := openHost(t, nil)
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeHTTP(t.Context(), l, testCallers(t)) }()
	session := newSession(t, "http://"+l.Addr().String()+httpserver.Endpoint, "")
	stream := webRequest{method: http.MethodGet, headers: session}.open(t, "http://"+
		l.Addr().String()+httpserver.Endpoint)
	l.Close()
	if err := <-ended; err == nil {
		t.Error("it ends as if it had been asked to")
	}
	if _, err := io.ReadAll(stream.resp.Body); err != nil { // the test hangs if the stream goes on
		t.Log(err)
	}
}

func TestDrainOverHTTP(t *testing.T) {
	t.Parallel()
	answer, took := drained(t)
	for try := 0; took > transport.DrainGrace && try < 10; try++ { // a machine under load has had no time for this client
		answer, took = drained(t)
	}
	if !strings.Contains(answer, "finished") {
		t.Errorf("the running call was cut off: %s", answer)
	}
}

// drained lets a server end while a command runs, and returns what the command is answered and how long after that it was let end.
func drained(t *testing.T) (answer string, took time.Duration) {
	t.Helper()
	h, root := openHost(t, map[string]string{"a.txt": "content\n"}, mayRun)
	url, stop := serveWeb(t, h)
	answers := holdCommands(t, url, root, "1")
	_, _ = modernCall("Read", `{"file_path":"a.txt"}`, "2").do(t, url) // this connection stays
	stopped := make(chan struct{})
	began := time.Now()
	go func() { stop(); close(stopped) }()
	for { // until the end has begun
		resp, body := modernCall("Read", `{"file_path":"a.txt"}`, "2").do(t, url)
		if resp.StatusCode != 200 {
			refusedForNow(t, "a call while draining", 503, resp, body)
			break
		}
	}
	resp, err := http.Get(strings.TrimSuffix(url, httpserver.Endpoint) + "/readyz")
	switch late := time.Since(began) > transport.DrainGrace; {
	case err == nil:
		if resp.Body.Close(); resp.StatusCode != 503 {
			t.Errorf("ready while draining: %s", resp.Status)
		}
	case !late:
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "go"), "")
	answer = <-answers
	took = time.Since(began)
	<-stopped
	return answer, took
}

// A client that ends its session ends what it has asked for there, and nothing of another session.
func TestEndOfSessionEndsItsCalls(t *testing.T) {
	t.Parallel()
	h, root := openHost(t, nil, mayRun)
	url, _ := serveWeb(t, h)
	answers := map[string]chan string{"ended": make(chan string, 1), "other": make(chan string, 1)}
	sessions := map[string]map[string]string{}
	for name, answer := range answers {
		session := newSession(t, url, "")
		sessions[name] = session
		command := fmt.Sprintf(`{"command":"touch %[1]s; until [ -e go ]; do sleep 0.01; done; touch %[1]s.done"}`,
			name)
		go func() {
			_, body := webRequest{body: toolCall(7, "Bash", command), headers: session}.do(t, url)
			answer <- body
		}()
		await(t, filepath.Join(root, name))
	}
	if resp, _ := (webRequest{method: http.MethodDelete, headers: sessions["ended"]}).do(t,
		url); resp.StatusCode != 200 {
		t.Errorf("end: %s", resp.Status)
	}
	if body := <-answers["ended"]; !strings.Contains(body, "the client has ended the session") {
		t.Errorf("the call of the session that was ended: %s", body)
	}
	writeFile(t, filepath.Join(root, "go"), "")
	if body := <-answers["other"]; !strings.Contains(body, `"exit_code":0`) {
		t.Errorf("the call of another session: %s", body)
	}
	if _, err := os.Stat(filepath.Join(root, "ended.done")); err == nil {
		t.Error("the command ran on")
	}
}

func with(headers map[string]string, name, value string) map[string]string {
	return webRequest{headers: headers}.with(name, value).headers
}

func TestHostNames(t *testing.T) {
	h, _ := openHost(t, nil)
	url, _ := serveWeb(t, h, func(c *httpserver.Config) { c.Hosts = []string{"tools.example.com"} })
	for _, tt := range []struct {
		host, origin string
		status       int
	}{
		{"tools.example.com", "", 200},
		{"TOOLS.example.com:8377", "", 200},
		{"tools.example.com", "https://tools.example.com", 200},
		{"tools.example.com", "https://evil.example", 403},
		{"evil.example", "", 403},
		{"sub.tools.example.com", "", 403},
		{"10.0.0.1", "", 403},
		{"127.0.0.2", "", 200},
	} {
		q := webRequest{body: initialize, host: tt.host, headers: map[string]string{}}
		if tt.origin != "" {
			q.headers["Origin"] = tt.origin
		}
		if resp, body := q.do(t, url); resp.StatusCode != tt.status {
			t.Errorf("host %s, origin %s: %s, want %d: %s", tt.host, tt.origin, resp.Status, tt.status, body)
		}
	}
}
