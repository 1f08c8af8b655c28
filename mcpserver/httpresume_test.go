package mcpserver

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A legacy client that is gone has not cancelled. It takes the stream up where it lost it.
func TestLostStreamIsTakenUp(t *testing.T) {
	t.Parallel()
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
	await(t, filepath.Join(root, "done"))

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

// An answer counts once, for the call it was given to, wherever it is sent again.
func TestReplayOverHTTP(t *testing.T) {
	t.Parallel()
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
