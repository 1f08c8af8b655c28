package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A webStream is a response that is read event by event.
type webStream struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
}

func (q webRequest) open(t *testing.T, url string) *webStream {
	t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), q.method, url, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range q.headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &webStream{t: t, resp: resp, lines: bufio.NewScanner(resp.Body)}
}

// next is the next message of the stream.
func (s *webStream) next() rpcAnswer {
	s.t.Helper()
	for s.lines.Scan() {
		data, ok := strings.CutPrefix(s.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var a rpcAnswer
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			s.t.Fatalf("%v in %q", err, data)
		}
		return a
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return rpcAnswer{}
}

// newSession begins a legacy session with these capabilities of its client.
func newSession(t *testing.T, url, capabilities string) (headers map[string]string) {
	t.Helper()
	resp, _ := webRequest{body: strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{`+capabilities+`}`,
		1)}.do(t, url)
	return map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-11-25"}
}

// Progress goes to the response of its call, even while the session listens on a stream of its own.
func TestProgressStaysWithItsCall(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow")
	}
	url, root := startWeb(t, nil, func(c *Config) { c.Allow = []string{"Bash"} })
	session := newSession(t, url, "")
	listening := webRequest{method: http.MethodGet, headers: session}.open(t, url)
	defer listening.resp.Body.Close()
	call := strings.Replace(toolCall(7, "Bash", working), `"params":{`, `"params":{"_meta":{"progressToken":"t"},`, 1)
	for range 5 {
		endWorking(t, webRequest{body: call, headers: session}.open(t, url), root, "7")
	}
}

func TestAskLegacyOverHTTP(t *testing.T) {
	t.Parallel()
	url, root := startWeb(t, nil, askBeforeCommands)
	session := newSession(t, url, askCapability)
	stream := webRequest{body: toolCall(7, "Bash", `{"command":"touch done"}`), headers: session}.open(t, url)
	question := stream.next()
	if question.Method != "elicitation/create" {
		t.Fatalf("no question: %+v", question)
	}
	answer := `{"jsonrpc":"2.0","id":` + string(question.ID) +
		`,"result":{"action":"accept","content":{"decision":"allow once"}}}`
	other := newSession(t, url, askCapability)
	if resp, _ := (webRequest{body: answer, headers: other}).do(t, url); resp.StatusCode < 400 {
		t.Errorf("the answer of another session is taken: %s", resp.Status)
	}
	if resp, body := (webRequest{body: answer, headers: session}).do(t, url); resp.StatusCode != http.StatusAccepted ||
		body != "" {
		t.Errorf("the answer is taken with %s %q", resp.Status, body)
	}
	if a := stream.next(); string(a.ID) != "7" {
		t.Errorf("after it came %+v", a)
	}
	if _, err := os.Stat(filepath.Join(root, "done")); err != nil {
		t.Error(err)
	}
}

// Nothing here changes, so a subscription ends at once; its beginning is told first all the same.
func TestSubscriptionIsAcknowledged(t *testing.T) {
	t.Parallel()
	const subscriptions = 200
	url, _ := startWeb(t, nil)
	for range subscriptions {
		stream := modern(bareListen).open(t, url)
		if a := stream.next(); !strings.HasSuffix(a.Method, "acknowledged") {
			t.Fatalf("HTTP: the first message is %+v", a)
		}
		if a := stream.next(); string(a.ID) != "5" {
			t.Fatalf("HTTP: the second message is %+v", a)
		}
		stream.resp.Body.Close()
	}
	c := startPipe(t, nil)
	for range subscriptions {
		c.send(bareListen)
		if a := c.receive(); !strings.HasSuffix(a.Method, "acknowledged") {
			t.Fatalf("stdio: the first message is %+v", a)
		}
		if a := c.receive(); string(a.ID) != "5" {
			t.Fatalf("stdio: the second message is %+v", a)
		}
	}
}

// A sharedText is what several write.
type sharedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sharedText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *sharedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// No client fills the log with errors, by answers to nothing for example.
func TestClientsCauseNoErrorsInTheLog(t *testing.T) {
	var log sharedText
	h, _ := openHost(t, nil, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	url, stop := serveWeb(t, h)
	session := newSession(t, url, "")
	for _, body := range []string{`{"jsonrpc":"2.0","id":77,"result":{"a":1}}`,
		`{"jsonrpc":"2.0","id":"x","error":{"code":1}}`} {
		webRequest{body: body, headers: session}.do(t, url)
	}
	stop()
	if strings.Contains(log.String(), "level=ERROR") || strings.Contains(log.String(), session["Mcp-Session-Id"]) {
		t.Errorf("the log says %s", log.String())
	}
}
