package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// A consoleHost is a [host.Console] with the calls and looks of these tests.
type consoleHost struct{ *host.Console }

// startConsole starts a host with a console on a root with the given settings.
func startConsole(t *testing.T, s host.Setting, rules string, flags ...string) *consoleHost {
	t.Helper()
	testenv.NeedsNamespaces(t)
	c := &consoleHost{&host.Console{Dir: host.TempDir(t), Home: host.TempDir(t)}}
	if rules != "" {
		host.MustWrite(t, filepath.Join(c.Dir, ".claude", "settings.json"), rules)
	}
	ctx, cancel := context.WithTimeout(context.Background(), host.Patience)
	defer cancel()
	var err error
	if c.Host, err = host.StartHost(ctx, s, c.Dir, host.CleanEnv(c.Home),
		append([]string{"--console", "--trust-workspace"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("the host ended with %v\n%s", err, c.Stderr)
		}
	})
	c.Link = c.OpenLink(t)
	c.Web = host.NewBrowser(t)
	return c
}

// begin starts a call, and returns a function that waits for its result.
func (c *consoleHost) begin(t *testing.T, tool, args string) (result func() *client.Result) {
	t.Helper()
	p, err := c.Start(context.Background(), tool, args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() *client.Result {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), host.Patience)
		defer cancel()
		r, err := p.Result(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

const askPush = `{"permissions":{"ask":["Bash(echo push:*)"]}}`

// TestConsoleAnswers asks on the page in both eras and over both transports, for clients that cannot ask.
func TestConsoleAnswers(t *testing.T) {
	for _, s := range host.Settings {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			c := startConsole(t, s, askPush)
			if r := c.begin(t, "Bash", `{"command":"echo push 0"}`)(); !r.IsError ||
				!strings.Contains(r.Text(), "this client cannot ask one") {
				t.Errorf("without an open page: %s", r.Text())
			}
			if status := c.Enter(t, c.Web); status != http.StatusSeeOther {
				t.Fatalf("the link was answered by %d", status)
			}
			c.Watch(t)

			result := c.begin(t, "Bash", `{"command":"echo push 1"}`)
			id := c.Question(t)
			if status, body := c.Post(t, "/answer",
				url.Values{"question": {id}, "decision": {"always allow"}}); status != http.StatusConflict {
				t.Errorf("what may be allowed once only was allowed always: %d %s", status, body)
			}
			if status, body := c.Post(t, "/answer",
				url.Values{"question": {id}, "decision": {"allow once"}}); status != http.StatusOK {
				t.Errorf("allowing was answered by %d %s", status, body)
			}
			if r := result(); r.IsError || !strings.Contains(r.Text(), "push 1") {
				t.Errorf("after it was allowed: %s", r.Text())
			}
			if status, body := c.Post(t, "/answer",
				url.Values{"question": {id}, "decision": {"allow once"}}); status != http.StatusConflict ||
				!strings.Contains(body, "had no effect") {
				t.Errorf("allowing twice was answered by %d %s", status, body)
			}

			result = c.begin(t, "Bash", `{"command":"echo push 2"}`)
			if status, _ := c.Post(t, "/answer", url.Values{"question": {c.Question(t)}, "decision": {"deny"},
				"reason": {"push on Friday"}}); status != http.StatusOK {
				t.Errorf("denying was answered by %d", status)
			}
			if r := result(); !r.IsError || !strings.Contains(r.Text(), "push on Friday") ||
				strings.Contains(r.Text(), "push 2\n") {
				t.Errorf("after it was denied: %s", r.Text())
			}
		})
	}
}

// TestConsoleCancelled takes a question off the page when its call is cancelled.
func TestConsoleCancelled(t *testing.T) {
	c := startConsole(t, host.StdioModern, askPush, "--console-waits")
	c.Enter(t, c.Web)
	p, err := c.Start(context.Background(), "Bash", `{"command":"echo push 1"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := c.Question(t)
	if err := c.Cancel(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	host.Eventually(t, func() (missing string) {
		_, page := c.Get(t, c.Web, "/part/questions", nil)
		return host.QuestionField.FindString(page)
	})
	if status, body := c.Post(t, "/answer", url.Values{"question": {id}, "decision": {"allow once"}}); status != http.StatusConflict || !strings.Contains(body, "cancelled") {
		t.Errorf("allowing a cancelled call was answered by %d %s", status, body)
	}
}

// TestConsoleAlways remembers a rule only where the scope is one agent's alone.
func TestConsoleAlways(t *testing.T) {
	c := startConsole(t, host.HTTPModern, `{"permissions":{"defaultMode":"default"}}`, "--console-waits")
	c.Enter(t, c.Web)
	c.Meta = map[string]any{"threadId": "one"}
	write := func(n int) string { return fmt.Sprintf(`{"file_path":"kept.txt","content":"%d\n"}`, n) }
	result := c.begin(t, "Write", write(1))
	if status, body := c.Post(t, "/answer", url.Values{"question": {c.Question(t)}, "decision": {"always allow"}}); status != http.StatusOK {
		t.Fatalf("always allowing was answered by %d %s", status, body)
	}
	if r := result(); r.IsError {
		t.Fatal(r.Text())
	}
	if r := c.begin(t, "Write", write(2))(); r.IsError {
		t.Errorf("the rule was not remembered: %s", r.Text())
	}
	if got, err := os.ReadFile(filepath.Join(c.Dir, "kept.txt")); string(got) != "2\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

// TestConsoleUncontained approves nothing where a command could approve itself.
func TestConsoleUncontained(t *testing.T) {
	c := startConsole(t, host.HTTPModern, `{"permissions":{"ask":["Bash(echo push:*)"]},"sandbox":{"enabled":false}}`,
		"--console-waits")
	c.Enter(t, c.Web)
	if r := c.begin(t, "Bash", `{"command":"echo push 1"}`)(); !r.IsError || strings.Contains(r.Text(), "push 1\n") {
		t.Errorf("the call was not refused: %s", r.Text())
	}
	if _, page := c.Get(t, c.Web, "/", nil); !strings.Contains(page, "Nothing can be approved") ||
		!strings.Contains(page, "sandbox.enabled is false") {
		t.Errorf("the page does not say why nothing can be approved:\n%s", page)
	}
}
