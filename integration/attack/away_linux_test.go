package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// answersItself is a command of an agent that knows the link to its own question: it looks for the secret behind the code, and sends
// what a person's browser would.
const answersItself = `
import os, sys, urllib.request
link, state = sys.argv[1:]
for base, _, names in os.walk(state):
    for name in names:
        try: print("secret", open(os.path.join(base, name), "rb").read().hex())
        except OSError: pass
for path in ("", "/answer"):
    try: print("answered", urllib.request.urlopen(link + path, data=b"decision=allow+once&code=AAAA-AAAA").read())
    except Exception as e: print("closed", type(e).__name__)
`

// TestAttackAwayLink steals the link to a question from the topic: an agent that answers its own question, and a stranger who was first.
func TestAttackAwayLink(t *testing.T) {
	testenv.NeedsNamespaces(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	stolen := make(chan string, 10)
	topic := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		stolen <- regexp.MustCompile(`/q/[\w-]+`).FindString(string(raw))
	}))
	t.Cleanup(topic.Close)
	g := host.NewGround(t)
	listen := fmt.Sprintf("127.0.0.1:%d", freePort(t, 26_000))
	file := filepath.Join(host.TempDir(t), "settings.json")
	text, err := json.Marshal(map[string]any{
		"permissions": map[string]any{"ask": []string{"Bash(git push:*)"}},
		"approvals":   map[string]string{"notify": topic.URL, "origin": "https://asks.example.com", "listen": listen},
	})
	host.Must(t, err)
	host.MustWrite(t, file, string(text))
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.HTTPModern, g.WS, host.CleanEnv(g.Home), "--state-dir", g.State, "--settings",
		file, "--console-waits")
	host.Must(t, err)
	defer h.Stop()
	push, err := h.Start(ctx, "Bash", `{"command":"git push origin main"}`, nil)
	host.Must(t, err)
	link := "http://" + listen + <-stolen

	host.MustWrite(t, filepath.Join(g.WS, "answer.py"), answersItself)
	args, err := json.Marshal(map[string]string{"command": "python3 answer.py " + link + " " + g.State})
	host.Must(t, err)
	agent, err := h.Call(ctx, "Bash", string(args))
	host.Must(t, err)
	if strings.Contains(agent.Text(), "secret") || strings.Contains(agent.Text(), "answered") ||
		strings.Count(agent.Text(), "closed") != 2 {
		t.Errorf("the agent got %s", agent.Text())
	}

	for _, try := range []url.Values{{}, {"code": {"AAAA-AAAA"}}, {"code": {""}, "decision": {"allow once"}}} {
		for _, path := range []string{"", "/answer"} {
			resp, err := http.PostForm(link+path, try)
			host.Must(t, err)
			body, err := io.ReadAll(resp.Body)
			host.Must(t, err)
			host.Must(t, resp.Body.Close())
			if resp.StatusCode < 400 || strings.Contains(string(body), "git push") {
				t.Errorf("a stranger got %d %s", resp.StatusCode, body)
			}
		}
	}
	short, stop := host.Patient()
	stop()
	if r, err := push.Result(short); err == nil {
		t.Errorf("the question was answered: %s", r.Text())
	}
}
