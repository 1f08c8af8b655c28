package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveWeb serves a host; stop ends the server and waits for it.
func serveWeb(t testing.TB, h *Host, change ...func(*HTTPConfig)) (url string, stop func()) {
	t.Helper()
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := testCallers(t)
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.ServeHTTP(ctx, l, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	t.Cleanup(stop)
	return "http://" + l.Addr().String() + Endpoint, stop
}

func mayRun(c *Config) { c.Allow, c.Remote = []string{"Bash"}, true }

// modernCall is a call of a tool in the conversation of this name.
func modernCall(tool, args, thread string) webRequest {
	meta := strings.Replace(modernMeta, `"_meta":{`, fmt.Sprintf(`"_meta":{"threadId":%q,`, thread), 1)
	return modern(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, tool, args, meta))
}

// holdCommands starts a command in each conversation that runs until the file go exists, and waits until all of them run.
func holdCommands(t *testing.T, url, root string, threads ...string) (answers chan string) {
	t.Helper()
	answers = make(chan string, len(threads))
	for _, thread := range threads {
		go func() {
			_, body := modernCall("Bash", fmt.Sprintf(`{"command":"touch started-%s; until [ -e go ]; do sleep 0.01; done; echo finished"}`, thread), thread).do(t, url)
			answers <- body
		}()
	}
	for _, thread := range threads {
		waitForFile(t, filepath.Join(root, "started-"+thread))
	}
	return answers
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		runtime.Gosched()
	}
}

func TestHealth(t *testing.T) {
	ask := func(t *testing.T, address, path string) int {
		t.Helper()
		resp, err := http.Get(strings.TrimSuffix(address, Endpoint) + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); len(body) > 20 {
			t.Errorf("%s tells strangers too much: %s", path, body)
		}
		return resp.StatusCode
	}
	broken := filepath.Join(t.TempDir(), "settings.json")
	writeFile(t, broken, "{")
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for _, tt := range []struct {
		name   string
		change func(*Config)
		ready  int
	}{
		{"as it should be", func(*Config) {}, 200},
		{"broken settings", func(c *Config) { c.Settings = []string{broken} }, 503},
		{"no state", func(c *Config) { c.StateDir = filepath.Join(file, "state") }, 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := openHost(t, nil, tt.change)
			url, _ := serveWeb(t, h)
			if health, ready := ask(t, url, healthPath), ask(t, url, readyPath); health != 200 || ready != tt.ready {
				t.Errorf("health %d, ready %d, want %d", health, ready, tt.ready)
			}
		})
	}
}

// A server whose listener breaks ends, and nothing of it goes on.
func TestBrokenListener(t *testing.T) {
	h, _ := openHost(t, nil)
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeHTTP(t.Context(), l, testCallers(t)) }()
	session := newSession(t, "http://"+l.Addr().String()+Endpoint, "")
	stream := webRequest{method: http.MethodGet, headers: session}.open(t, "http://"+l.Addr().String()+Endpoint)
	l.Close()
	if err := <-ended; err == nil {
		t.Error("it ends as if it had been asked to")
	}
	if _, err := io.ReadAll(stream.resp.Body); err != nil { // the test hangs if the stream goes on
		t.Log(err)
	}
}

func TestDrainOverHTTP(t *testing.T) {
	h, root := openHost(t, map[string]string{"a.txt": "content\n"}, mayRun)
	url, stop := serveWeb(t, h)
	answers := holdCommands(t, url, root, "1")
	_, _ = modernCall("Read", `{"file_path":"a.txt"}`, "2").do(t, url) // this connection stays
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	for { // until the end has begun
		resp, body := modernCall("Read", `{"file_path":"a.txt"}`, "2").do(t, url)
		if resp.StatusCode != 200 {
			refusedForNow(t, "a call while draining", 503, resp, body)
			break
		}
	}
	resp, err := http.Get(strings.TrimSuffix(url, Endpoint) + readyPath)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 503 {
		t.Errorf("ready while draining: %s", resp.Status)
	}
	writeFile(t, filepath.Join(root, "go"), "")
	if body := <-answers; !strings.Contains(body, "finished") {
		t.Errorf("the running call was cut off: %s", body)
	}
	<-stopped
}

