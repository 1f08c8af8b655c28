package mcpserver

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
)

// rpcError is the error in a response.
func rpcError(t *testing.T, body string) (code int, message string) {
	t.Helper()
	var r struct {
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return r.Error.Code, r.Error.Message
}

// with returns the request with another header; an empty one is taken away.
func (q webRequest) with(name, value string) webRequest {
	headers := map[string]string{name: value}
	for n, v := range q.headers {
		if n != name {
			headers[n] = v
		}
	}
	q.headers = headers
	return q
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	address, _ := startWeb(t, map[string]string{"a.txt": "a\n"})
	call := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"},` + modernMeta + `}}`)
	packed := &bytes.Buffer{}
	z := gzip.NewWriter(packed)
	_, _ = z.Write([]byte(call.body))
	z.Close()
	body := func(text string) webRequest { q := call; q.body = text; return q }
	tests := []struct {
		name   string
		req    webRequest
		status int
		code   int
		says   string
	}{
		{"another content type", call.with("Content-Type", "text/plain"), 415, mcp.INVALID_REQUEST, "application/json"},
		{"no content type", call.with("Content-Type", ""), 415, mcp.INVALID_REQUEST, "application/json"},
		{"a charset", call.with("Content-Type", "application/json; charset=utf-8"), 200, 0, ""},
		{"compressed", body(packed.String()).with("Content-Encoding", "gzip"), 415, mcp.INVALID_REQUEST, "uncompressed"},
		{"compressed in secret", body(packed.String()), 400, mcp.PARSE_ERROR, "not valid UTF-8"},
		{"no method header", call.with("Mcp-Method", ""), 400, mcp.HEADER_MISMATCH, "Mcp-Method"},
		{"another method", call.with("Mcp-Method", "tools/list"), 400, mcp.HEADER_MISMATCH, "Mcp-Method"},
		{"no name header", call.with("Mcp-Name", ""), 400, mcp.HEADER_MISMATCH, "Mcp-Name"},
		{"another name", call.with("Mcp-Name", "Bash"), 400, mcp.HEADER_MISMATCH, "Mcp-Name"},
		{"no version in the body", body(strings.Replace(call.body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "", 1)), 400, mcp.INVALID_PARAMS, "protocolVersion"},
		{"another version in the body", body(strings.Replace(call.body, "2026-07-28", "2026-07-29", 1)), 400, mcp.HEADER_MISMATCH, "2026-07-29"},
		{"a version of tomorrow", body(strings.Replace(call.body, "2026-07-28", "2027-01-01", 1)).with("MCP-Protocol-Version", "2027-01-01"), 400, mcp.UNSUPPORTED_PROTOCOL_VERSION, "2027-01-01"},
		{"a version of yesterday", call.with("MCP-Protocol-Version", "1999-01-01"), 400, mcp.UNSUPPORTED_PROTOCOL_VERSION, "1999-01-01"},
		{"no version header", call.with("MCP-Protocol-Version", ""), 400, mcp.HEADER_MISMATCH, "Protocol-Version"},
		{"no JSON", body(`{"jsonrpc":`), 400, mcp.PARSE_ERROR, "not valid JSON"},
		{"nothing", body(""), 400, mcp.PARSE_ERROR, "not valid JSON"},
		{"a batch", body("[" + call.body + "]"), 400, mcp.INVALID_REQUEST, "batches"},
		{"a number for a method", body(strings.Replace(call.body, `"tools/call"`, "7", 1)), 400, mcp.INVALID_REQUEST, "method must be a string"},
		{"no method", body(strings.Replace(call.body, `"method":"tools/call",`, "", 1)), 400, mcp.INVALID_REQUEST, "needs a method"},
		{"an empty method", body(strings.Replace(call.body, `"tools/call"`, `""`, 1)), 400, mcp.INVALID_REQUEST, "needs a method"},
		{"an object for an id", body(strings.Replace(call.body, `"id":5`, `"id":{}`, 1)), 400, mcp.INVALID_REQUEST, "an integer between"},
		{"null for an id", body(strings.Replace(call.body, `"id":5`, `"id":null`, 1)), 400, mcp.INVALID_REQUEST, "an integer between"},
		{"a forged requestState", body(strings.Replace(call.body, `"name":`, `"requestState":"aGVsbG8","name":`, 1)), 400, mcp.INVALID_PARAMS, "requestState"},
		{"an unknown tool", modern(strings.Replace(call.body, `"Read"`, `"Nothing"`, 1)), 400, mcp.INVALID_PARAMS, "Nothing"},
		{"an unknown tool under another name", call.with("Mcp-Name", "Nothing"), 400, mcp.HEADER_MISMATCH, "Mcp-Name"},
		{"another method, and an unknown tool", body(strings.Replace(call.body, `"Read"`, `"Nothing"`, 1)).with("Mcp-Method", "tools/list"), 400, mcp.HEADER_MISMATCH, "Mcp-"},
		{"an alias under the name of its tool", body(strings.Replace(call.body, `"Read"`, `"read_file"`, 1)), 400, mcp.HEADER_MISMATCH, "Mcp-Name"},
		{"a name in two spellings", body(strings.Replace(call.body, `"name":"Read"`, `"Name":"Write","name":"Read"`, 1)), 400, mcp.INVALID_REQUEST, "params.Name"},
		{"other arguments", body(strings.Replace(call.body, `"arguments":`, `"arguments":{"file_path":"b.txt"},"arguments":`, 1)), 400, mcp.INVALID_REQUEST, "params.arguments"},
		{"no JSON-RPC", body(strings.Replace(call.body, `"2.0"`, `2.0`, 1)), 400, mcp.INVALID_REQUEST, "jsonrpc"},
		{"an unknown method", modern(strings.Replace(call.body, "tools/call", "tools/sing", 1)), 404, mcp.METHOD_NOT_FOUND, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resp, text := test.req.do(t, address)
			code, message := rpcError(t, text)
			if resp.StatusCode != test.status || code != test.code || !strings.Contains(message, test.says) {
				t.Errorf("status %d, code %d, want %d, %d and %q: %s", resp.StatusCode, code, test.status, test.code,
					test.says, text)
			}
		})
	}
	if resp, text := call.with("X-Flood", strings.Repeat("x", 128<<10)).do(t,
		address); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a flood of headers: %s %s", resp.Status, text)
	}
	if resp, text := call.do(t, address); resp.StatusCode != 200 || !strings.Contains(text, "a.txt") &&
		!strings.Contains(text, `\ta`) {
		t.Errorf("after all that: %s %s", resp.Status, text)
	}
}

