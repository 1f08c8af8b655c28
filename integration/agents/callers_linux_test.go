package agents

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAgentQuestions has agents ask the person of their caller: the question names the agent, and the answer to one ends neither the
// agent nor the call. Once the call has been answered, the question goes to the console.
func TestAgentQuestions(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	p.runs(t, nil, "")
	h := startAgentHost(t, p, host.HTTPLegacy, nil, "--console")
	s := newSDK(t, h.Host, p.Project, "2025-06-18")
	const push = `{"tool": "Bash", "args": {"command": "git push origin main; echo pushed=$?"}}`
	call := func(more string) string {
		t.Helper()
		prompt := push + "\n" + `{"say": "went on"}` + "\n"
		if more != "" { // until the call has been answered
			prompt = shellStep("until [ -e go ]; do sleep .05; done") + "\n" + prompt
		}
		r, err := s.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "Agent", Arguments: map[string]any{"description": "a test", "prompt": prompt, "run_in_background": more != ""}})
		host.Must(t, err)
		text := r.Content[0].(*mcp.TextContent).Text
		if r.IsError {
			t.Errorf("the call failed: %s", text)
		}
		return text
	}
	names := regexp.MustCompile(`^agent [0-9a-f]{8} \(general\): `)
	for _, c := range []struct {
		answer mcp.ElicitResult
		says   string
	}{
		{mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}, "pushed=128"},
		{mcp.ElicitResult{Action: "decline"}, "refused: "},
		{mcp.ElicitResult{Action: "cancel"}, "refused: "},
	} {
		s.answer, s.asked = c.answer, nil
		if text := call(""); !strings.Contains(text, c.says) || !strings.Contains(text, "went on") {
			t.Errorf("%s: it says\n%s", c.answer.Action, text)
		}
		if len(s.asked) != 1 || !names.MatchString(s.asked[0]) ||
			!strings.Contains(s.asked[0], "git push origin main") {
			t.Errorf("%s: a person was asked %q", c.answer.Action, s.asked)
		}
	}

	c := &host.Console{Host: h.Host, Dir: p.Project, Home: p.Home, Web: host.NewBrowser(t)}
	c.Link = c.OpenLink(t)
	c.Enter(t, c.Web)
	c.Watch(t)
	s.asked = nil
	id := regexp.MustCompile(`[0-9a-f]{8}`).FindString(call("background"))
	host.Must(t, os.WriteFile(filepath.Join(p.Project, "go"), nil, 0o600))
	question := c.Question(t)
	if _, page := c.Get(t, c.Web, "/part/questions", nil); !strings.Contains(page, "agent "+id+" (general)") ||
		!strings.Contains(page, "git push origin main") {
		t.Errorf("the question on the page does not name the agent %s:\n%s", id, page)
	}
	c.Post(t, "/answer", url.Values{"question": {question}, "decision": {"deny"}, "reason": {"not on Friday"}})
	r, err := s.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "TaskOutput", Arguments: map[string]any{"task_id": id, "timeout": 60000}})
	host.Must(t, err)
	if text := r.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "not on Friday") ||
		!strings.Contains(text, "went on") || len(s.asked) > 0 {
		t.Errorf("after it was denied, with the person asked %q:\n%s", s.asked, text)
	}
}
