package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
)

// A consoleHost is a host with a console, and a way to look at it as a browser does.
type consoleHost struct {
	*host
	dir  string // its root
	home string
	link string // lets one browser in
	web  *http.Client
}

// startConsole starts a host with a console on a root with the given settings.
func startConsole(t *testing.T, s setting, rules string, flags ...string) *consoleHost {
	t.Helper()
	c := &consoleHost{dir: tempDir(t), home: tempDir(t)}
	if rules != "" {
		mustWrite(t, filepath.Join(c.dir, ".claude", "settings.json"), rules)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if c.host, err = startHost(ctx, s, c.dir, cleanEnv(c.home), append([]string{"--console", "--trust-workspace"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("the host ended with %v\n%s", err, c.stderr)
		}
	})
	c.link = c.openLink(t)
	c.web = newBrowser(t)
	return c
}

// openLink runs toolhost console as the owner does, and returns the link that it prints.
func (c *consoleHost) openLink(t *testing.T) string {
	t.Helper()
	eventually(t, func() (missing string) { // a client on stdio is connected before the host is up
		if found, err := filepath.Glob(filepath.Join(c.home, "state", "toolhost", "console", "*.json")); len(found) == 0 {
			return fmt.Sprintf("there is no console, %v", err)
		}
		return ""
	})
	cmd := exec.Command(binary, "console")
	cmd.Env = cleanEnv(c.home)
	cmd.Stderr = c.stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended where the host has a port
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("toolhost console printed no link: %v\n%s", err, c.stderr)
	}
	return strings.TrimSpace(line)
}

// newBrowser keeps cookies, and follows nothing.
func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{
		Jar: jar, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (c *consoleHost) at(path string) string {
	base, _, _ := strings.Cut(c.link, "/enter#")
	return base + path
}

// enter exchanges the code of the link for a cookie.
func (c *consoleHost) enter(t *testing.T, web *http.Client) (status int) {
	t.Helper()
	_, code, _ := strings.Cut(c.link, "#")
	status, _ = c.send(t, web, "/enter", url.Values{"code": {code}}, nil)
	return status
}

// get fetches a page.
func (c *consoleHost) get(t *testing.T, web *http.Client, path string, change func(*http.Request)) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, c.at(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, web, req, change)
}

// send posts a form as it is.
func (c *consoleHost) send(t *testing.T, web *http.Client, path string, form url.Values, change func(*http.Request)) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.at(path), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(t, web, req, change)
}

func do(t *testing.T, web *http.Client, req *http.Request, change func(*http.Request)) (status int, body string) {
	t.Helper()
	if change != nil {
		change(req)
	}
	resp, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

var tokenField = regexp.MustCompile(`name="token" value="([A-Z2-7]+)"`)

// post sends a form of a page: with the token that the page holds.
func (c *consoleHost) post(t *testing.T, path string, form url.Values) (status int, body string) {
	t.Helper()
	_, page := c.get(t, c.web, "/", nil)
	m := tokenField.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page holds no token:\n%s", page)
	}
	form.Set("token", m[1])
	return c.send(t, c.web, path, form, nil)
}

// watch keeps a page open, until the test ends.
func (c *consoleHost) watch(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at("/events"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Jar: c.web.Jar}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatalf("the page is not kept up to date (%s): %v", resp.Status, err)
	}
}

var questionField = regexp.MustCompile(`name="question" value="(\d+)"`)