// A legacy client that is gone has not cancelled. It takes the stream up where it lost it.
func TestLostStreamIsTakenUp(t *testing.T) {
	h, root := openHost(t, nil, mayRun)
	url, _ := serveWeb(t, h)
	session := newSession(t, url, "")
	call := strings.Replace(toolCall(7, "Bash", `{"command":"echo working; until [ -e go ]; do sleep 0.05; done; echo finished > done; echo finished"}`),
		`"params":{`, `"params":{"_meta":{"progressToken":"t"},`, 1)
	stream := webRequest{body: call, headers: session}.open(t, url)
	event := ""
	for event == "" && stream.lines.Scan() {
		event, _ = strings.CutPrefix(stream.lines.Text(), "id: ")
	}
	if event == "" {
		t.Fatal("an event has no id")
	}
	stream.resp.Body.Close() // the client is gone
	writeFile(t, filepath.Join(root, "go"), "")
	waitForFile(t, filepath.Join(root, "done"))

	other := newSession(t, url, "")
	resp, body := webRequest{method: http.MethodGet, headers: with(other, "Last-Event-ID", event)}.do(t, url)
	if resp.StatusCode != 400 {
		t.Errorf("another session's stream: %s %s", resp.Status, body)
	}
	again := webRequest{method: http.MethodGet, headers: with(session, "Last-Event-ID", event)}.open(t, url)
	a := again.next()
	for a.Method == "notifications/progress" {
		a = again.next()
	}
	if string(a.ID) != "7" || !strings.Contains(string(a.Result), "finished") {
		t.Errorf("the answer is %s %s %+v", a.ID, a.Result, a.Error)
	}
	for again.lines.Scan() {
		if line := again.lines.Text(); line != "" {
			t.Errorf("after the answer comes %q", line)
		}
	}
	if resp, _ := (webRequest{method: http.MethodDelete, headers: session}).do(t, url); resp.StatusCode != 200 {
		t.Errorf("end: %s", resp.Status)
	}
}

// A client that ends its session ends what it has asked for there, and nothing of another session.
func TestEndOfSessionEndsItsCalls(t *testing.T) {
	h, root := openHost(t, nil, mayRun)
	url, _ := serveWeb(t, h)
	answers := map[string]chan string{"ended": make(chan string, 1), "other": make(chan string, 1)}
	sessions := map[string]map[string]string{}
	for name, answer := range answers {
		session := newSession(t, url, "")
		sessions[name] = session
		command := fmt.Sprintf(`{"command":"touch %[1]s; until [ -e go ]; do sleep 0.01; done; touch %[1]s.done"}`, name)
		go func() {
			_, body := webRequest{body: toolCall(7, "Bash", command), headers: session}.do(t, url)
			answer <- body
		}()
		waitForFile(t, filepath.Join(root, name))
	}
	if resp, _ := (webRequest{method: http.MethodDelete, headers: sessions["ended"]}).do(t, url); resp.StatusCode != 200 {
		t.Errorf("end: %s", resp.Status)
	}
	if body := <-answers["ended"]; !strings.Contains(body, errEnded.Error()) {
		t.Errorf("the call of the session that was ended: %s", body)
	}
	writeFile(t, filepath.Join(root, "go"), "")
	if body := <-answers["other"]; !strings.Contains(body, `"exit_code":0`) {
		t.Errorf("the call of another session: %s", body)
	}
	if _, err := os.Stat(filepath.Join(root, "ended.done")); err == nil {
		t.Error("the command ran on")
	}
}

func with(headers map[string]string, name, value string) map[string]string {
	return webRequest{headers: headers}.with(name, value).headers
}

