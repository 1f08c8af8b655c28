package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// An office is a server whose callers are named by a tokens file.
type office struct {
	url, root, tokens, log string
	host                   *Host
}

func openOffice(t *testing.T, change ...func(*Config)) *office {
	t.Helper()
	o := &office{tokens: filepath.Join(t.TempDir(), "tokens.json"), log: filepath.Join(t.TempDir(), "audit.jsonl")}
	change = append(change, func(c *Config) { c.Remote, c.AuditLog, c.Allow = true, o.log, []string{"Bash"} })
	o.host, o.root = openHost(t, map[string]string{"a.txt": "alpha\n"}, change...)
	file, err := auth.OpenTokenFile(o.tokens, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(file.Close)
	o.url, _ = serveWeb(t, o.host, func(c *httpserver.Config) { c.Verifier = append(auth.Any{c.Verifier}, file) })
	return o
}

// add makes a token.
func (o *office) add(t *testing.T, name string, rights auth.Rights) string {
	t.Helper()
	bearer, _, err := auth.AddToken(o.tokens, name, rights, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	return bearer
}

// as makes a request of the bearer of a token.
func (q webRequest) as(bearer string, headers map[string]string) webRequest {
	all := map[string]string{}
	for _, m := range []map[string]string{q.headers, headers} {
		for k, v := range m {
			all[k] = v
		}
	}
	all["Authorization"] = "Bearer " + bearer
	q.headers = all
	return q
}

func callAs(tool, args string) webRequest {
	return modern(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`,
		tool, args, modernMeta))
}

// open opens a legacy session and returns the headers that name it.
func (o *office) open(t *testing.T, bearer string) map[string]string {
	t.Helper()
	resp, body := webRequest{body: initialize}.as(bearer, nil).do(t, o.url)
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session: %d %s", resp.StatusCode, body)
	}
	return map[string]string{"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}
}

func TestForeignSession(t *testing.T) {
	o := openOffice(t)
	alice, bob := o.add(t, "alice", auth.All), o.add(t, "bob", auth.All)
	session := o.open(t, alice)
	tests := []struct {
		name string
		req  webRequest
	}{
		{"a request", webRequest{body: legacyPing}},
		{"a call", webRequest{body: `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"}}}`}},
		{"a cancel", webRequest{body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`}},
		{"an answer", webRequest{body: `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"decision":"allow once"}}}`}},
		{"its stream", webRequest{method: http.MethodGet}},
		{"its stream, resumed", webRequest{method: http.MethodGet, headers: map[string]string{"Last-Event-ID": "1"}}},
		{"its end", webRequest{method: http.MethodDelete}},
	}
	_, unknown := webRequest{body: legacyPing}.as(bob,
		map[string]string{"Mcp-Session-Id": "NEVERMADE", "MCP-Protocol-Version": "2025-11-25"}).do(t, o.url)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := tt.req.as(bob, session).do(t, o.url)
			if resp.StatusCode != http.StatusNotFound || body != unknown {
				t.Errorf("%d %s; an unknown session gets %s", resp.StatusCode, body, unknown)
			}
			if resp, body := (webRequest{body: legacyPing}).as(alice, session).do(t,
				o.url); resp.StatusCode != http.StatusOK {
				t.Errorf("the session of its owner: %d %s", resp.StatusCode, body)
			}
		})
	}
	// In the modern era a session id means nothing, whatever the body says about the era.
	for _, req := range []webRequest{callAs("Read", `{"file_path":"a.txt"}`), {body: legacyPing},
		{body: `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`}, {method: http.MethodDelete}} {
		req = req.as(bob, map[string]string{"Mcp-Session-Id": session["Mcp-Session-Id"], "MCP-Protocol-Version": "2026-07-28"})
		req.do(t, o.url)
		if resp, body := (webRequest{body: legacyPing}).as(alice, session).do(t,
			o.url); resp.StatusCode != http.StatusOK {
			t.Errorf("after %s: the session of its owner: %d %s", req.body, resp.StatusCode, body)
		}
	}
}

// The library forgets a session when the table does, with its stream.
func TestForgottenSessionsAreForgottenByAll(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "alpha\n"})
	url, _ := serveWeb(t, h, func(c *httpserver.Config) { c.Limits = httpserver.UsualLimits(); c.Limits.Sessions = 2 })
	first := newSession(t, url, "")
	if _, body := (webRequest{body: toolCall(7, "Read", `{"file_path":"a.txt"}`), headers: first}).do(t,
		url); !strings.Contains(body, "alpha") {
		t.Fatal(body)
	}
	stream := webRequest{method: http.MethodGet, headers: first}.open(t, url)
	newSession(t, url, "")
	newSession(t, url, "")
	if text, err := io.ReadAll(stream.resp.Body); err != nil || len(text) > 0 { // the test hangs if the stream goes on
		t.Errorf("%q %v", text, err)
	}
	if resp, _ := (webRequest{body: legacyPing, headers: first}).do(t, url); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the forgotten session: %s", resp.Status)
	}
	if n := scopesOf(h); n != 0 {
		t.Errorf("%d scopes are left", n)
	}
}

// What a client says of itself is kept as long as its session.
func TestLongInitialize(t *testing.T) {
	url, _ := startWeb(t, nil)
	long := strings.Replace(initialize, `"name":"t"`, `"name":"`+strings.Repeat("t", 64<<10)+`"`, 1)
	if resp, body := (webRequest{body: long}).do(t, url); resp.StatusCode != http.StatusRequestEntityTooLarge ||
		resp.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%s %s", resp.Status, body)
	}
}

// rightsOfTools are what the tools need: a new one must be thought about.
var rightsOfTools = map[string]auth.Rights{
	"Agent": auth.Exec,
	"Read":  auth.Read, "Glob": auth.Read, "Grep": auth.Read, "TaskOutput": auth.Read,
	"Edit": auth.Write, "Write": auth.Write, "NotebookEdit": auth.Write,
	"Bash": auth.Exec, "TaskStop": auth.Exec, "WebFetch": auth.Exec, "WebSearch": auth.Exec,
	"AskUserQuestion": auth.Read, "EnterPlanMode": auth.Read, "ExitPlanMode": auth.Read, "EnterWorktree": auth.Write, "ExitWorktree": auth.Write,
	"ListMcpResources": auth.Exec, "ReadMcpResource": auth.Exec, "Skill": auth.Read,
}

func TestBruteForce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	alice := o.add(t, "alice", auth.Read)
	seen := map[int]int{}
	const tries = 300
	for n := range tries {
		resp, body := webRequest{body: initialize}.as(fmt.Sprint("guess", n), nil).do(t, o.url)
		seen[resp.StatusCode]++
		if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
			t.Fatalf("nobody is told when to try again: %s", body)
		}
	}
	if seen[401] < httpserver.FailureBurst || seen[429] < tries/2 || seen[401]+seen[429] != tries {
		t.Errorf("the answers were %v", seen)
	}
	if resp, body := (webRequest{body: initialize}).as(alice, nil).do(t, o.url); resp.StatusCode != http.StatusOK {
		t.Errorf("a right token is locked out: %d %s", resp.StatusCode, body)
	}
	raw, err := os.ReadFile(o.log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), `"(authentication)"`); n < transport.RefusalsBurst || n > tries/2 {
		t.Errorf("%d of %d refusals are recorded", n, tries)
	}
	if strings.Contains(string(raw), "guess") {
		t.Error("a token is recorded")
	}
}

func TestResourceMetadata(t *testing.T) {
	h, _ := openHost(t, nil, func(c *Config) { c.Remote = true })
	issuer, err := auth.NewOAuth(auth.OAuthConfig{Issuer: "https://login.example.com",
		Audience: "https://tools.example.com/mcp", ScopePrefix: "toolhost:"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ resource, want string }{
		{"https://tools.example.com/mcp", "https://tools.example.com/mcp"},
		{"", "http://HOST/mcp"},
	} {
		metadata := issuer.Metadata()
		metadata.Resource = tt.resource
		url, _ := serveWeb(t, h, func(c *httpserver.Config) { c.Verifier, c.Metadata = append(auth.Any{c.Verifier}, issuer), &metadata })
		base := strings.TrimSuffix(url, httpserver.Endpoint)
		want := strings.Replace(tt.want, "HOST", strings.TrimPrefix(base, "http://"), 1)
		for _, path := range []string{auth.MetadataPath, auth.MetadataPath + httpserver.Endpoint} {
			resp, body := webRequest{method: http.MethodGet,
				headers: map[string]string{"Authorization": ""}}.do(t, base+path)
			var got auth.Metadata
			if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d %s", path, resp.StatusCode, body)
			}
			if got.Resource != want || !slices.Equal(got.AuthorizationServers, []string{"https://login.example.com"}) ||
				!slices.Contains(got.Scopes, "toolhost:read") {
				t.Errorf("%s: %s", path, body)
			}
		}
		resp, _ := webRequest{body: initialize, headers: map[string]string{"Authorization": ""}}.do(t, url)
		challenge := resp.Header.Get("WWW-Authenticate")
		at := strings.Replace(want, "/mcp", auth.MetadataPath+"/mcp", 1)
		if resp.StatusCode != 401 || !strings.Contains(challenge, `resource_metadata="`+at+`"`) ||
			!strings.Contains(challenge, `scope="toolhost:read`) || strings.Contains(challenge, "error=") {
			t.Errorf("the challenge is %s", challenge)
		}
		if resp, body := (webRequest{method: http.MethodGet, host: "evil.example"}).do(t,
			base+auth.MetadataPath); resp.StatusCode != 403 {
			t.Errorf("a rebound name gets %s", body)
		}
	}
	url, _ := startWeb(t, nil)
	if resp, _ := (webRequest{method: http.MethodGet}).do(t,
		strings.TrimSuffix(url, httpserver.Endpoint)+auth.MetadataPath); resp.StatusCode != 404 {
		t.Errorf("metadata without an issuer: %d", resp.StatusCode)
	}
}

