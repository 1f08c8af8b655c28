package mcpserver

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// A host that starts anew knows the exact scopes of the one before, and no question that was put before.
func TestRestart(t *testing.T) {
	home := t.TempDir()
	ask := filepath.Join(home, "ask.json")
	writeFile(t, ask, `{"permissions":{"ask":["Bash"]}}`)
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "a.txt"), "before\n")
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
		meta := strings.Replace(modernMeta, `clientCapabilities":{}`,
			`clientCapabilities":{"elicitation":{}},"threadId":"1"`, 1)
		_, body := modern(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"touch ran"},`+extra+meta+`}}`).do(t, url)
		return body
	}
	url, stop := start()
	modernCall("Read", `{"file_path":"a.txt"}`, "1").do(t, url)
	handed := modern(strings.Replace(modernCall("Read", `{"file_path":"a.txt"}`, "x").body, `"threadId":"x"`,
		`"toolhost/session":"new"`, 1))
	_, body := handed.do(t, url)
	var first struct {
		Result struct {
			Meta map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(body), &first); err != nil {
		t.Fatal(err)
	}
	handle, _ := first.Result.Meta[scope.MetaHandle].(string)
	_, _ = modern(strings.Replace(modernCall("Read", `{"file_path":"a.txt"}`, "x").body, `"threadId":"x",`, "",
		1)).do(t, url)
	var asked struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(question(url, "")), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatalf("no question: %v %s", err, question(url, ""))
	}
	stop()
	url, stop = start()
	defer stop()

	if _, body := modern(strings.Replace(modernCall("Edit", edit, "x").body, `"threadId":"x",`, "", 1)).do(t,
		url); !strings.Contains(body, `"isError":true`) {
		t.Errorf("a shared scope survived: %s", body)
	}
	if _, body := modernCall("Edit", edit, "1").do(t, url); strings.Contains(body, `"isError":true`) {
		t.Errorf("an exact scope is gone: %s", body)
	}
	writeFile(t, filepath.Join(root, "a.txt"), "before\n")
	answer := `"requestState":"` + asked.Result.RequestState +
		`","inputResponses":{"approval":{"action":"accept","content":{"decision":"allow once"}}},`
	if body := question(url, answer); !strings.Contains(body, "not from this host") {
		t.Errorf("an answer from before: %s", body)
	}
	if _, err := os.Stat(filepath.Join(root, "ran")); err == nil {
		t.Error("an answer from before counted")
	}
	if body := question(url, ""); !strings.Contains(body, "input_required") {
		t.Errorf("the call is not asked about anew: %s", body)
	}
	q := modern(strings.Replace(modernCall("Edit", edit, "x").body, `"threadId":"x"`, `"toolhost/session":"`+
		handle+`"`, 1))
	if _, body := q.do(t, url); handle == "" || strings.Contains(body, "unknown or has expired") {
		t.Errorf("the handle %q is gone: %s", handle, body)
	}
}

// Legacy sessions over HTTP come and go; nothing of them stays.
func TestWebLifecyclesLeaveAFlatHeap(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	lifecycles := samples.Rounds(400)
	const atOnce = 8
	h, _ := openHost(t, map[string]string{"a.txt": strings.Repeat("a line\n", 100)})
	url, _ := serveWeb(t, h)
	run := func(n int) {
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				for range n / atOnce {
					session := newSession(t, url, "")
					if _, body := (webRequest{body: toolCall(7, "Read", `{"file_path":"a.txt"}`),
						headers: session}).do(t, url); !strings.Contains(body, "a line") {
						t.Errorf("%s", body)
					}
					if resp, _ := (webRequest{method: http.MethodDelete, headers: session}).do(t,
						url); resp.StatusCode != 200 {
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
	t.Logf("%d lifecycles in %s: heap %d KB, then %d KB; %d goroutines, then %d", lifecycles,
		time.Since(began).Round(time.Millisecond), before>>10, after>>10, goroutines, now)
	if grown := after - before; grown > 2<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if now > goroutines+atOnce*2 {
		t.Errorf("%d goroutines after %d", now, goroutines)
	}
	if n := scopesOf(h); n != 0 {
		t.Errorf("%d scopes are left", n)
	}
}

// Each of many sessions has a stream open and calls; all of them at once.
func TestManyStreams(t *testing.T) {
	sessions := samples.Raced(100)
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
			if resp, body := (webRequest{body: toolCall(7, "Read", `{"file_path":"a.txt"}`), headers: session}).do(t,
				url); !strings.Contains(body, "content") {
				t.Errorf("session %d: %s %s", i, resp.Status, body)
			}
		})
	}
	calls.Wait()
	t.Logf("%d calls at once beside %d streams in %s", sessions, sessions, time.Since(began).Round(time.Millisecond))
}