func TestHostNames(t *testing.T) {
	h, _ := openHost(t, nil)
	url, _ := serveWeb(t, h, func(c *HTTPConfig) { c.Hosts = []string{"tools.example.com"} })
	for _, tt := range []struct {
		host, origin string
		status       int
	}{
		{"tools.example.com", "", 200},
		{"TOOLS.example.com:8377", "", 200},
		{"tools.example.com", "https://tools.example.com", 200},
		{"tools.example.com", "https://evil.example", 403},
		{"evil.example", "", 403},
		{"sub.tools.example.com", "", 403},
		{"10.0.0.1", "", 403},
		{"127.0.0.2", "", 200},
	} {
		q := webRequest{body: initialize, host: tt.host, headers: map[string]string{}}
		if tt.origin != "" {
			q.headers["Origin"] = tt.origin
		}
		if resp, body := q.do(t, url); resp.StatusCode != tt.status {
			t.Errorf("host %s, origin %s: %s, want %d: %s", tt.host, tt.origin, resp.Status, tt.status, body)
		}
	}
}

// A host that starts anew knows the exact scopes of the one before, and no question that was put before.
func TestRestart(t *testing.T) {
	home := t.TempDir()
	ask := filepath.Join(home, "ask.json")
	writeFile(t, ask, `{"permissions":{"ask":["Bash"]}}`)
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "a.txt"), "before\n")
	openHost(t, nil) // cuts off the developer's own settings
	start := func() (string, func()) {
		h, err := Open(Config{Roots: []string{root}, StateDir: filepath.Join(home, "state"), Settings: []string{ask}})
		if err != nil {
			t.Fatal(err)
		}
		url, stop := serveWeb(t, h)
		return url, func() {
			stop()
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	edit := `{"file_path":"a.txt","old_string":"before","new_string":"after"}`
	question := func(url, extra string) string {
		meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{}},"threadId":"1"`, 1)
		_, body := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"touch ran"},`+extra+meta+`}}`).do(t, url)
		return body
	}
	url, stop := start()
	modernCall("Read", `{"file_path":"a.txt"}`, "1").do(t, url)
	handed := modern(strings.Replace(modernCall("Read", `{"file_path":"a.txt"}`, "x").body, `"threadId":"x"`, `"toolhost/session":"new"`, 1))
	_, body := handed.do(t, url)
	var first struct {
		Result struct {
			Meta map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(body), &first); err != nil {
		t.Fatal(err)
	}
	handle, _ := first.Result.Meta[metaHandle].(string)
	_, _ = modern(strings.Replace(modernCall("Read", `{"file_path":"a.txt"}`, "x").body, `"threadId":"x",`, "", 1)).do(t, url)
	var asked struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(question(url, "")), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatalf("no question: %v %s", err, question(url, ""))
	}
	stop()
	url, stop = start()
	defer stop()

	if _, body := modern(strings.Replace(modernCall("Edit", edit, "x").body, `"threadId":"x",`, "", 1)).do(t, url); !strings.Contains(body, `"isError":true`) {
		t.Errorf("a shared scope survived: %s", body)
	}
	if _, body := modernCall("Edit", edit, "1").do(t, url); strings.Contains(body, `"isError":true`) {
		t.Errorf("an exact scope is gone: %s", body)
	}
	writeFile(t, filepath.Join(root, "a.txt"), "before\n")
	answer := `"requestState":"` + asked.Result.RequestState + `","inputResponses":{"approval":{"action":"accept","content":{"decision":"allow once"}}},`
	if body := question(url, answer); !strings.Contains(body, "not one of this host") {
		t.Errorf("an answer from before: %s", body)
	}
	if _, err := os.Stat(filepath.Join(root, "ran")); err == nil {
		t.Error("an answer from before counted")
	}
	if body := question(url, ""); !strings.Contains(body, "input_required") {
		t.Errorf("the call is not asked about anew: %s", body)
	}
	q := modern(strings.Replace(modernCall("Edit", edit, "x").body, `"threadId":"x"`, `"toolhost/session":"`+handle+`"`, 1))
	if _, body := q.do(t, url); handle == "" || strings.Contains(body, "unknown or has expired") {
		t.Errorf("the handle %q is gone: %s", handle, body)
	}
}

