package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
)

const testToken = "a-token-of-these-tests"

// testCallers know the one token of these tests.
func testCallers(t testing.TB) httpserver.Config {
	t.Helper()
	single, err := auth.NewStaticToken(testToken, TokenPrincipal)
	if err != nil {
		t.Fatal(err)
	}
	return httpserver.Config{Verifier: single}
}

// startWeb serves a host on a port of its own.
func startWeb(t *testing.T, files map[string]string, change ...func(*Config)) (url, root string) {
	t.Helper()
	h, root := openHost(t, files, append(change, func(c *Config) { c.Remote = true })...)
	url, _ = serveWeb(t, h)
	return url, root
}

// A webRequest is one request of these tests; the zero value is an authorised, empty POST.
type webRequest struct {
	method, body string
	headers      map[string]string
	host         string
}

func (q webRequest) do(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	req, err := http.NewRequest(q.method, url, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range q.headers {
		if value == "" {
			req.Header.Del(name)
		} else {
			req.Header.Set(name, value)
		}
	}
	if q.host != "" {
		req.Host = q.host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`

const legacyPing = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

func TestDoor(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	url, _ := startWeb(t, nil)
	tests := []struct {
		name   string
		req    webRequest
		status int
	}{
		{"as it should be", webRequest{body: initialize}, 200},
		{"no token", webRequest{body: initialize, headers: map[string]string{"Authorization": ""}}, 401},
		{"a wrong token", webRequest{body: initialize, headers: map[string]string{"Authorization": "Bearer wrong"}}, 401},
		{"a prefix of the token", webRequest{body: initialize, headers: map[string]string{"Authorization": "Bearer " + testToken[:5]}}, 401},
		{"another scheme", webRequest{body: initialize, headers: map[string]string{"Authorization": "Basic " + testToken}}, 401},
		{"a foreign page", webRequest{body: initialize, headers: map[string]string{"Origin": "https://evil.example"}}, 403},
		{"a sandboxed page", webRequest{body: initialize, headers: map[string]string{"Origin": "null"}}, 403},
		{"a page of this machine", webRequest{body: initialize, headers: map[string]string{"Origin": "http://localhost:3000"}}, 200},
		{"a page that only names this machine", webRequest{body: initialize, headers: map[string]string{"Origin": "http://evil.example@localhost"}}, 403},
		{"an origin without a scheme", webRequest{body: initialize, headers: map[string]string{"Origin": "//localhost"}}, 403},
		{"an origin of another scheme", webRequest{body: initialize, headers: map[string]string{"Origin": "ftp://localhost"}}, 403},
		{"a rebound name", webRequest{body: initialize, host: "evil.example"}, 403},
		{"a name that only begins like ours", webRequest{body: initialize, host: "localhost.evil.example"}, 403},
		{"too large", webRequest{body: strings.Repeat("x", MaxMessage+1)}, 413},
		{"no session", webRequest{body: legacyPing}, 400},
		{"an unknown session", webRequest{body: legacyPing, headers: map[string]string{"Mcp-Session-Id": "mcp-session-00000000-0000-0000-0000-000000000000"}}, 404},
		{"a stream without a session", webRequest{method: http.MethodGet}, 400},
		{"a stream of an unknown session", webRequest{method: http.MethodGet, headers: map[string]string{"Mcp-Session-Id": "x"}}, 404},
		{"the end of an unknown session", webRequest{method: http.MethodDelete, headers: map[string]string{"Mcp-Session-Id": "x"}}, 404},
		{"a stream in the modern era", webRequest{method: http.MethodGet, headers: map[string]string{"MCP-Protocol-Version": "2026-07-28"}}, 405},
		{"a method of no use", webRequest{method: http.MethodPut, body: initialize}, 405},
		{"only the head", webRequest{method: http.MethodHead}, 405},
		{"another content type", webRequest{body: initialize, headers: map[string]string{"Content-Type": "text/plain"}}, 415},
		{"an unknown version", webRequest{body: legacyPing, headers: map[string]string{"MCP-Protocol-Version": "1999-01-01"}}, 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if resp, body := test.req.do(t, url); resp.StatusCode != test.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, test.status, body)
			}
		})
	}
	if resp, body := (webRequest{body: initialize}).do(t, strings.TrimSuffix(url, httpserver.Endpoint)+
		"/other"); resp.StatusCode != 404 {
		t.Errorf("another path: status %d: %s", resp.StatusCode, body)
	}
}

// TestAnnouncedLength announces a message that is too long and never sends it: it is refused at once.
func TestAnnouncedLength(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	at, _ := startWeb(t, nil)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{",
		u.Path, u.Host, testToken, MaxMessage+1)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
		t.Errorf("status %d, the connection is closed: %t", resp.StatusCode, resp.Close)
	}
}

func TestLegacySession(t *testing.T) {
	url, _ := startWeb(t, nil)
	resp, _ := webRequest{body: initialize}.do(t, url)
	id := resp.Header.Get("Mcp-Session-Id")
	if len(id) < 26 {
		t.Fatalf("the session id %q can be guessed", id)
	}
	session := map[string]string{"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}
	if resp, body := (webRequest{body: legacyPing, headers: session}).do(t, url); resp.StatusCode != 200 {
		t.Errorf("ping: %d %s", resp.StatusCode, body)
	}
	stream := webRequest{method: http.MethodGet, headers: session}.open(t, url)
	if resp, _ := (webRequest{method: http.MethodDelete, headers: session}).do(t, url); resp.StatusCode != 200 {
		t.Errorf("end: %d", resp.StatusCode)
	}
	if text, err := io.ReadAll(stream.resp.Body); err != nil || len(text) > 0 { // the test hangs if the stream goes on
		t.Errorf("the stream of an ended session: %q %v", text, err)
	}
	if resp, body := (webRequest{body: legacyPing, headers: session}).do(t, url); resp.StatusCode != 404 ||
		!strings.Contains(body, `"code":-32001`) {
		t.Errorf("ping after the end: %d %s", resp.StatusCode, body) // clients begin a new session on this status, some on this code alone
	}
}

func modern(body string) webRequest {
	method, _, _ := strings.Cut(body[strings.Index(body, `"method":"`)+len(`"method":"`):], `"`)
	headers := map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if i := strings.Index(body, `"name":"`); i >= 0 {
		headers["Mcp-Name"], _, _ = strings.Cut(body[i+len(`"name":"`):], `"`)
	}
	return webRequest{body: body, headers: headers}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func TestModernCancelIsNotAnybodys(t *testing.T) {
	t.Parallel()
	url, root := startWeb(t, nil, func(c *Config) { c.Allow = []string{"Bash"} })
	done := make(chan string, 1)
	go func() {
		_, body := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"touch started; until [ -e go ]; do sleep 0.01; done; echo finished"},`+modernMeta+`}}`).do(t, url)
		done <- body
	}()
	await(t, filepath.Join(root, "started"))
	resp, _ := modern(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,`+modernMeta+
		`}}`).do(t, url)
	if resp.StatusCode != http.StatusAccepted {
		t.Errorf("status %d", resp.StatusCode)
	}
	writeFile(t, filepath.Join(root, "go"), "")
	if body := <-done; !strings.Contains(body, "finished") {
		t.Errorf("another's cancel ended the call: %s", body)
	}
}

