package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// A served console is one of a real host, with a browser that was let in.
type served struct {
	*Server
	console *Console
	host    *mcpserver.Host
	root    string
	cfg     mcpserver.Config
	web     *http.Client
}

// serve opens a host with these files in its root and serves its console.
func serve(t *testing.T, files map[string]string, change ...func(*mcpserver.Config)) *served {
	t.Helper()
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, "config"),
		"USERPROFILE": home} {
		t.Setenv(name, value)
	}
	s := &served{console: New(true), root: t.TempDir()}
	for name, content := range files {
		path := filepath.Join(s.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s.cfg = mcpserver.Config{Roots: []string{s.root}, StateDir: filepath.Join(home, "state")}
	s.console.Watch(&s.cfg)
	for _, f := range change {
		f(&s.cfg)
	}
	var err error
	if s.host, err = mcpserver.Open(s.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.host.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Server, err = s.console.Open(s.host, Config{Listen: AnyLoopback(), StateDir: s.cfg.StateDir, Kind: "http", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.web = &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(func() {
		s.web.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	_, code, _ := strings.Cut(s.Link(), "#")
	if status, body := s.post(t, "/enter", url.Values{"code": {code}}); status != http.StatusOK {
		t.Fatalf("the code was answered by %d %s", status, body)
	}
	return s
}

func (s *served) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp, err := s.web.Get(s.URL() + path)
	return read(t, resp, err)
}

func (s *served) post(t *testing.T, path string, form url.Values) (status int, body string) {
	t.Helper()
	resp, err := s.web.PostForm(s.URL()+path, form)
	return read(t, resp, err)
}

func read(t *testing.T, resp *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// sent posts a form with the token of the page.
func (s *served) sent(t *testing.T, path string, form url.Values) (status int, body string) {
	t.Helper()
	_, page := s.get(t, "/")
	m := regexp.MustCompile(`name="token" value="(\w+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page holds no token:\n%s", page)
	}
	form.Set("token", m[1])
	return s.post(t, path, form)
}

func (s *served) call(tool, args string) mcpserver.Reply {
	return s.host.Call(context.Background(), s.host.AdmitNamed("test"),
		mcpserver.Request{Tool: tool, Args: []byte(args)})
}

func quoted(s string) string {
	raw, _ := json.Marshal(s) // strings encode
	return string(raw)
}

// TestHostileText puts what would take over the page wherever a page shows text of others.
func TestHostileText(t *testing.T) {
	const evil = `<script>alert(1)</script><b onclick='x'>"</textarea></pre>` + "\x1b[2J\u202e"
	name := strings.ReplaceAll(evil, "/", "") + ".txt"
	s := serve(t, map[string]string{name: evil, ".claude/settings.json": `{"permissions":{"deny":["Read(<img src=x>)"]}}`})
	for _, args := range []string{`{"file_path":` + quoted(name) + `}`, `{"file_path":` + quoted("none"+name) + `}`} {
		s.call("Read", args)
	}
	if r := s.call("Write", `{"file_path":`+quoted("new"+name)+`,"content":`+quoted(evil)+`}`); r.IsError {
		t.Fatal(r.Text)
	}
	s.call(evil, `{}`)
	ctx, cancel := context.WithCancel(context.Background())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.console.Ask(ctx, mcpserver.OperatorQuestion{Principal: evil, Scope: evil, Tool: evil, Question: &mcpserver.Question{
			Input: []byte(`{"command":` + quoted(evil) + `,` + quoted(evil) + `:1}`), Dir: evil, Always: []string{evil},
		}})
	}()
	defer func() { cancel(); <-answered }()
	for waiting := 0; waiting == 0; {
		waiting = s.console.next().waiting
	}
	changes, err := s.operator.Changes(builtin.ChangeFilter{})
	if err != nil || len(changes) == 0 {
		t.Fatalf("there is no change: %v", err)
	}
	pages := map[string]string{}
	for _, path := range []string{"/", "/part/questions", "/part/calls", "/history", "/history/" + changes[0].ID,
		"/history/" + url.PathEscape(evil), "/rules", "/audit"} {
		_, pages[path] = s.get(t, path)
	}
	_, pages["explained"] = s.sent(t, "/rules", url.Values{"tool": {"Bash"}, "input": {evil}})
	_, pages["explained wrongly"] = s.sent(t, "/rules", url.Values{"tool": {evil}, "input": {evil}})
	_, pages["searched"] = s.sent(t, "/audit", url.Values{"text": {evil}})
	_, pages["filtered"] = s.sent(t, "/history", url.Values{"path": {evil}})
	for path, page := range pages {
		for _, raw := range []string{"<script>alert", "<b onclick", "<img", "\x1b", "\u202e", "</textarea></pre>"} {
			typed := !strings.HasPrefix(path, "/") && mcpserver.Sanitize(raw) != raw && !strings.HasPrefix(raw, "<") // comes back as the person typed it
			if strings.Contains(page, raw) && !typed {
				t.Errorf("%s holds %q as it is", path, raw)
			}
		}
	}
	for _, path := range []string{"/part/questions", "/part/calls", "/history", "/audit"} {
		if !strings.Contains(pages[path], "&lt;script&gt;alert") {
			t.Errorf("%s does not show the text at all:\n%s", path, pages[path])
		}
	}
}

func TestHeaders(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{"/", "/enter", "/console.js", "/nothing", "/events"} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for name, value := range headers {
			if got := resp.Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
		if policy := resp.Header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3:80": true, "localhost:1": true, "LOCALHOST": true, "[::1]:80": true, "[::1]": true,
		"": false, "evil.example": false, "127.0.0.1.evil.example": false, "localhost.evil.example:80": false, "0.0.0.0": false,
		"10.0.0.1": false, "[::]:1": false, "evil.localhost": false, "127.0.0.1@evil.example": false, "2130706433": false,
	} {
		if got := isLoopbackHost(host); got != want {
			t.Errorf("isLoopbackHost(%q) = %v", host, got)
		}
	}
	for _, address := range []string{"", ":80", "0.0.0.0:0", "[::]:0", "10.0.0.1:0", "example.com:80", "127.0.0.1"} {
		if loopbackOnly(address) == nil {
			t.Errorf("the console would listen on %q", address)
		}
	}
	address := AnyLoopback()
	if err := loopbackOnly(address); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "linux" && strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("the console shares %s, and its cookie, with what commands publish", address)
	}
}