func TestNobodyIsServed(t *testing.T) {
	h, _ := openHost(t, nil)
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ServeHTTP(context.Background(), nil, httpserver.Config{}); err == nil {
		t.Error("a server that knows nobody was started")
	}
	a := h.Admit(auth.Identity{Principal: "x"}, nil, "", false)
	if r := h.Call(context.Background(), a, Request{Tool: "Read", Args: json.RawMessage(`{"file_path":"a"}`)}); !r.IsError || !strings.Contains(r.Text, "needs the right read") {
		t.Errorf("an identity without rights: %s", r.Text)
	}
	if tools := h.Tools(auth.Identity{Principal: "x"}); len(tools) > 0 {
		t.Errorf("an identity without rights sees %d tools", len(tools))
	}
}

// TestAnswerOfAnother uses the state of a question that another was asked.
func TestAnswerOfAnother(t *testing.T) {
	t.Parallel()
	rules := filepath.Join(t.TempDir(), "rules.json")
	writeFile(t, rules, `{"permissions":{"ask":["Write"]}}`)
	o := openOffice(t, func(c *Config) { c.Settings = []string{rules} })
	alice, bob := o.add(t, "alice", auth.All), o.add(t, "bob", auth.All)
	meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1)
	call := func(bearer, answer string) string {
		req := modern(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Write","arguments":{"file_path":"asked","content":"x"},%s%s}}`, answer, meta))
		_, body := req.as(bearer, nil).do(t, o.url)
		return body
	}
	asked := call(alice, "")
	_, rest, found := strings.Cut(asked, `"requestState":"`)
	state, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("nobody was asked: %s", asked)
	}
	if strings.Contains(asked, AlwaysAllow) {
		t.Errorf("a named caller may change the rules of all: %s", asked)
	}
	answer := fmt.Sprintf(`"requestState":%q,"inputResponses":{%q:{"method":"elicitation/create","action":"accept","content":{"decision":"allow once"}}},`, state, questionID)
	if body := call(bob, answer); !strings.Contains(body, `"isError":true`) {
		t.Errorf("the answer of another counts: %s", body)
	}
	if _, err := os.Stat(filepath.Join(o.root, "asked")); err == nil {
		t.Error("the call ran")
	}
	if body := call(alice, answer); strings.Contains(body, `"isError":true`) {
		t.Errorf("the own answer does not count: %s", body)
	}
}

func TestTwoTokensAreNone(t *testing.T) {
	o := openOffice(t)
	for _, pair := range [][2]string{{testToken, "other"}, {"other", testToken}, {testToken, testToken}} {
		req, err := http.NewRequest(http.MethodPost, o.url, strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for _, bearer := range pair {
			req.Header.Add("Authorization", "Bearer "+bearer)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusUnauthorized ||
			!strings.Contains(string(body), "Authorization header is there 2 times") {
			t.Errorf("%q and %q get %d %s, %v", pair[0], pair[1], resp.StatusCode, body, err)
		}
	}
}
