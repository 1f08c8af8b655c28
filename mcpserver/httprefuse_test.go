package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/testenv"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

func refusedForNow(t *testing.T, what string, status int, resp *http.Response, body string) {
	t.Helper()
	if code, _ := rpcError(t, body); resp.StatusCode != status || resp.Header.Get("Retry-After") == "" || code == 0 {
		t.Errorf("%s: status %s, Retry-After %q: %s", what, resp.Status, resp.Header.Get("Retry-After"), body)
	}
}

func TestLimitsOverHTTP(t *testing.T) {
	t.Parallel()
	h, root := openHost(t, map[string]string{"a.txt": "content\n"}, mayRun)
	url, _ := serveWeb(t, h, func(c *httpserver.Config) {
		c.Limits = httpserver.UsualLimits()
		c.Limits.InFlight, c.Limits.Streams, c.Limits.Bytes = 4, 4, 1<<20
	})
	read := modernCall("Read", `{"file_path":"a.txt"}`, "other")
	session := newSession(t, url, "")
	var streams []*webStream
	for range 3 {
		s := webRequest{method: http.MethodGet, headers: session}.open(t, url)
		if s.resp.StatusCode != 200 {
			t.Fatalf("a stream: %s", s.resp.Status)
		}
		streams = append(streams, s)
	}
	resp, body := webRequest{method: http.MethodGet, headers: session}.do(t, url)
	refusedForNow(t, "one stream too many", 503, resp, body)
	for _, s := range streams {
		s.resp.Body.Close()
	}

	large := modernCall("Write", `{"file_path":"b.txt","content":"`+strings.Repeat("x", 900<<10)+`"}`, "large")
	resp, body = large.do(t, url)
	refusedForNow(t, "too many bytes", 503, resp, body)
	if resp, body := read.do(t, url); resp.StatusCode != 200 {
		t.Errorf("a short message after a long one: %s %s", resp.Status, body)
	}

	answers := holdCommands(t, url, root, "1", "2", "3")
	resp, body = read.do(t, url)
	refusedForNow(t, "one request too many", 503, resp, body)
	writeFile(t, filepath.Join(root, "go"), "")
	for range 3 {
		if body := <-answers; !strings.Contains(body, "finished") {
			t.Errorf("a call was disturbed: %s", body)
		}
	}
	if resp, body := read.do(t, url); resp.StatusCode != 200 {
		t.Errorf("when there is room again: %s %s", resp.Status, body)
	}
}

func TestCallsOfAScopeAreBoundedOverHTTP(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "content\n"}, mayRun)
	url, _ := serveWeb(t, h)
	var all []*Admission
	s, _, err := h.scopes.Resolve(TokenPrincipal, map[string]any{"threadId": "busy"}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	for range scope.MaxCalls {
		all = append(all, h.admitTo(s, Local()))
	}
	resp, body := modernCall("Read", `{"file_path":"a.txt"}`, "busy").do(t, url)
	refusedForNow(t, "one call too many", 429, resp, body)
	if resp, body := modernCall("Read", `{"file_path":"a.txt"}`, "quiet").do(t, url); resp.StatusCode != 200 ||
		!strings.Contains(body, "content") {
		t.Errorf("another scope: %s %s", resp.Status, body)
	}
	for _, a := range all {
		a.Leave()
	}
	if resp, body := modernCall("Read", `{"file_path":"a.txt"}`, "busy").do(t, url); resp.StatusCode != 200 {
		t.Errorf("afterwards: %s %s", resp.Status, body)
	}
}

