package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"toolhost/builtin"
	"toolhost/mcpserver"
	"toolhost/mcpserver/audit"
	"toolhost/mcpserver/visible"
)

// A served console is one of a real host, with a browser that was let in.
type served struct {
	*Site
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
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, "config"), "USERPROFILE": home} {
		t.Setenv(name, value)
	}
	s := &served{console: New(true), root: t.TempDir()}
	for name, content := range files {
		path := filepath.Join(s.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
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
	s.Site, err = s.console.Open(s.host, Config{Listen: AnyLoopback(), StateDir: s.cfg.StateDir, Kind: "http", Log: slog.New(slog.DiscardHandler)})
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
	return s.host.Call(context.Background(), s.host.ArriveNamed("test"), mcpserver.Request{Tool: tool, Args: []byte(args)})
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
		s.console.Ask(ctx, mcpserver.OwnerQuestion{Principal: evil, Scope: evil, Tool: evil, Question: &mcpserver.Question{
			Input: []byte(`{"command":` + quoted(evil) + `,` + quoted(evil) + `:1}`), Dir: evil, Always: []string{evil},
		}})
	}()
	defer func() { cancel(); <-answered }()
	for waiting := 0; waiting == 0; {
		_, waiting = s.console.next()
	}
	changes, err := s.host.Changes(builtin.ChangeFilter{})
	if err != nil || len(changes) == 0 {
		t.Fatalf("there is no change: %v", err)
	}
	pages := map[string]string{}
	for _, path := range []string{"/", "/part/questions", "/part/calls", "/history", "/history/" + changes[0].ID, "/history/" + url.PathEscape(evil), "/rules", "/audit"} {
		_, pages[path] = s.get(t, path)
	}
	_, pages["explained"] = s.sent(t, "/rules", url.Values{"tool": {"Bash"}, "input": {evil}})
	_, pages["explained wrongly"] = s.sent(t, "/rules", url.Values{"tool": {evil}, "input": {evil}})
	_, pages["searched"] = s.sent(t, "/audit", url.Values{"text": {evil}})
	_, pages["filtered"] = s.sent(t, "/history", url.Values{"path": {evil}})
	for path, page := range pages {
		for _, raw := range []string{"<script>alert", "<b onclick", "<img", "\x1b", "\u202e", "</textarea></pre>"} {
			typed := !strings.HasPrefix(path, "/") && visible.Text(raw) != raw && !strings.HasPrefix(raw, "<") // comes back as the person typed it
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

func TestUndoOnThePage(t *testing.T) {
	s := serve(t, map[string]string{"a.txt": "one\n"})
	s.call("Read", `{"file_path":"a.txt"}`)
	if r := s.call("Edit", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`); r.IsError {
		t.Fatal(r.Text)
	}
	changes, err := s.host.Changes(builtin.ChangeFilter{})
	if err != nil || len(changes) != 1 {
		t.Fatalf("there are %d changes, %v", len(changes), err)
	}
	path := filepath.Join(s.root, "a.txt")
	if err := os.WriteFile(path, []byte("three\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	undo := "/history/" + changes[0].ID + "/undo"
	status, page := s.sent(t, undo, url.Values{})
	if status != http.StatusConflict || !strings.Contains(page, "all the same") || strings.Contains(page, "--force") {
		t.Errorf("undoing below a later change: %d\n%s", status, page)
	}
	if status, page = s.sent(t, undo, url.Values{"force": {"1"}}); status != http.StatusOK || !strings.Contains(page, "Undone") {
		t.Errorf("undoing all the same: %d\n%s", status, page)
	}
	if got, err := os.ReadFile(path); string(got) != "one\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if status, page := s.sent(t, undo, url.Values{}); status != http.StatusConflict || !strings.Contains(page, "has been undone") {
		t.Errorf("undoing twice: %d\n%s", status, page)
	}
	if status, _ := s.sent(t, "/history/zzzzzzzzzzzz/undo", url.Values{}); status != http.StatusNotFound {
		t.Errorf("undoing nothing: %d", status)
	}
}

// TestHistoryIsThisHosts leaves out what other hosts with the same state directory did elsewhere.
func TestHistoryIsThisHosts(t *testing.T) {
	s := serve(t, nil)
	elsewhere := s.cfg
	elsewhere.Roots, elsewhere.Observers, elsewhere.Asker = []string{t.TempDir()}, nil, nil
	other, err := mcpserver.Open(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	r := other.Call(context.Background(), other.ArriveNamed(""), mcpserver.Request{Tool: "Write", Args: []byte(`{"file_path":"theirs.txt","content":"x"}`)})
	if err := other.Close(); err != nil || r.IsError {
		t.Fatal(err, r.Text)
	}
	s.call("Write", `{"file_path":"ours.txt","content":"x"}`)
	if _, page := s.get(t, "/history"); strings.Contains(page, "theirs.txt") || !strings.Contains(page, "ours.txt") {
		t.Errorf("the history shows:\n%s", page)
	}
}

func TestUndoOfSeveral(t *testing.T) {
	s := serve(t, nil)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		if r := s.call("Write", `{"file_path":"`+name+`","content":"x"}`); r.IsError {
			t.Fatal(r.Text)
		}
	}
	if err := os.WriteFile(filepath.Join(s.root, "a.txt"), []byte("changed since"), 0o644); err != nil {
		t.Fatal(err)
	}
	changes, err := s.host.Changes(builtin.ChangeFilter{})
	if err != nil || len(changes) != 3 {
		t.Fatalf("there are %d changes, %v", len(changes), err)
	}
	status, page := s.sent(t, "/history/undo", url.Values{"id": {changes[1].ID, changes[2].ID}})
	if status != http.StatusConflict || !strings.Contains(page, "b.txt.") || !strings.Contains(page, "a.txt was left as it is") {
		t.Errorf("undoing two, one of which was changed since: %d\n%s", status, page)
	}
	for name, there := range map[string]bool{"a.txt": true, "b.txt": false, "c.txt": true} {
		if _, err := os.Stat(filepath.Join(s.root, name)); (err == nil) != there {
			t.Errorf("%s is there: %v, want %v", name, err == nil, there)
		}
	}
	if status, page := s.sent(t, "/history/undo", url.Values{}); status != http.StatusConflict || !strings.Contains(page, "Choose the changes") {
		t.Errorf("undoing none: %d\n%s", status, page)
	}
}

// TestPartsAreShort sends again only what has changed.
func TestPartsAreShort(t *testing.T) {
	s := serve(t, map[string]string{"a.txt": strings.Repeat("content\n", 100)})
	s.call("Read", `{"file_path":"a.txt"}`)
	req, err := http.NewRequest(http.MethodGet, s.URL()+"/part/calls", nil)
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[string]bool{"": true, "0": true, "x": true, fmt.Sprint(s.console.recent()[0].Version): false, "18446744073709551615": false} {
		req.Header.Set(headerSince, since)
		resp, err := s.web.Do(req)
		_, page := read(t, resp, err)
		if got := strings.Contains(page, "content"); got != want || !strings.Contains(page, `id="call-1"`) {
			t.Errorf("since %q the content is sent: %v, want %v", since, got, want)
		}
	}
}

func TestExplainOnThePage(t *testing.T) {
	s := serve(t, map[string]string{".claude/settings.json": `{"permissions":{"ask":["Bash(git push:*)"]}}`})
	tests := []struct{ name, tool, input, want string }{
		{"a command as it is", "Bash", "git push origin", "Bash(git push:*)"},
		{"JSON", "Bash", `{"command":"git push"}`, "Bash(git push:*)"},
		{"a path as it is", "Read", "/etc/shadow", "boundary"},
		{"wrong JSON", "Bash", `{"comand":"x"}`, "comand"},
		{"no such tool", "Nothing", "x", "no such tool"},
	}
	for _, tt := range tests {
		if _, page := s.sent(t, "/rules", url.Values{"tool": {tt.tool}, "input": {tt.input}}); !strings.Contains(page, tt.want) {
			t.Errorf("%s: the page does not hold %q:\n%s", tt.name, tt.want, page)
		}
	}
}

// TestPagesAreBounded opens as many streams as there is room for.
func TestPagesAreBounded(t *testing.T) {
	s := serve(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for n := range MaxPages + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		want := http.StatusOK
		if n == MaxPages {
			want = http.StatusServiceUnavailable
		}
		if resp.StatusCode != want {
			t.Errorf("stream %d was answered by %d, want %d", n+1, resp.StatusCode, want)
		}
	}
}

// TestCallsAreBounded keeps neither more calls nor more of a result than it says.
func TestCallsAreBounded(t *testing.T) {
	s := serve(t, map[string]string{"long.txt": strings.Repeat("é long line\n", 4000)})
	for range MaxCalls + 5 {
		s.call("Glob", `{"pattern":"none"}`)
	}
	s.call(strings.Repeat("x", 1<<20), `{}`)
	s.call("Bash", `{"command":`+quoted("true "+strings.Repeat("x ", 20_000))+`}`)
	for _, one := range s.console.recent()[:2] {
		if len(one.Tool)+len(one.Record.Tool) > 2*maxName || len(one.Record.Command) > MaxResult {
			t.Errorf("%d bytes of the tool's name and %d of the command are kept", len(one.Tool), len(one.Record.Command))
		}
	}
	if r := bounded(audit.Record{Reads: make([]string, 1000)}); len(r.Reads) != MaxFiles+1 || r.Reads[MaxFiles] != "… and 980 more" {
		t.Errorf("of 1000 files are kept %q", r.Reads)
	}
	s.call("Read", `{"file_path":"long.txt"}`)
	all := s.console.recent()
	if len(all) != MaxCalls {
		t.Errorf("%d calls are kept, want %d", len(all), MaxCalls)
	}
	if r := all[0]; len(r.Result) > MaxResult || r.Cut == 0 || r.State != stateDone {
		t.Errorf("%d bytes of the result are kept and %d not, its state is %q", len(r.Result), r.Cut, r.State)
	}
}

// TestCallStates follows calls on their way.
func TestCallStates(t *testing.T) {
	c := New(false)
	info := mcpserver.CallInfo{ID: 7, Tool: "Bash"}
	at := func(want string) {
		t.Helper()
		if got := c.recent()[0].State; got != want {
			t.Errorf("the state is %q, want %q", got, want)
		}
	}
	for _, end := range []struct {
		verdict string
		failed  bool
		want    string
	}{{"allow", false, stateDone}, {"allow", true, stateFailed}, {"deny", true, stateRefused}, {"ask", true, stateAsked}, {"", true, stateFailed}} {
		changed, _ := c.next()
		c.CallBegan(t.Context(), info)
		at(stateWaiting)
		<-changed
		c.CallPlanned(t.Context(), info, audit.Record{Command: "make"})
		at(stateRunning)
		c.CallEnded(t.Context(), info, audit.Record{Verdict: end.verdict}, builtin.Result{IsError: end.failed})
		at(end.want)
		info.ID++
	}
	c.CallEnded(t.Context(), mcpserver.CallInfo{ID: 1}, audit.Record{}, builtin.Result{}) // one that the view has not
	if n := len(c.recent()); n != 5 {
		t.Errorf("%d calls are shown, want 5", n)
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
		if policy := resp.Header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
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
