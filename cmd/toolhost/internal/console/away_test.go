package console

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/integration/testenv"
	"github.com/toolhost/toolhost/mcpserver"
)

const awayOrigin = "https://asks.example.com"

// An announced console is one whose questions are announced.
type announced struct {
	*served
	listen string
	sent   chan announcement
}

// An announcement is what the webhook has got.
type announcement struct {
	header http.Header
	body   string
}

// announce serves a console that announces its questions to a server of the test.
func serveAway(t *testing.T, ntfy bool) *announced {
	t.Helper()
	testenv.NeedsNamespaces(t)
	a := &announced{sent: make(chan announcement, 10)}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		a.sent <- announcement{r.Header, string(raw)}
	}))
	t.Cleanup(hook.Close)
	to := hook.URL + "/topic"
	if ntfy {
		to = ntfyScheme + to
	}
	l, err := net.Listen("tcp", AnyLoopback()) // where no connection of another test takes the port meanwhile
	if err != nil {
		t.Fatal(err)
	}
	a.listen = l.Addr().String()
	_ = l.Close()
	file := filepath.Join(t.TempDir(), "settings.json")
	text, _ := json.Marshal(map[string]any{"approvals": map[string]string{"notify": to, "origin": awayOrigin, "listen": a.listen},
		"sandbox": map[string]any{"excludedCommands": []string{"true"}}, "permissions": map[string]any{"allow": []string{"Bash(true)"}}})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	a.served = serve(t, nil, func(c *mcpserver.Config) { c.Settings = []string{file} })
	if a.console.away == nil {
		t.Fatal(a.noAway)
	}
	return a
}

// asks puts a question, and returns its link and what will be answered.
func (a *announced) asks(t *testing.T, gist string) (path string, answer <-chan mcpserver.Answer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan mcpserver.Answer, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got <- a.console.Ask(ctx, mcpserver.OperatorQuestion{Tool: "Bash", Principal: "local",
			Question: &mcpserver.Question{ID: gist, Gist: gist, Always: []string{"Bash(make)"}}})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	one := <-a.sent
	link := regexp.MustCompile(regexp.QuoteMeta(awayOrigin) +
		`(/q/[\w-]+)`).FindStringSubmatch(one.body + one.header.Get("Click"))
	if link == nil {
		t.Fatalf("no link: %+v", one)
	}
	return link[1], got
}

// A phone is a browser that does not keep to any rule of its own.
type phone struct {
	*announced
	cookie string
	host   string            // sent in place of that of the origin
	header map[string]string // sent in addition
}

func (p *phone) do(t *testing.T, method, path string, form url.Values) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.listen+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "asks.example.com"
	if p.host != "" {
		req.Host = p.host
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range p.header {
		req.Header.Set(name, value)
	}
	if p.cookie != "" {
		req.AddCookie(&http.Cookie{Name: browserCookie, Value: p.cookie})
	}
	resp, err := p.web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		if c.Name != browserCookie || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode ||
			c.Domain != "" || c.Path != "/" {
			t.Errorf("the cookie %s", c)
		}
		p.cookie = c.Value
	}
	if resp.Header.Get("Referrer-Policy") != "no-referrer" || resp.Header.Get("Cache-Control") != "no-store" ||
		strings.Contains(resp.Header.Get("Content-Security-Policy"), "script-src") {
		t.Errorf("%s %s: %v", method, path, resp.Header)
	}
	return read(t, resp, nil)
}

var formToken = regexp.MustCompile(`name="token" value="([\w-]+)"`)

// opens opens a link and returns the token of its form.
func (p *phone) opens(t *testing.T, path, code string) (token, body string) {
	t.Helper()
	_, body = p.do(t, http.MethodPost, path, url.Values{"code": {code}})
	if m := formToken.FindStringSubmatch(body); m != nil {
		return m[1], body
	}
	return "", body
}

func decision(token, what string) url.Values {
	return url.Values{"token": {token}, "decision": {what}, "question": {"99"}}
}