// Readers that take nothing of long results hold no one.
func TestStalledReadersHoldNobody(t *testing.T) {
	testenv.NotShort(t, "fills connections until limits end them")
	t.Parallel()
	const stalled = 8
	h, _ := openHost(t, map[string]string{"a.txt": "content\n", "long.txt": strings.Repeat("a long line of text\n", 1500)}, mayRun)
	address, _ := serveWeb(t, h)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	call := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"long.txt"},` + modernMeta + `}}`)
	var message strings.Builder
	fmt.Fprintf(&message, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", httpserver.Endpoint, u.Host, testToken, len(call.body))
	for name, value := range call.headers {
		fmt.Fprintf(&message, "%s: %s\r\n", name, value)
	}
	message.WriteString("\r\n" + call.body)
	for range stalled {
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(1 << 10); err != nil {
			t.Fatal(err)
		}
		for range 50 { // pipelined, far more than the buffers on the way hold
			if err := conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, message.String()); err != nil {
				break // the server takes no more from this client
			}
		}
	}
	for range 20 { // in the very scope of the others
		_, body := modern(strings.Replace(call.body, "long.txt", "a.txt", 1)).do(t, address)
		if !strings.Contains(body, "content") {
			t.Fatalf("beside stalled readers: %.200s", body)
		}
	}
}

// What carries no message carries no body either: after one it would not be noticed that the client is gone.
func TestStreamsCarryNoBody(t *testing.T) {
	h, _ := openHost(t, nil)
	address, _ := serveWeb(t, h)
	session := newSession(t, address, "")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if resp, body := (webRequest{method: method, headers: session, body: "x"}).do(t,
			address); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s %s", method, resp.Status, body)
		}
	}
}

// Of a header that stands twice, somebody on the way could have obeyed the other one.
func TestRepeatedHeaders(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "content\n"})
	address, _ := serveWeb(t, h)
	q := modernCall("Read", `{"file_path":"a.txt"}`, "1")
	for name, value := range map[string]string{
		"Origin": "http://localhost", "Content-Type": "application/json", "Content-Encoding": "identity", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Session-Id": "x", "Mcp-Method": "tools/call", "Mcp-Name": "Read", "Last-Event-ID": "x",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		for n, v := range q.headers {
			req.Header.Set(n, v)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		req.Header.Del(name)
		req.Header.Add(name, value)
		req.Header.Add(name, value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "more than once") {
			t.Errorf("%s twice: %s %s", name, resp.Status, body)
		}
	}
	req := q.with("Origin", "http://localhost")
	if resp, body := req.do(t, address); resp.StatusCode != 200 {
		t.Errorf("once: %s %s", resp.Status, body)
	}
}

// A request that net/http itself must refuse gets an answer and harms no one.
func TestBrokenRequests(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "content\n"})
	address, _ := serveWeb(t, h)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	known := "POST " + httpserver.Endpoint + " HTTP/1.1\r\nHost: " + u.Host + "\r\nAuthorization: Bearer " + testToken +
		"\r\nContent-Type: application/json\r\n"
	for _, tt := range []struct{ name, request, status string }{
		{"a negative length", known + "Content-Length: -5\r\n\r\n{}", "400"},
		{"a length that is no number", known + "Content-Length: many\r\n\r\n{}", "400"},
		{"two lengths", known + "Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}", "400"},
		{"an unknown transfer coding", known + "Transfer-Encoding: gzip\r\n\r\n{}", "501"},
		{"a chunk of no size", known + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "400"},
		{"no host", "POST " + httpserver.Endpoint + " HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "400"},
		{"a header without a colon", known + "Nonsense\r\n\r\n", "400"},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, tt.request); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.Contains(line, " "+tt.status+" ") {
				t.Errorf("got %q, %v, want %s", line, err, tt.status)
			}
		})
	}
	if _, body := modernCall("Read", `{"file_path":"a.txt"}`, "1").do(t, address); !strings.Contains(body, "content") {
		t.Errorf("after all that: %s", body)
	}
}

// readers know everybody as a caller who may only read.
type readers struct{ scopes func(auth.Rights) string }

func (r readers) Verify(context.Context, string) (auth.Identity, error) {
	return auth.Identity{Principal: "reader", Rights: auth.Read, Scopes: r.scopes}, nil
}

// Who can get a right from an authorization server is told which scope to ask for, in HTTP, by the call's own refusal.
func TestStepUp(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	h, _ := openHost(t, map[string]string{"a.txt": "content\n"}, func(c *Config) { c.AuditLog = log })
	issued := func(set auth.Rights) string { return "toolhost:" + strings.Join(set.Names(), " toolhost:") }
	const challenge = `Bearer realm="toolhost", error="insufficient_scope", error_description="Write needs the right write", scope="toolhost:write", resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`
	write, read := `{"file_path":"b.txt","content":""}`, `{"file_path":"a.txt"}`
	for _, tt := range []struct {
		name, tool, args string
		scopes           func(auth.Rights) string
		status           int
		challenge, says  string
	}{
		{"a right that can be had", "Write", write, issued, 403, challenge, "Write needs the right write"},
		{"a right that cannot be had", "Write", write, nil, 200, "", "Write needs the right write"},
		{"a right that is there", "Read", read, issued, 200, "", "content"},
		{"no such tool", "Nothing", read, issued, 0, "", "no such tool: Nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := serveWeb(t, h, func(c *httpserver.Config) {
				c.Verifier, c.Metadata = readers{tt.scopes}, &auth.Metadata{Resource: "https://tools.example.com/mcp"}
			})
			legacy := webRequest{body: toolCall(7, tt.tool, tt.args), headers: newSession(t, url, "")}
			for era, q := range map[string]webRequest{"modern": modernCall(tt.tool, tt.args, "1"), "legacy": legacy} {
				resp, body := q.do(t, url)
				if tt.status != 0 && resp.StatusCode != tt.status ||
					resp.Header.Get("WWW-Authenticate") != tt.challenge || !strings.Contains(body, tt.says) {
					t.Errorf("%s: %s %s %s", era, resp.Status, resp.Header.Get("WWW-Authenticate"), body)
				}
			}
		})
	}
	raw, err := os.ReadFile(log)
	if n := strings.Count(string(raw), `"rule":"rights of the caller"`); err != nil || n != 4 {
		t.Errorf("%d refusals are recorded, %v: %s", n, err, raw)
	}
	if n := strings.Count(string(raw), `"principal":"reader","scope":"","tool":"Nothing"`); n != 2 {
		t.Errorf("%d calls of no tool are recorded: %s", n, raw)
	}
}

// Who is kept from their work for want of room is recorded, but not so often that the log fills.
func TestWantOfRoomIsRecorded(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	h, _ := openHost(t, map[string]string{"a.txt": "content\n"}, func(c *Config) { c.AuditLog = log })
	address, _ := serveWeb(t, h, func(c *httpserver.Config) {
		c.Limits = httpserver.UsualLimits()
		c.Limits.InFlight = 0
		c.Limits.Bytes = 1000
	})
	const tries = 100
	began := time.Now()
	for range tries {
		if resp, body := modernCall("Read", `{"file_path":"a.txt"}`, "1").do(t, address); resp.StatusCode != 503 {
			t.Fatalf("%s %s", resp.Status, body)
		}
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	var rec audit.Record
	if err := json.Unmarshal([]byte(lines[0]), &rec); err != nil {
		t.Fatal(err)
	}
	if rec.Principal != TokenPrincipal || rec.Verdict != "deny" || rec.Rule != "limits" || rec.Source != "127.0.0.1" ||
		!strings.Contains(rec.Error, "too many requests are in flight") {
		t.Errorf("%+v", rec)
	}
	if most := transport.RefusalsBurst + int(time.Since(began)/transport.RefusalsEvery) + 1; len(lines) < transport.RefusalsBurst || len(lines) > most {
		t.Errorf("%d of %d refusals are recorded, want at most %d", len(lines), tries, most)
	}
	if resp, _ := (webRequest{body: strings.Repeat("x", 2000)}).do(t, address); resp.StatusCode != 503 {
		t.Errorf("too many bytes: %s", resp.Status)
	}
}

// One caller's messages that come slowly do not take every connection.
func TestSlowMessagesAreBounded(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "content\n"})
	address, _ := serveWeb(t, h, func(c *httpserver.Config) { c.Limits = httpserver.UsualLimits(); c.Limits.Reading = 4 })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	half := "POST " + httpserver.Endpoint + " HTTP/1.1\r\nHost: " + u.Host + "\r\nAuthorization: Bearer " + testToken +
		"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n"
	var slow []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		// The server asks for the body after it has counted the message.
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q %v", line, err)
		}
		if _, err := io.WriteString(conn, "{"); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	call := func() *http.Response {
		resp, _ := modernCall("Read", `{"file_path":"a.txt"}`, "1").do(t, address)
		return resp
	}
	if resp := call(); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	for _, conn := range slow {
		conn.Close()
	}
	for call().StatusCode != http.StatusOK { // the server sees in its own time that the connections are closed
	}
}
