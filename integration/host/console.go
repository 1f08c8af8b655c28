package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A Console is a host with a console, and a way to look at it as a browser does.
type Console struct {
	*Host
	Dir  string // its root
	Home string
	Link string // lets one browser in
	Web  *http.Client
}

// OpenLink runs toolhost console as the owner does, and returns the link that it prints.
func (c *Console) OpenLink(t *testing.T) string {
	t.Helper()
	Eventually(t, func() (missing string) { // a client on stdio is connected before the host is up
		if found, err := filepath.Glob(filepath.Join(c.Home, "state", "toolhost", "console",
			"*.json")); len(found) == 0 {
			return fmt.Sprintf("there is no console, %v", err)
		}
		return ""
	})
	cmd := exec.Command(Binary, "console")
	cmd.Env = CleanEnv(c.Home)
	cmd.Stderr = c.Stderr
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
		t.Fatalf("toolhost console printed no link: %v\n%s", err, c.Stderr)
	}
	return strings.TrimSpace(line)
}

// NewBrowser keeps cookies, and follows nothing.
func NewBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{
		Jar: jar, Timeout: Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// At returns the address of a page of the console.
func (c *Console) At(path string) string {
	base, _, _ := strings.Cut(c.Link, "/enter#")
	return base + path
}

// Enter exchanges the code of the link for a cookie.
func (c *Console) Enter(t *testing.T, web *http.Client) (status int) {
	t.Helper()
	_, code, _ := strings.Cut(c.Link, "#")
	status, _ = c.Send(t, web, "/enter", url.Values{"code": {code}}, nil)
	return status
}

// Get fetches a page.
func (c *Console) Get(t *testing.T, web *http.Client, path string, change func(*http.Request)) (status int,
	body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, c.At(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Do(t, web, req, change)
}

// Send posts a form as it is.
func (c *Console) Send(t *testing.T, web *http.Client, path string, form url.Values, change func(*http.Request)) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.At(path), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return Do(t, web, req, change)
}

// Do sends a request, which change may alter first, and returns the status and the body.
func Do(t *testing.T, web *http.Client, req *http.Request, change func(*http.Request)) (status int, body string) {
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

// TokenField matches the token of a form.
var TokenField = regexp.MustCompile(`name="token" value="([A-Z2-7]+)"`)

// Post sends a form of a page: with the token that the page holds.
func (c *Console) Post(t *testing.T, path string, form url.Values) (status int, body string) {
	t.Helper()
	_, page := c.Get(t, c.Web, "/", nil)
	m := TokenField.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page holds no token:\n%s", page)
	}
	form.Set("token", m[1])
	return c.Send(t, c.Web, path, form, nil)
}

// Watch keeps a page open, until the test ends.
func (c *Console) Watch(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.At("/events"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Jar: c.Web.Jar}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatalf("the page is not kept up to date (%s): %v", resp.Status, err)
	}
}

// QuestionField matches the number of a question in a form.
var QuestionField = regexp.MustCompile(`name="question" value="(\d+)"`)

// Question waits until a question stands on the page, and returns its number.
func (c *Console) Question(t *testing.T) string {
	t.Helper()
	id := ""
	Eventually(t, func() (missing string) {
		_, page := c.Get(t, c.Web, "/part/questions", nil)
		m := QuestionField.FindStringSubmatch(page)
		if m == nil {
			return "a question on the page: " + page
		}
		id = m[1]
		return ""
	})
	return id
}