// question waits until a question stands on the page, and returns its number.
func (c *consoleHost) question(t *testing.T) string {
	t.Helper()
	id := ""
	eventually(t, func() (missing string) {
		_, page := c.get(t, c.web, "/part/questions", nil)
		m := questionField.FindStringSubmatch(page)
		if m == nil {
			return "a question on the page: " + page
		}
		id = m[1]
		return ""
	})
	return id
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
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r, err := p.Result(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

const askPush = `{"permissions":{"ask":["Bash(echo push:*)"]}}`

// TestConsoleAnswers asks on the page in both eras and over both transports, for clients that cannot ask.
func TestConsoleAnswers(t *testing.T) {
	for _, s := range settings {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			c := startConsole(t, s, askPush)
			if r := c.begin(t, "Bash", `{"command":"echo push 0"}`)(); !r.IsError || !strings.Contains(r.Text(), "this client cannot ask one") {
				t.Errorf("without an open page: %s", r.Text())
			}
			if status := c.enter(t, c.web); status != http.StatusSeeOther {
				t.Fatalf("the link was answered by %d", status)
			}
			c.watch(t)

			result := c.begin(t, "Bash", `{"command":"echo push 1"}`)
			id := c.question(t)
			if status, body := c.post(t, "/answer", url.Values{"question": {id}, "decision": {"always allow"}}); status != http.StatusConflict {
				t.Errorf("what may be allowed once only was allowed always: %d %s", status, body)
			}
			if status, body := c.post(t, "/answer", url.Values{"question": {id}, "decision": {"allow once"}}); status != http.StatusOK {
				t.Errorf("allowing was answered by %d %s", status, body)
			}
			if r := result(); r.IsError || !strings.Contains(r.Text(), "push 1") {
				t.Errorf("after it was allowed: %s", r.Text())
			}
			if status, body := c.post(t, "/answer", url.Values{"question": {id}, "decision": {"allow once"}}); status != http.StatusConflict || !strings.Contains(body, "had no effect") {
				t.Errorf("allowing twice was answered by %d %s", status, body)
			}

			result = c.begin(t, "Bash", `{"command":"echo push 2"}`)
			if status, _ := c.post(t, "/answer", url.Values{"question": {c.question(t)}, "decision": {"deny"}, "reason": {"push on Friday"}}); status != http.StatusOK {
				t.Errorf("denying was answered by %d", status)
			}
			if r := result(); !r.IsError || !strings.Contains(r.Text(), "push on Friday") || strings.Contains(r.Text(), "push 2\n") {
				t.Errorf("after it was denied: %s", r.Text())
			}
		})
	}
}

// TestConsoleCancelled takes a question off the page when its call is cancelled.
func TestConsoleCancelled(t *testing.T) {
	c := startConsole(t, setting{"stdio", client.Modern}, askPush, "--console-waits")
	c.enter(t, c.web)
	p, err := c.Start(context.Background(), "Bash", `{"command":"echo push 1"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := c.question(t)
	if err := c.Cancel(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (missing string) {
		_, page := c.get(t, c.web, "/part/questions", nil)
		return questionField.FindString(page)
	})
	if status, body := c.post(t, "/answer", url.Values{"question": {id}, "decision": {"allow once"}}); status != http.StatusConflict || !strings.Contains(body, "cancelled") {
		t.Errorf("allowing a cancelled call was answered by %d %s", status, body)
	}
}

// TestConsoleAlways remembers a rule only where the scope is one agent's alone.
func TestConsoleAlways(t *testing.T) {
	c := startConsole(t, setting{"http", client.Modern}, `{"permissions":{"defaultMode":"default"}}`, "--console-waits")
	c.enter(t, c.web)
	c.Meta = map[string]any{"threadId": "one"}
	write := func(n int) string { return fmt.Sprintf(`{"file_path":"kept.txt","content":"%d\n"}`, n) }
	result := c.begin(t, "Write", write(1))
	if status, body := c.post(t, "/answer", url.Values{"question": {c.question(t)}, "decision": {"always allow"}}); status != http.StatusOK {
		t.Fatalf("always allowing was answered by %d %s", status, body)
	}
	if r := result(); r.IsError {
		t.Fatal(r.Text())
	}
	if r := c.begin(t, "Write", write(2))(); r.IsError {
		t.Errorf("the rule was not remembered: %s", r.Text())
	}
	if got, err := os.ReadFile(filepath.Join(c.dir, "kept.txt")); string(got) != "2\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

// TestConsoleUncontained approves nothing where a command could approve itself.
func TestConsoleUncontained(t *testing.T) {
	c := startConsole(t, setting{"http", client.Modern}, `{"permissions":{"ask":["Bash(echo push:*)"]},"sandbox":{"enabled":false}}`, "--console-waits")
	c.enter(t, c.web)
	if r := c.begin(t, "Bash", `{"command":"echo push 1"}`)(); !r.IsError || strings.Contains(r.Text(), "push 1\n") {
		t.Errorf("the call was not refused: %s", r.Text())
	}
	if _, page := c.get(t, c.web, "/", nil); !strings.Contains(page, "Nothing can be approved") || !strings.Contains(page, "sandbox.enabled is false") {
		t.Errorf("the page does not say why nothing can be approved:\n%s", page)
	}
}
