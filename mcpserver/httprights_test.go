package mcpserver

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

func TestRightsOfTools(t *testing.T) {
	for _, d := range builtin.All() {
		want, known := rightsOfTools[d.Name]
		if got := rightTo(d.Permission); got != want || !known {
			t.Errorf("%s needs %s, want %s", d.Name, got, want)
		}
		if d.Permission == guard.ToRead && !d.Hints.ReadOnly && !strings.HasSuffix(d.Name, "PlanMode") { // which change no file
			t.Errorf("%s changes something, and reading is enough for it", d.Name)
		}
	}
	if rightTo((&builtin.Def{}).Permission) != auth.Exec {
		t.Error("a tool that says nothing is not as strict as it can be")
	}
}

func TestRightsLimitTheTools(t *testing.T) {
	o := openOffice(t, func(c *Config) { // with what each tool needs to be listed
		userSettings(t, map[string]any{"agent": map[string]any{"runner": "claude"},
			"web": map[string]any{"search": map[string]any{"provider": "searxng", "url": "http://localhost:8888"}}})
		c.With, c.Asker = slices.Collect(maps.Keys(rightsOfTools)), &owner{}
	})
	for rights := range auth.All + 1 {
		if rights == 0 {
			continue
		}
		t.Run(rights.String(), func(t *testing.T) {
			bearer := o.add(t, strings.Join(rights.Names(), "-"), rights)
			_, listed := modern(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`).as(bearer,
				nil).do(t, o.url)
			_, legacyList := webRequest{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}.as(bearer,
				o.open(t, bearer)).do(t, o.url)
			for tool, need := range rightsOfTools {
				may := rights.Has(need)
				if got := strings.Contains(listed, `"name":"`+tool+`"`); got != may {
					t.Errorf("%s is listed: %v", tool, got)
				}
				if got := strings.Contains(legacyList, `"name":"`+tool+`"`); got != may {
					t.Errorf("%s is listed to legacy clients: %v", tool, got)
				}
				_, body := callAs(tool, `{"unknown":1}`).as(bearer, nil).do(t, o.url)
				if got := strings.Contains(body, "needs the right "+need.String()); got == may ||
					!strings.Contains(body, `"isError":true`) {
					t.Errorf("%s answers %s", tool, body)
				}
			}
		})
	}
}

// TestReadingStaysReading calls the tools of a reader with whatever might make more of them.
func TestReadingStaysReading(t *testing.T) {
	o := openOffice(t)
	reader := o.add(t, "reader", auth.Read)
	for _, call := range [][2]string{
		{"Grep", `{"pattern":"x","path":".","pre":"touch made"}`}, {"Grep", `{"pattern":"x","path":"--pre=touch made"}`},
		{"Grep", `{"pattern":"--pre=touch made","path":"."}`}, {"Grep", `{"pattern":"x","glob":"--pre=touch made"}`},
		{"Glob", `{"pattern":"$(touch made)"}`}, {"Glob", "{\"pattern\":\"`touch made`\"}"},
		{"Read", `{"file_path":"a.txt","command":"touch made"}`}, {"Read", `{"file_path":"|touch made"}`},
		{"Read", `{"file_path":"a.txt","content":"made"}`}, {"TaskOutput", `{"task_id":"x","command":"touch made"}`},
		{"bash", `{"command":"touch made"}`}, {"Bash ", `{"command":"touch made"}`}, {"Bash", `{"command":"touch made"}`},
		{"Write", `{"file_path":"made","content":"x"}`}, {"Edit", `{"file_path":"made","old_string":"","new_string":"x"}`},
		{"NotebookEdit", `{"notebook_path":"made.ipynb","new_source":"x"}`},
	} {
		callAs(call[0], call[1]).as(reader, nil).do(t, o.url)
	}
	entries, err := os.ReadDir(o.root)
	if err != nil || len(entries) != 1 {
		t.Errorf("a reader made %v, %v", entries, err)
	}
}

// await waits until a file is there.
func await(t *testing.T, file string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
	t.Fatalf("%s never came", file)
}

// awaitTasks waits for the end of all background tasks.
func (o *office) awaitTasks(t *testing.T) {
	t.Helper()
	for _, task := range o.host.runtime.Tasks() {
		select {
		case <-task.Done():
		case <-time.After(time.Minute):
			t.Errorf("the task %s of %s still runs", task.ID, task.Principal)
		}
	}
}

// listen opens the stream of a legacy session.
func (o *office) listen(t *testing.T, bearer string, session map[string]string) io.ReadCloser {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, o.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range session {
		req.Header.Set(k, v)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %v, %v", resp, err)
	}
	return resp.Body
}

func TestRevocationEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	o := openOffice(t)
	alice, bob := o.add(t, "alice", auth.All), o.add(t, "bob", auth.All)
	session, bobs := o.open(t, alice), o.open(t, bob)
	mine, theirs := o.listen(t, alice, session), o.listen(t, bob, bobs)
	defer theirs.Close()
	command := func(name string) string {
		return fmt.Sprintf(`{"command":"touch %s; until [ -e go ]; do sleep 0.05; done; touch %s.done"}`, name, name)
	}
	ended := make(chan string, 2)
	go func() { // a modern call
		_, body := callAs("Bash", command("modern")).as(alice, nil).do(t, o.url)
		ended <- body
	}()
	await(t, filepath.Join(o.root, "modern"))
	go func() { // a legacy call of another scope, which a disconnect would not cancel
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"Bash","arguments":%s}}`,
			command("legacy"))
		_, answer := webRequest{body: body}.as(alice, session).do(t, o.url)
		ended <- answer
	}()
	await(t, filepath.Join(o.root, "legacy"))
	background := strings.Replace(command("task"), "}", `,"run_in_background":true}`, 1)
	meta := strings.Replace(modernMeta, `"_meta":{`, `"_meta":{"threadId":"t",`, 1)
	webCall := strings.Replace(callAs("Bash", background).body, modernMeta, meta, 1)
	modern(webCall).as(alice, nil).do(t, o.url)
	await(t, filepath.Join(o.root, "task"))

	if err := auth.RevokeToken(o.tokens, "alice"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, mine); err != nil { // the stream ends, without a request
		t.Errorf("the stream broke: %v", err)
	}
	for range 2 {
		if body := <-ended; !strings.Contains(body, "revoked") {
			t.Errorf("a call that was cut off answers %s", body)
		}
	}
	o.awaitTasks(t)
	for _, headers := range []map[string]string{nil, session} {
		if resp, _ := (webRequest{body: legacyPing}).as(alice, headers).do(t,
			o.url); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a revoked token gets %d", resp.StatusCode)
		}
	}
	// The name is given again: its bearer has the name's state, but not the sessions of the token that was lost.
	again := o.add(t, "alice", auth.All)
	if resp, _ := (webRequest{body: legacyPing}).as(again, session).do(t,
		o.url); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the session of a revoked token: %d", resp.StatusCode)
	}
	if resp, body := (webRequest{body: legacyPing}).as(bob, bobs).do(t, o.url); resp.StatusCode != http.StatusOK {
		t.Errorf("another's session: %d %s", resp.StatusCode, body)
	}
	writeFile(t, filepath.Join(o.root, "go"), "")
	for _, name := range []string{"modern.done", "legacy.done", "task.done"} {
		if _, err := os.Stat(filepath.Join(o.root, name)); err == nil {
			t.Errorf("%s: what was revoked went on", name)
		}
	}
}

func TestExpiryEndsStreams(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	for life := time.Second; ; life *= 2 { // a machine under load may take longer than that to open the stream
		bearer, _, err := auth.AddToken(o.tokens, "short"+life.String(), auth.Read, life, "")
		if err != nil {
			t.Fatal(err)
		}
		resp, body := webRequest{body: initialize}.as(bearer, nil).do(t, o.url)
		session := map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"),
			"MCP-Protocol-Version": "2025-11-25"}
		ended := false
		if resp.StatusCode == http.StatusOK {
			resp, body = webRequest{method: http.MethodGet}.as(bearer, session).do(t, o.url) // returns when the stream has ended
			ended = resp.StatusCode == http.StatusOK
		}
		if !ended && life < time.Minute && resp.StatusCode == http.StatusUnauthorized &&
			strings.Contains(body, "expired") {
			continue
		}
		if !ended {
			t.Fatalf("the stream: %d %s", resp.StatusCode, body)
		}
		if resp, body := (webRequest{body: legacyPing}).as(bearer, session).do(t,
			o.url); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "expired") {
			t.Errorf("an expired token: %d %s", resp.StatusCode, body)
		}
		return
	}
}
