//go:build unix

package attack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackHTTP sends what a web page, a rebound name or a process without the token could send. Nothing may
// be told but that it is refused.
func TestAttackHTTP(t *testing.T) {
	w := newWorld(t)
	h := w.host(t, host.HTTPModern, profileFlags(w, "rules")...)
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Write","arguments":{"file_path":"made","content":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"a","version":"0"}}}}`, client.Modern)
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"0"}}}`
	port := h.URL[strings.LastIndexByte(h.URL, ':')+1:]
	port = port[:strings.IndexByte(port, '/')]
	tests := []struct {
		name, method, path, body string
		header                   map[string]string // "" takes one away
		host                     string
		status                   int
	}{
		{name: "the call as it should be", status: 200},
		// DNS rebinding: the name of the attacker leads to this port.
		{name: "rebound name", host: "evil.example:" + port, status: 403},
		{name: "rebound name without a port", host: "evil.example", status: 403},
		{name: "a name that begins like ours", host: "localhost.evil.example:" + port, status: 403},
		{name: "a name that begins like an address", host: "127.0.0.1.evil.example:" + port, status: 403},
		{name: "another address", host: "10.0.0.1:" + port, status: 403},
		{name: "any address", host: "0.0.0.0:" + port, status: 403},
		{name: "user in the host", host: "localhost@evil.example", status: 403},
		// A page of another origin.
		{name: "foreign origin", header: map[string]string{"Origin": "https://evil.example"}, status: 403},
		{name: "origin like ours", header: map[string]string{"Origin": "http://127.0.0.1.evil.example"}, status: 403},
		{name: "opaque origin", header: map[string]string{"Origin": "null"}, status: 403},
		{name: "origin of a file", header: map[string]string{"Origin": "file://"}, status: 403},
		{name: "origin of an extension", header: map[string]string{"Origin": "chrome-extension://abc"}, status: 403},
		{name: "origin with a user", header: map[string]string{"Origin": "http://localhost@evil.example"}, status: 403},
		{name: "origin with a fragment", header: map[string]string{"Origin": "http://localhost#@evil.example/"}, status: 403},
		{name: "origin with a query", header: map[string]string{"Origin": "http://localhost?@evil.example"}, status: 403},
		{name: "origin that ends in a dot", header: map[string]string{"Origin": "http://localhost."}, status: 403},
		{name: "origin in one number", header: map[string]string{"Origin": "http://2130706433"}, status: 403},
		{name: "preflight", method: "OPTIONS", header: map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, status: 403},
		// No token, or not the token.
		{name: "no token", header: map[string]string{"Authorization": ""}, status: 401},
		{name: "empty token", header: map[string]string{"Authorization": "Bearer "}, status: 401},
		{name: "wrong token", header: map[string]string{"Authorization": "Bearer " + strings.Repeat("0", len(h.Token))}, status: 401},
		{name: "a prefix of the token", header: map[string]string{"Authorization": "Bearer " + h.Token[:len(h.Token)-1]}, status: 401},
		{name: "more than the token", header: map[string]string{"Authorization": "Bearer " + h.Token + "x"}, status: 401},
		{name: "token of another scheme", header: map[string]string{"Authorization": "Basic " + h.Token}, status: 401},
		{name: "token in the address", path: "?token=" + h.Token + "&access_token=" + h.Token, header: map[string]string{"Authorization": ""}, status: 401},
		{name: "token in a cookie", header: map[string]string{"Authorization": "", "Cookie": "token=" + h.Token}, status: 401},
		{name: "initialize without a token", body: initialize, header: map[string]string{"Authorization": "", "MCP-Protocol-Version": ""}, status: 401},
		{name: "stream without a token", method: "GET", header: map[string]string{"Authorization": "", "Mcp-Session-Id": "x"}, status: 401},
		{name: "end of a session without a token", method: "DELETE", header: map[string]string{"Authorization": "", "Mcp-Session-Id": "x"}, status: 401},
		// Another path, a session that was never opened.
		{name: "another path", path: "/../etc/passwd", status: 404},
		{name: "forged session", header: map[string]string{"Mcp-Session-Id": "mcp-session-00000000-0000-0000-0000-000000000000", "MCP-Protocol-Version": "2025-11-25"}, status: 404},
		{name: "stream of a forged session", method: "GET", header: map[string]string{"Mcp-Session-Id": "mcp-session-00000000-0000-0000-0000-000000000000", "MCP-Protocol-Version": "2025-11-25"}, status: 404},
		{name: "no session", header: map[string]string{"MCP-Protocol-Version": "2025-11-25"}, status: 400},
		// Bodies.
		{name: "a body that is too long", body: strings.Repeat(" ", 33<<20), status: 413},
		{name: "no JSON", body: "{", status: 400},
		{name: "a batch", body: "[" + call + "," + call + "]", status: 400},
		{name: "another method in the header", header: map[string]string{"Mcp-Method": "tools/list"}, status: 400},
		{name: "another tool in the header", header: map[string]string{"Mcp-Name": "Read"}, status: 400},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			body := call
			if tt.body != "" {
				body = tt.body
			}
			method := "POST"
			if tt.method != "" {
				method = tt.method
			}
			req, err := http.NewRequest(method, h.URL+tt.path, bytes.NewReader([]byte(body)))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + h.Token,
				"MCP-Protocol-Version": string(client.Modern), "Mcp-Method": "tools/call", "Mcp-Name": "Write",
			} {
				req.Header.Set(k, v)
			}
			for k, v := range tt.header {
				if req.Header.Set(k, v); v == "" {
					req.Header.Del(k)
				}
			}
			req.Host = tt.host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			answer, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, tt.status, host.Clip(string(answer), 300))
			}
			if allowed := resp.Header.Get("Access-Control-Allow-Origin"); allowed != "" {
				t.Errorf("pages of %s may read the answer", allowed)
			}
			if strings.Contains(string(answer), h.Token) || tt.status != http.StatusOK &&
				strings.Contains(string(answer), w.ws) {
				t.Errorf("the answer tells too much: %s", answer)
			}
			_, err = os.Lstat(filepath.Join(w.ws, "made"))
			if ran := err == nil; ran != (tt.status == http.StatusOK) {
				t.Errorf("the call ran: %v", ran)
			}
			os.Remove(filepath.Join(w.ws, "made"))
		})
	}
	for _, name := range []string{"token", "secret", "audit.jsonl"} {
		if info, err := os.Stat(filepath.Join(w.state, name)); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v", name, info.Mode())
		}
	}
	w.end(t, h)
}
