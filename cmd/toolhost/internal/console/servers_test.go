package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/mcpserver"
)

// fakeServer is a server over HTTP with one tool of this description; "": every request fails.
func fakeServer(t *testing.T, doc *atomic.Value) string {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m) // a GET has none
		result, doc := "", doc.Load().(string)
		switch {
		case doc == "":
			http.Error(w, "the disk is full", http.StatusInternalServerError)
			return
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"instructions":"Keeps the wiki."}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"say","description":` + quoted(doc) + `,"inputSchema":{"type":"object"}}]}`
		case m.Method == "tools/call":
			result = `{"content":[]}`
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		default:
			http.Error(w, "no such method", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestServersOnThePage reviews, accepts and restarts a server, and sees why it failed.
func TestServersOnThePage(t *testing.T) {
	var doc atomic.Value
	doc.Store("Says it.")
	file := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"wiki":{"url":"`+fakeServer(t, &doc)+
		`"},"other":{"type":"sse","url":"http://x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil, func(c *mcpserver.Config) {
		c.MCPConfig, c.Allow, c.Tools = []string{file}, []string{"mcp__wiki"}, []string{"Read"}
	})
	s.operator.Gateway().Wait(context.Background())
	again := func() { s.sent(t, "/servers/wiki/restart", url.Values{}) }
	page := func(path string, want, not []string) string {
		t.Helper()
		status, page := s.get(t, path)
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s (%d) does not hold %q:\n%s", path, status, text, page)
			}
		}
		for _, text := range not {
			if strings.Contains(page, text) {
				t.Errorf("%s holds %q:\n%s", path, text, page)
			}
		}
		return page
	}
	page("/", []string{`href="/servers"`}, nil)
	page("/servers", []string{"Keeps the wiki.", "mcp__wiki__say", "Says it.", "1 tools", "refused", "sse"},
		[]string{"Withheld", "/servers/other/restart"})
	page("/servers/wiki", []string{"Keeps the wiki."}, []string{"sse"})
	page("/servers/none", []string{"no such server"}, nil)

	doc.Store("Says something else.")
	again()
	first := page("/servers/wiki", []string{"Withheld until you accept it", "Says it.", "Says something else.", "0 tools", "withheld"}, nil)
	doc.Store("Says a third thing.")
	again()
	seen := func(page string) url.Values {
		return url.Values{"seen": {regexp.MustCompile(`name="seen" value="(\w+)"`).FindStringSubmatch(page)[1]}}
	}
	if status, page := s.sent(t, "/servers/wiki/accept", seen(first)); status != http.StatusConflict ||
		!strings.Contains(page, "has changed since the page was loaded") {
		t.Errorf("accepting what was not shown: %d\n%s", status, page)
	}
	if status, page := s.sent(t, "/servers/wiki/accept",
		seen(page("/servers/wiki", nil, nil))); status != http.StatusOK || strings.Contains(page, "Withheld") ||
		!strings.Contains(page, "is accepted") {
		t.Errorf("accepting: %d\n%s", status, page)
	}
	if r := s.call("mcp__wiki__say", `{}`); r.IsError {
		t.Error(r.Text)
	}

	doc.Store("")
	again()
	page("/servers/wiki", []string{"failed", "the disk is full", "1 tools"}, nil)
	if status, _ := s.sent(t, "/servers/none/restart", url.Values{}); status != http.StatusNotFound {
		t.Errorf("restarting what there is not: %d", status)
	}
}

// TestServersWhereNothingCounts refuses to accept and restart where a command could open the page.
func TestServersWhereNothingCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"wiki":{"url":"http://127.0.0.1:1"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, map[string]string{".claude/settings.json": `{"sandbox":{"enabled":false}}`},
		func(c *mcpserver.Config) { c.MCPConfig = []string{file} })
	if s.operator.MayAnswer() == nil {
		t.Skip("commands are contained all the same")
	}
	for _, what := range []string{"accept", "restart"} {
		if status, page := s.sent(t, "/servers/wiki/"+what, url.Values{}); status != http.StatusConflict ||
			!strings.Contains(page, "Nothing was done") {
			t.Errorf("%s: %d\n%s", what, status, page)
		}
	}
}