// TestAwayAnswer answers questions from another browser, which types the code once.
func TestAwayAnswer(t *testing.T) {
	for _, ntfy := range []bool{false, true} {
		a := serveAway(t, ntfy)
		p := &phone{announced: a}
		path, answer := a.asks(t, "Bash: git push")
		if status, body := p.do(t, http.MethodGet, path, nil); status != http.StatusOK ||
			strings.Contains(body, "git push") || strings.Contains(body, "console.js") {
			t.Errorf("the link shows %d %s", status, body)
		}
		if token, body := p.opens(t, path, ""); token != "" || !strings.Contains(body, "Type the code") {
			t.Errorf("without the code: %s", body)
		}
		token, body := p.opens(t, path, strings.ToLower(a.console.away.code()))
		if token == "" || strings.Contains(body, mcpserver.AlwaysAllow) || !strings.Contains(body, "allow once") {
			t.Fatalf("the question is %s", body)
		}
		if status, body := p.do(t, http.MethodPost, path+"/answer",
			decision(token, mcpserver.AllowOnce)); status != http.StatusOK ||
			!strings.Contains(body, "was allowed once") {
			t.Errorf("the answer: %d %s", status, body)
		}
		if got := <-answer; got.Decision != mcpserver.AllowOnce {
			t.Errorf("got %+v", got)
		}
		next, answer := a.asks(t, "Bash: rm x")
		token, _ = p.opens(t, next, "")
		p.do(t, http.MethodPost, next+"/answer", url.Values{"token": {token}, "decision": {mcpserver.DenyIt}, "reason": {"not now"}})
		if got := <-answer; got != (mcpserver.Answer{Decision: mcpserver.DenyIt, Reason: "not now"}) {
			t.Errorf("a known browser: got %+v", got)
		}
	}
}