// Legacy sessions over HTTP come and go; nothing of them stays.
func TestWebLifecyclesLeaveAFlatHeap(t *testing.T) {
	lifecycles := often(400, 30_000)
	const atOnce = 8
	h, _ := openHost(t, map[string]string{"a.txt": strings.Repeat("a line\n", 100)})
	url, _ := serveWeb(t, h)
	run := func(n int) {
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				for range n / atOnce {
					session := newSession(t, url, "")
					if _, body := (webRequest{body: toolCall(7, "Read", `{"file_path":"a.txt"}`), headers: session}).do(t, url); !strings.Contains(body, "a line") {
						t.Errorf("%s", body)
					}
					if resp, _ := (webRequest{method: http.MethodDelete, headers: session}).do(t, url); resp.StatusCode != 200 {
						t.Errorf("end: %s", resp.Status)
					}
				}
			})
		}
		all.Wait()
	}
	measure := func() (heap int64, goroutines int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), runtime.NumGoroutine()
	}
	run(200)
	before, goroutines := measure()
	began := time.Now()
	run(lifecycles)
	after, now := measure()
	t.Logf("%d lifecycles in %s: heap %d KB, then %d KB; %d goroutines, then %d", lifecycles, time.Since(began).Round(time.Millisecond), before>>10, after>>10, goroutines, now)
	if grown := after - before; grown > 2<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if now > goroutines+atOnce*2 {
		t.Errorf("%d goroutines after %d", now, goroutines)
	}
	if n := len(h.scopes.byKey); n != 0 {
		t.Errorf("%d scopes are left", n)
	}
}

// Each of many sessions has a stream open and calls; all of them at once.
func TestManyStreams(t *testing.T) {
	sessions := often(100, 1000)
	h, _ := openHost(t, map[string]string{"a.txt": "content\n"})
	url, _ := serveWeb(t, h)
	all := make([]map[string]string, sessions)
	for i := range all {
		all[i] = newSession(t, url, "")
		if s := (webRequest{method: http.MethodGet, headers: all[i]}).open(t, url); s.resp.StatusCode != 200 {
			t.Fatalf("stream %d: %s", i, s.resp.Status)
		}
	}
	began := time.Now()
	var calls sync.WaitGroup
	for i, session := range all {
		calls.Go(func() {
			if resp, body := (webRequest{body: toolCall(7, "Read", `{"file_path":"a.txt"}`), headers: session}).do(t, url); !strings.Contains(body, "content") {
				t.Errorf("session %d: %s %s", i, resp.Status, body)
			}
		})
	}
	calls.Wait()
	t.Logf("%d calls at once beside %d streams in %s", sessions, sessions, time.Since(began).Round(time.Millisecond))
}

// An answer counts once, for the call it was given to, wherever it is sent again.
func TestReplayOverHTTP(t *testing.T) {
	h, root := openHost(t, nil, askBeforeCommands)
	url, _ := serveWeb(t, h)
	ask := func(command, extra string) string {
		_, body := modern(modernBash("1", command, extra)).do(t, url)
		return body
	}
	var asked struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(ask("touch done", "")), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatal(err)
	}
	state := asked.Result.RequestState
	answer := func(state string) string {
		return `"requestState":"` + state + `","inputResponses":{"approval":{"action":"accept","content":{"decision":"allow once"}}},`
	}
	done := filepath.Join(root, "done")
	altered := "A" + state[1:]
	if state[0] == 'A' {
		altered = "B" + state[1:]
	}
	for _, tt := range []struct {
		name, command, state string
		runs                 bool
	}{
		{"for another command", "touch done; true", state, false},
		{"altered", "touch done", altered, false},
		{"as it came", "touch done", state, true},
		{"once more", "touch done", state, false},
	} {
		_ = os.Remove(done)
		body := ask(tt.command, answer(tt.state))
		if _, err := os.Stat(done); (err == nil) != tt.runs {
			t.Errorf("%s: ran %v: %s", tt.name, err == nil, body)
		}
	}
}
