package mcpserver

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// harmless are tools that may be called with anything at all.
func harmless(c *Config) { c.Tools = []string{"Glob", "Grep", "Read"} }

var fuzzedMessages = []string{
	initialize, legacyPing, ping, bareListen, `{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{` +
		modernMeta + `}}`,
	toolCall(1, "Read", `{"file_path":"a.txt"}`), toolCall(2, "Grep", `{"pattern":"a","-n":"true"}`),
	toolCall(3, "Nothing", `[]`),
	`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"},"requestState":"AAAA",` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":"ask-1","result":{}}`,
	`[` + ping + `]`, `{`, `null`, `5`, `{"id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, "{\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":[]}}",
}

// Whatever line comes, the host answers in the protocol and goes on.
func FuzzLine(f *testing.F) {
	for _, line := range fuzzedMessages {
		f.Add([]byte(line))
	}
	h, _ := openHost(f, map[string]string{"a.txt": "a\n"}, harmless)
	s, err := NewServer(h)
	if err != nil {
		f.Fatal(err)
	}
	inR, in := io.Pipe()
	out, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(context.Background(), inR, outW, nil) }()
	answers := bufio.NewReader(out)
	f.Cleanup(func() {
		in.Close()
		go io.Copy(io.Discard, answers)
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, line []byte) {
		id := rand.Text() // that no line can name
		message := append(slices.DeleteFunc(slices.Clone(line), func(b byte) bool { return b == '\n' }), "\n"+
			`{"jsonrpc":"2.0","id":"`+id+`","method":"ping"}`+"\n"...)
		go in.Write(message)
		for {
			answer, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				JSONRPC string
				ID      json.RawMessage
			}
			if err := json.Unmarshal(answer, &m); err != nil || m.JSONRPC != "2.0" {
				t.Fatalf("%v: %q", err, answer)
			}
			if string(m.ID) == `"`+id+`"` {
				return
			}
		}
	})
}

// Whatever request comes, it is answered in time; without a token nothing is told.
func FuzzHTTP(f *testing.F) {
	for _, body := range fuzzedMessages {
		f.Add("POST", "Mcp-Method: tools/call\nMcp-Name: Read\nMCP-Protocol-Version: 2026-07-28", body, true)
		f.Add("POST", "", body, true)
	}
	f.Add("GET", "Mcp-Session-Id: ../../etc/passwd\nLast-Event-ID: x-1", "", true)
	f.Add("DELETE", "Mcp-Session-Id: x", "", true)
	f.Add("POST", "Content-Encoding: gzip\nOrigin: null\nHost: x", initialize, false)
	h, root := openHost(f, map[string]string{"a.txt": "a\n"}, harmless)
	url, _ := serveWeb(f, h)
	web := &http.Client{Timeout: 20 * time.Second}
	f.Cleanup(web.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, method, headers, body string, known bool) {
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Skip("no request")
		}
		req.Header.Set("Content-Type", "application/json")
		for line := range strings.Lines(headers) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && len(req.Header) < 50 {
				req.Header.Set(name, strings.TrimSpace(value))
			}
		}
		req.Header.Del("Authorization")
		if known {
			req.Header.Set("Authorization", "Bearer "+testToken)
		}
		resp, err := web.Do(req)
		if err != nil {
			if strings.Contains(err.Error(), "invalid") { // the client itself refuses to send it
				t.Skip("no request")
			}
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !known && (resp.StatusCode != 401 && resp.StatusCode != 403 && resp.StatusCode != 404 &&
			resp.StatusCode != 429 || strings.Contains(string(answer), root)) {
			t.Errorf("a stranger is answered %s: %s", resp.Status, answer)
		}
		if resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable ||
			strings.Contains(string(answer), testToken) {
			t.Errorf("%s: %s", resp.Status, answer)
		}
	})
}
