package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/testenv"
	"github.com/toolhost/toolhost/mcpserver"
)

// TestCallPage answers a question on the page of its call, and undoes there what the command changed.
func TestCallPage(t *testing.T) {
	testenv.NeedsNamespaces(t)
	s := serve(t, map[string]string{".claude/settings.json": `{"permissions":{"ask":["Bash(sed:*)"]}}`,
		"a.txt": "old\n"}, func(c *mcpserver.Config) { c.TrustWorkspace = true })
	req := mcpserver.Request{Tool: "Bash", Args: []byte(`{"command":"sed -i s/old/new/ a.txt"}`), Client: builtin.Client{CanAsk: true}}
	reply := s.host.Call(context.Background(), s.host.AdmitNamed("test"), req)
	if reply.Question == nil {
		t.Fatal(reply.Text)
	}
	asked := make(chan mcpserver.Answer, 1)
	go func() {
		asked <- s.console.Ask(context.Background(),
			mcpserver.OperatorQuestion{Principal: "local", Tool: "Bash", Question: reply.Question})
	}()
	for now := s.console.next(); now.waiting == 0; now = s.console.next() {
		<-now.changed
	}
	old := s.console.recent(query{}, 1)[0].ID
	path := fmt.Sprintf("/calls/%d", old)
	_, page := s.get(t, path)
	number := regexp.MustCompile(`name="question" value="(\d+)"`).FindStringSubmatch(page)
	if number == nil || !strings.Contains(page, "allow once") || strings.Contains(page, mcpserver.AlwaysAllow) ||
		!strings.Contains(page, "asks each time") {
		t.Fatalf("the page of the call is\n%s", page)
	}
	if status, body := s.sent(t, "/answer", url.Values{"question": {number[1]}, "decision": {mcpserver.AllowOnce}}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	answer := <-asked
	answer.State = reply.Question.State
	req.Answer = &answer
	if r := s.host.Call(context.Background(), s.host.AdmitNamed("test"), req); r.IsError {
		t.Fatal(r.Text)
	}
	_, page = s.get(t, path) // leads to the call that was repeated
	undo := regexp.MustCompile(`action="(/history/\w+/undo)"`).FindStringSubmatch(page)
	if undo == nil || !strings.Contains(page, "row add") || !strings.Contains(page, "row del") {
		t.Fatalf("the page of the call that was allowed is\n%s", page)
	}
	if status, body := s.sent(t, undo[1], url.Values{}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if text, err := os.ReadFile(filepath.Join(s.root, "a.txt")); err != nil || string(text) != "old\n" {
		t.Errorf("after the undo: %q, %v", text, err)
	}
}

// TestReadOnlyPages shows agents and settings, and what to do where there are none.
func TestReadOnlyPages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(`{"bash":{"maxTasks":7},"agent":{"runner":{"command":"x","env":{"KEY":"secret"}}},"approvals":{"notify":"https://hooks.example.com/secret"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil, func(c *mcpserver.Config) { c.Settings = []string{file} })
	for path, wants := range map[string][]string{
		"/agents":   {"No agent runs", "for 30 days"},
		"/settings": {"bash.maxTasks", file + ":1", "at their defaults", "gate.parallel", "https://hooks.example.com/…", "Questions are not announced:"},
	} {
		status, page := s.get(t, path)
		for _, want := range wants {
			if !strings.Contains(page, want) || status != http.StatusOK {
				t.Errorf("%s lacks %q: %d\n%s", path, want, status, page)
			}
		}
		if strings.Contains(page, "secret") {
			t.Errorf("%s shows a secret", path)
		}
	}
}