// TestLegacyCancelIsNotAnswered cancels calls of a legacy session: no response is sent to them, and the id is free again.
func TestLegacyCancelIsNotAnswered(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	url, root := startWeb(t, nil, func(c *Config) { c.Allow = []string{"Bash"} })
	resp, _ := webRequest{body: initialize}.do(t, url)
	session := map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"),
		"MCP-Protocol-Version": "2025-11-25"}
	for _, meta := range []string{"", `,"_meta":{"progressToken":"t"}`} { // a single answer, and a stream
		done := make(chan string, 1)
		go func() {
			_, body := webRequest{headers: session,
				body: `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"touch started; echo said; sleep 600"}` + meta + `}}`}.do(t, url)
			done <- body
		}()
		await(t, filepath.Join(root, "started"))
		webRequest{headers: session, body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`}.do(t, url)
		if body := <-done; strings.Contains(body, `"id":5`) {
			t.Errorf("the cancelled call was answered: %s", body)
		}
		if err := os.Remove(filepath.Join(root, "started")); err != nil {
			t.Fatal(err)
		}
		if _, body := (webRequest{headers: session, body: `{"jsonrpc":"2.0","id":5,"method":"ping"}`}).do(t,
			url); !strings.Contains(body, `"id":5`) {
			t.Errorf("a ping with the same id: %s", body)
		}
	}
}

func TestDisconnectCancelsInTheModernEra(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	url, root := startWeb(t, nil, func(c *Config) { c.Allow = []string{"Bash"} })
	ctx, cancel := context.WithCancel(context.Background())
	q := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"echo $$ > pid; sleep 600"},` + modernMeta + `}}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	q.headers["Authorization"], q.headers["Content-Type"] = "Bearer "+testToken, "application/json"
	for name, value := range q.headers {
		req.Header.Set(name, value)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	pidFile := filepath.Join(root, "pid")
	await(t, pidFile)
	var pid string
	for pid == "" { // the shell makes the file before it writes to it
		raw, err := os.ReadFile(pidFile)
		if err != nil {
			t.Fatal(err)
		}
		pid = strings.TrimSpace(string(raw))
	}
	cancel()
	<-gone
	// The scope is free again only when the command has ended.
	_, body := modern(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"kill -0 `+pid+` 2>/dev/null && echo alive || echo ended"},`+modernMeta+`}}`).do(t, url)
	if !strings.Contains(body, "ended") {
		t.Errorf("after its client has gone, the command goes on: %s", body)
	}
}

// working tells that it works, and goes on when there is a file go, so that no load of the machine lets it end untold.
const working = `{"command":"echo working; until [ -e go ]; do sleep 0.01; done; rm go; echo more"}`

// endWorking holds the answer to such a command against its id, after progress has been told on its stream.
func endWorking(t *testing.T, stream *webStream, root, id string) {
	t.Helper()
	if a := stream.next(); a.Method != "notifications/progress" {
		t.Fatalf("the first message is %+v", a)
	}
	writeFile(t, filepath.Join(root, "go"), "")
	a := stream.next()
	for a.Method == "notifications/progress" {
		a = stream.next()
	}
	if string(a.ID) != id || !strings.Contains(string(a.Result), "more") {
		t.Fatalf("the answer is %s %+v", a.Result, a.Error)
	}
}
