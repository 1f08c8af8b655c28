package console

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// TestConsoleAttacks tries to get past the door of the console. Each attack changes one thing of a request that
// would be answered.
func TestConsoleAttacks(t *testing.T) {
	c := startConsole(t, host.HTTPModern, askPush)
	if status := c.Enter(t, host.NewBrowser(t)); status != http.StatusSeeOther {
		t.Fatalf("the link was answered by %d", status)
	}
	if status := c.Enter(t, host.NewBrowser(t)); status != http.StatusForbidden {
		t.Errorf("the link worked twice: %d", status)
	}
	c.Link = c.OpenLink(t)
	if status := c.Enter(t, c.Web); status != http.StatusSeeOther {
		t.Fatalf("the second link was answered by %d", status)
	}
	if status, _ := c.Get(t, c.Web, "/", nil); status != http.StatusOK {
		t.Fatalf("the page was answered by %d", status)
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	bare := host.NewBrowser(t)
	gets := []struct {
		name   string
		web    *http.Client
		change func(*http.Request)
		want   int
	}{
		{"no cookie", bare, nil, http.StatusUnauthorized},
		{"a token of MCP", bare, header("Authorization", "Bearer "+c.Token), http.StatusUnauthorized},
		{"a token of MCP as cookie", bare, header("Cookie", "toolhost="+c.Token), http.StatusUnauthorized},
		{"a name that was rebound", c.Web, func(r *http.Request) { r.Host = "evil.example:80" }, http.StatusMisdirectedRequest},
		{"a name that looks like loopback", c.Web, func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, http.StatusMisdirectedRequest},
		{"another site's page", c.Web, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"a page on another port", c.Web, header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
	}
	for _, path := range []string{"/", "/events", "/part/calls", "/history", "/rules", "/audit", "/tasks/x"} {
		for _, a := range gets {
			if status, body := c.Get(t, a.web, path, a.change); status != a.want || strings.Contains(body, c.Dir) {
				t.Errorf("%s, %s: answered by %d, want %d", path, a.name, status, a.want)
			}
		}
	}
	token := ""
	if _, page := c.Get(t, c.Web, "/", nil); host.TokenField.MatchString(page) {
		token = host.TokenField.FindStringSubmatch(page)[1]
	}
	posts := []struct {
		name   string
		web    *http.Client
		token  string
		change func(*http.Request)
		want   int
	}{
		{"no token of the form", c.Web, "", nil, http.StatusForbidden},
		{"a wrong token", c.Web, strings.Repeat("A", len(token)), nil, http.StatusForbidden},
		{"no cookie", bare, token, nil, http.StatusUnauthorized},
		{"another origin", c.Web, token, header("Origin", "http://evil.example"), http.StatusForbidden},
		{"another port", c.Web, token, header("Origin", "http://127.0.0.1:1"), http.StatusForbidden},
		{"another site", c.Web, token, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
	}
	for _, path := range []string{"/answer", "/tasks/x/stop", "/history", "/history/x/undo", "/rules",
		"/audit", "/leave"} {
		for _, a := range posts {
			if status, _ := c.Send(t, a.web, path, url.Values{"token": {a.token}}, a.change); status != a.want {
				t.Errorf("POST %s, %s: answered by %d, want %d", path, a.name, status, a.want)
			}
		}
	}
	if status, body := c.Send(t, c.Web, "/answer", url.Values{"token": {token}, "x": {strings.Repeat("x", 2<<20)}},
		nil); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a form of 2 MiB: %d %s", status, body)
	}
}

// TestConsoleCookieOpensNoMCP holds the two doors apart in the other direction too.
func TestConsoleCookieOpensNoMCP(t *testing.T) {
	c := startConsole(t, host.HTTPModern, "")
	c.Enter(t, c.Web)
	own, err := url.Parse(c.At("/"))
	if err != nil {
		t.Fatal(err)
	}
	cookies := c.Web.Jar.Cookies(own)
	if len(cookies) != 1 {
		t.Fatalf("there are %d cookies, want 1", len(cookies))
	}
	req, err := http.NewRequest(http.MethodPost, c.URL,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.AddCookie(cookies[0])
	if status, _ := host.Do(t, http.DefaultClient, req, nil); status != http.StatusUnauthorized {
		t.Errorf("with the cookie of the console: %d", status)
	}
	req.Header.Set("Authorization", "Bearer "+cookies[0].Value)
	if status, _ := host.Do(t, http.DefaultClient, req, nil); status != http.StatusUnauthorized {
		t.Errorf("with the cookie as token: %d", status)
	}
}

// TestConsoleOutOfReach lets the agent look for the way into the console, by every tool and from the sandbox.
func TestConsoleOutOfReach(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := startConsole(t, host.Setting{Transport: transport, Era: client.Modern},
				`{"sandbox":{"network":{"allowedDomains":["*"]}}}`)
			folder := filepath.Join(c.Home, "state", "toolhost", "console")
			entries, err := os.ReadDir(folder)
			if err != nil || len(entries) == 0 {
				t.Fatalf("the way in is not where this test looks for it: %v", err)
			}
			record := ""
			for _, e := range entries {
				if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
				}
				if strings.HasSuffix(e.Name(), ".json") {
					record = filepath.Join(folder, e.Name())
				}
			}
			raw, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			_, code, _ := strings.Cut(c.Link, "#")
			if !strings.Contains(string(raw), code) {
				t.Fatalf("the record does not hold the code: %s", raw)
			}
			base, _, _ := strings.Cut(c.Link, "/enter#")
			socket := strings.TrimSuffix(record, ".json") + ".sock"
			calls := []struct{ tool, args string }{
				{"Read", `{"file_path":"` + record + `"}`},
				{"Grep", `{"pattern":"code","output_mode":"content","path":"` + folder + `"}`},
				{"Glob", `{"pattern":"*","path":"` + folder + `"}`},
				{"Write", `{"file_path":"` + record + `","content":"x"}`},
				{"Bash", `{"command":"cat ` + record + `"}`},
				{"Bash", `{"command":"ls -la ` + folder + ` ` + filepath.Dir(folder) + `"}`},
				{"Bash", `{"command":"cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'"}`},
				{"Bash", `{"command":"curl -sS -m 5 ` + base + `/"}`},
				{"Bash", `{"command":"curl -sS -m 5 --noproxy '*' ` + base + `/enter"}`},
				{"Bash", `{"command":"curl -sS -m 5 --unix-socket ` + socket + ` http://127.0.0.1/enter"}`},
				{"Bash", `{"command":"exec 3<>/dev/tcp/` + strings.ReplaceAll(strings.TrimPrefix(base, "http://"), ":", "/") + `; printf 'GET /enter HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3; timeout 5 cat <&3"}`},
			}
			for _, call := range calls {
				r, err := c.Call(context.Background(), call.tool, call.args)
				if err != nil {
					t.Fatal(err)
				}
				if text := r.Text(); strings.Contains(text, code) || strings.Contains(text, "<title>") ||
					strings.Contains(text, ".sock\n") {
					t.Errorf("%s %s reached it:\n%s", call.tool, call.args, text)
				}
			}
			if now, err := os.ReadFile(record); err != nil || string(now) != string(raw) {
				t.Errorf("the record was changed to %q, %v", now, err)
			}
		})
	}
}