const heldCommand = `touch started; until [ -e go ]; do sleep 0.01; done; echo finished`

func TestSameIDInFlight(t *testing.T) {
	t.Parallel()
	address, root := startWeb(t, map[string]string{"a.txt": "content\n"},
		func(c *Config) { c.Allow = []string{"Bash"} })
	resp, _ := webRequest{body: initialize}.do(t, address)
	session := map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"),
		"MCP-Protocol-Version": "2025-11-25"}
	held := make(chan string, 1)
	go func() {
		_, body := webRequest{body: toolCall(7, "Bash", `{"command":"`+heldCommand+`"}`),
			headers: session}.do(t, address)
		held <- body
	}()
	await(t, filepath.Join(root, "started"))
	resp, body := webRequest{body: toolCall(7, "Read", `{"file_path":"a.txt"}`), headers: session}.do(t, address)
	if code, _ := rpcError(t, body); resp.StatusCode != 400 || code != mcp.INVALID_REQUEST {
		t.Errorf("the same id in a session: %s %s", resp.Status, body)
	}
	// Modern requests belong to no session; two clients may well use the same id.
	_, body = modern(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"},`+modernMeta+`}}`).do(t, address)
	if !strings.Contains(body, "content") {
		t.Errorf("the same id in the modern era: %s", body)
	}
	writeFile(t, filepath.Join(root, "go"), "")
	if body := <-held; !strings.Contains(body, "finished") {
		t.Errorf("the first call was disturbed: %s", body)
	}
	_, body = webRequest{body: toolCall(7, "Read", `{"file_path":"a.txt"}`), headers: session}.do(t, address)
	if !strings.Contains(body, "content") {
		t.Errorf("the id again, after its answer: %s", body)
	}
}

// Clients that dawdle with their headers, their body or with reading hold no one else.
func TestSlowClientsHoldNobody(t *testing.T) {
	t.Parallel()
	address, _ := startWeb(t, map[string]string{"a.txt": "content\n"})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	head := "POST " + httpserver.Endpoint + " HTTP/1.1\r\nHost: " + u.Host + "\r\n"
	known := head + "Authorization: Bearer " + testToken +
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
	for range 50 {
		for _, part := range []string{head, head + "X-Slow: ", known, known + `{"jsonrpc"`} {
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, body := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"},`+modernMeta+`}}`).do(t, address)
	if !strings.Contains(body, "content") {
		t.Errorf("beside slow clients: %s", body)
	}
}

// Without a token not even the body is waited for.
func TestNothingIsReadBeforeTheToken(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	address, _ := startWeb(t, nil)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 30000000\r\n\r\n{", httpserver.Endpoint, u.Host)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %s", resp.Status)
	}
}