// TestAwayAttacks tries each way to answer that must count for nothing. The question waits afterwards, and the person can answer it.
func TestAwayAttacks(t *testing.T) {
	a := serveAway(t, false)
	person := &phone{announced: a}
	first, answer := a.asks(t, "first")
	token, _ := person.opens(t, first, a.console.away.code())
	person.do(t, http.MethodPost, first+"/answer", decision(token, mcpserver.DenyIt))
	<-answer
	for _, tt := range []struct {
		name string
		try  func(t *testing.T, path, token string) (status int, body string)
	}{
		{"prefetch", func(t *testing.T, path, _ string) (int, string) {
			return (&phone{announced: a, cookie: person.cookie}).do(t, http.MethodGet, path+
				"/answer?decision=allow+once", nil)
		}},
		{"a head request", func(t *testing.T, path, _ string) (int, string) {
			return (&phone{announced: a, cookie: person.cookie}).do(t, http.MethodHead, path+"/answer", nil)
		}},
		{"replay of a link that was used", func(t *testing.T, _, token string) (int, string) {
			return person.do(t, http.MethodPost, first+"/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"the token of another link", func(t *testing.T, path, _ string) (int, string) {
			return person.do(t, http.MethodPost, path+"/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"a forged link", func(t *testing.T, path, token string) (int, string) {
			return person.do(t, http.MethodPost, path[:len(path)-2]+"AA/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"the link of another host", func(t *testing.T, _, token string) (int, string) {
			other := &away{key: []byte("other"), secret: a.console.away.secret}
			q, _ := a.console.one(a.console.lastQuestion)
			return person.do(t, http.MethodPost, "/q/"+other.link(&q)+"/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"an expired link", func(t *testing.T, _, token string) (int, string) {
			q, _ := a.console.one(a.console.lastQuestion)
			q.Until = time.Now().Add(-time.Second)
			return person.do(t, http.MethodPost, "/q/"+a.console.away.link(&q)+"/answer",
				decision(token, mcpserver.AllowOnce))
		}},
		{"another browser that has the code", func(t *testing.T, path, _ string) (int, string) {
			token, body := (&phone{announced: a}).opens(t, path, a.console.away.code())
			if token != "" || !strings.Contains(body, "opened in another browser") {
				t.Error("the question was shown")
			}
			return http.StatusConflict, body
		}},
		{"a stolen topic, without the code", func(t *testing.T, path, _ string) (int, string) {
			token, body := (&phone{announced: a}).opens(t, path, "AAAA-AAAA")
			if token != "" {
				t.Error("the question was shown")
			}
			return http.StatusUnauthorized, body
		}},
		{"a stolen form", func(t *testing.T, path, token string) (int, string) {
			return (&phone{announced: a, cookie: a.console.away.newBrowser(time.Now())}).do(t, http.MethodPost, path+
				"/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"a forged cookie", func(t *testing.T, path, token string) (int, string) {
			return (&phone{announced: a, cookie: person.cookie[:len(person.cookie)-2] + "AA"}).do(t, http.MethodPost,
				path+"/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"an old cookie", func(t *testing.T, path, token string) (int, string) {
			old := a.console.away.newBrowser(time.Now().Add(-browserAge - time.Hour))
			return (&phone{announced: a, cookie: old}).do(t, http.MethodPost, path+"/answer",
				decision(token, mcpserver.AllowOnce))
		}},
		{"a page of another site", func(t *testing.T, path, token string) (int, string) {
			return (&phone{announced: a, cookie: person.cookie,
				header: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}}).
				do(t, http.MethodPost, path+"/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"another name of the address", func(t *testing.T, path, token string) (int, string) {
			return (&phone{announced: a, cookie: person.cookie, host: "evil.example"}).do(t, http.MethodPost, path+
				"/answer", decision(token, mcpserver.AllowOnce))
		}},
		{"always", func(t *testing.T, path, token string) (int, string) {
			return person.do(t, http.MethodPost, path+"/answer", decision(token, mcpserver.AlwaysAllow))
		}},
		{"the console at this address", func(t *testing.T, _, _ string) (int, string) {
			for _, path := range []string{"/", "/history", "/enter", "/events", "/rules"} {
				if status, _ := person.do(t, http.MethodGet, path, nil); status != http.StatusNotFound {
					t.Errorf("%s is answered by %d", path, status)
				}
			}
			return person.do(t, http.MethodPost, "/answer",
				url.Values{"question": {"2"}, "decision": {mcpserver.AllowOnce}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, answer := a.asks(t, tt.name)
			token, _ := person.opens(t, path, "")
			if token == "" {
				t.Fatal("the person cannot open the link")
			}
			if status, body := tt.try(t, path, token); status < 400 {
				t.Errorf("%d %s", status, body)
			}
			select {
			case got := <-answer:
				t.Fatalf("it counted: %+v", got)
			default:
			}
			if status, body := person.do(t, http.MethodPost, path+"/answer",
				decision(token, mcpserver.DenyIt)); status != http.StatusOK {
				t.Fatalf("afterwards the person cannot answer: %d %s", status, body)
			}
			<-answer
			if status, body := person.do(t, http.MethodPost, path+"/answer",
				decision(token, mcpserver.AllowOnce)); status != http.StatusConflict {
				t.Errorf("a second answer: %d %s", status, body)
			}
		})
	}
}

// TestAwayGuesses closes a link after some wrong codes; the console still takes the answer.
func TestAwayGuesses(t *testing.T) {
	a := serveAway(t, false)
	path, answer := a.asks(t, "guessed")
	guesser := &phone{announced: a}
	for range maxWrong {
		guesser.opens(t, path, "AAAA-AAAA")
	}
	if token, body := guesser.opens(t, path, a.console.away.code()); token != "" ||
		!strings.Contains(body, "opens no question") {
		t.Errorf("the link is open: %s", body)
	}
	if _, err := a.console.answer(1, mcpserver.AllowOnce, ""); err != nil {
		t.Error(err)
	}
	<-answer
}

// TestAwayUncontained counts no answer once a command could have read the secret.
func TestAwayUncontained(t *testing.T) {
	a := serveAway(t, false)
	path, _ := a.asks(t, "later")
	p := &phone{announced: a}
	token, _ := p.opens(t, path, a.console.away.code())
	if r := a.call("Bash", `{"command":"true"}`); r.IsError || a.operator.MayAnswer() == nil {
		t.Fatalf("the command did not run outside of the sandbox: %s", r.Text)
	}
	if status, _ := p.do(t, http.MethodPost, path+"/answer",
		decision(token, mcpserver.AllowOnce)); status != http.StatusConflict {
		t.Errorf("it counted: %d", status)
	}
}

// TestAwayFails lets an address that does not answer delay no question, and keeps the address out of the log.
func TestAwayFails(t *testing.T) {
	hold := make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer hook.Close()
	defer close(hold)
	var log strings.Builder
	a, err := newAway(settings.Approvals{Notify: hook.URL + "/secret-topic", Origin: awayOrigin,
		Listen: "127.0.0.1:8390"}, t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c := New(false)
	c.away = a
	if !c.Present() {
		t.Error("a person who is told of questions is not present")
	}
	answered := make(chan mcpserver.Answer)
	go func() {
		answered <- c.Ask(t.Context(), mcpserver.OperatorQuestion{Tool: "Bash", Question: &mcpserver.Question{}})
	}()
	for now := c.next(); now.waiting == 0; now = c.next() {
		<-now.changed
	}
	if _, err := c.answer(1, mcpserver.AllowOnce, ""); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.Decision != mcpserver.AllowOnce {
		t.Errorf("got %+v", got)
	}
	gone := &away{notify: "http://127.0.0.1:1/secret-topic", origin: a.origin, key: a.key, client: a.client}
	if err := gone.send(t.Context(), &question{Asked: mcpserver.OperatorQuestion{Question: &mcpserver.Question{}}}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

// TestAwayMessage keeps what an agent has written from becoming a link or a mark of the chat program.
func TestAwayMessage(t *testing.T) {
	a := serveAway(t, false)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		a.console.Ask(ctx, mcpserver.OperatorQuestion{Tool: "Bash", Question: &mcpserver.Question{Gist: "Bash: curl https://evil.example <!channel> `x` @everyone"}})
	}()
	one := <-a.sent
	var m struct{ Text, Link string }
	if err := json.Unmarshal([]byte(one.body), &m); err != nil || strings.Count(m.Text, "://") != 1 ||
		!strings.HasSuffix(m.Text, m.Link) || strings.ContainsAny(m.Text, "<>@") || strings.Count(m.Text, "`") != 2 {
		t.Errorf("the message is %s", one.body)
	}
	if _, err := a.console.answer(1, mcpserver.DenyIt, ""); err != nil {
		t.Error(err)
	}
}

func TestAwaySettings(t *testing.T) {
	good := settings.Approvals{Notify: "https://hooks.example.com/x", Origin: awayOrigin, Listen: "127.0.0.1:8390"}
	for name, tt := range map[string]struct {
		change func(*settings.Approvals)
		ok     bool
	}{
		"as they should be": {func(*settings.Approvals) {}, true}, "ntfy": {func(s *settings.Approvals) { s.Notify = "ntfy+https://ntfy.sh/x" }, true},
		"a server of this machine":  {func(s *settings.Approvals) { s.Notify = "ntfy+http://127.0.0.1:2586/x" }, true},
		"a trailing slash":          {func(s *settings.Approvals) { s.Origin += "/" }, true},
		"only some":                 {func(s *settings.Approvals) { s.Listen = "" }, false},
		"no encryption":             {func(s *settings.Approvals) { s.Notify = "http://hooks.example.com/x" }, false},
		"an origin without HTTPS":   {func(s *settings.Approvals) { s.Origin = "http://asks.example.com" }, false},
		"an origin with a path":     {func(s *settings.Approvals) { s.Origin += "/x" }, false},
		"an address of the network": {func(s *settings.Approvals) { s.Listen = "0.0.0.0:8390" }, false},
		"a port that is not known":  {func(s *settings.Approvals) { s.Listen = "127.0.0.1:0" }, false},
	} {
		set := good
		tt.change(&set)
		if _, err := newAway(set, t.TempDir(), slog.New(slog.DiscardHandler)); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a, err := newAway(settings.Approvals{}, "", nil); a != nil || err != nil {
		t.Errorf("without settings: %v, %v", a, err)
	}
}
