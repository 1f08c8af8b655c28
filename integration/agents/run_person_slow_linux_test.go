//go:build slow

package agents

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestRunPort has clients reach a service of this machine that is allowed, also those that send all requests to the proxy.
func TestRunPort(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprintln(w, "reached", r.URL.Path)
	}))
	defer service.Close()
	at := strings.TrimPrefix(service.URL, "http://")
	script := "curl -sS http://" + at + "/1; curl -sS --noproxy '' http://" + at +
		"/2; curl -sSp --noproxy '' http://" + at + "/3"
	if out, ok := p.Run(t, nil, host.Binary, "run", "--allow-host", at, "--", "sh", "-c", script); !ok ||
		strings.Count(out, "reached /") != 3 {
		t.Errorf("it says\n%s", out)
	}
}

// TestRunConsole answers at the console what a rule asks of a program, and what an unknown client asks of the network.
func TestRunConsole(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	cmd := exec.Command(host.Binary, "run", "--", "bash", "-c", `until [ -e go ]; do sleep .1; done
		git push; echo first-$?; git push; echo second-$?; curl -sS http://refused.invalid/; echo third-$?`)
	cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
	out := &host.LockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	host.Must(t, cmd.Start())
	defer cmd.Process.Kill()
	c := &host.Console{Host: &host.Host{Stderr: out}, Home: p.Home, Web: host.NewBrowser(t)}
	c.Link = c.OpenLink(t)
	c.Enter(t, c.Web)
	c.Watch(t)
	host.Must(t, os.WriteFile(filepath.Join(p.Project, "go"), nil, 0o600))
	id := ""
	for _, q := range []struct{ shows, decision string }{{"git push", "allow once"}, {"git push", "deny"},
		{"refused.invalid", "deny"}} {
		last := id
		host.Eventually(t, func() string {
			if id = c.Question(t); id == last {
				return "the next question, " + q.shows
			}
			return ""
		})
		if _, page := c.Get(t, c.Web, "/part/questions", nil); !strings.Contains(page, q.shows) {
			t.Errorf("the question does not show %q:\n%s", q.shows, page)
		}
		if status, body := c.Post(t, "/answer", url.Values{"question": {id}, "decision": {q.decision}}); status >= 400 {
			t.Fatalf("answer: %d %s", status, body)
		}
	}
	host.Must(t, cmd.Wait())
	for _, says := range []string{"first-128", "second-126", "third-0", "refused.invalid"} { // git runs, and finds no repository
		if !strings.Contains(out.String(), says) {
			t.Errorf("it does not say %q:\n%s", says, out)
		}
	}
}

// TestRunSettles has a client switch a branch that changes a protected file, and plant another: it sees what it wrote, and so does the
// next run; outside of runs the former files stand.
func TestRunSettles(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	tasks := filepath.Join(p.Project, ".vscode/tasks.json")
	const history = `git init -q -b old; git config user.name t; git config user.email t@example.org; mkdir .vscode; echo old > .vscode/tasks.json; git add -A; git commit -q -m old; git checkout -q -b new; echo new > .vscode/tasks.json; git commit -q -a -m new; git checkout -q old`
	if out, ok := p.Run(t, nil, "sh", "-c", history); !ok {
		t.Fatal(out)
	}
	for _, c := range [][2]string{
		{"git checkout -q new && cat .vscode/tasks.json && git status --porcelain .vscode && echo planted > .envrc", "new\n"},
		{"cat .vscode/tasks.json .envrc && git status --porcelain .vscode .envrc", "new\nplanted\n?? .envrc\n"},
	} {
		out, ok := p.Run(t, nil, host.Binary, "run", "--", "sh", "-c", c[0])
		if !ok || !strings.Contains(out, c[1]) || strings.Contains(out, " M ") ||
			!strings.Contains(out, "toolhost keep") && !strings.Contains(out, "Still held") {
			t.Errorf("%s\n%s", c[0], out)
		}
		if text, err := os.ReadFile(tasks); err != nil || string(text) != "old\n" {
			t.Errorf("outside stands %q, %v", text, err)
		}
		if _, err := os.Stat(filepath.Join(p.Project, ".envrc")); err == nil {
			t.Error("outside stands a planted file")
		}
	}
}

// TestRunPerson has a client and a person change files in turn while the client runs: what the person alone has changed
// stays, settings of git too, and what the client has changed is held, also if the person has changed it after.
func TestRunPerson(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	person := func(script string) {
		t.Helper()
		if out, ok := p.Run(t, nil, "sh", "-ec", script); !ok {
			t.Fatal(out)
		}
	}
	person("git init -q; mkdir .vscode; echo old | tee .vscode/settings.json > .vscode/tasks.json")
	cmd := exec.CommandContext(t.Context(), host.Binary, "run", "--", "bash", "-c",
		`while read -r line; do eval "$line"; echo did; done`)
	cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
	var report strings.Builder
	cmd.Stderr = &report
	stdin, err := cmd.StdinPipe()
	host.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	host.Must(t, err)
	host.Must(t, cmd.Start())
	said := bufio.NewScanner(stdout)
	client := func(script string) (out string) {
		t.Helper()
		fmt.Fprintln(stdin, script)
		for said.Scan() && said.Text() != "did" {
			out += said.Text() + "\n"
		}
		return out
	}
	sleeps := func() {
		t.Helper()
		host.Eventually(t, func() string {
			locks, _ := filepath.Glob(filepath.Join(p.Home, "state/*/settle/*/lock"))
			for _, lock := range locks {
				if text, err := os.ReadFile(lock); err == nil && string(text) == "10" {
					return ""
				}
			}
			return "the client does not sleep"
		})
	}
	client(":")
	sleeps()
	person("echo person > .vscode/settings.json; git config core.pager person")
	client("echo client > .vscode/tasks.json; echo client > .envrc; git config core.fsmonitor client; git config user.name client")
	sleeps()
	person("echo both > .vscode/tasks.json; git config core.editor person; echo again >> .vscode/settings.json")
	if out := client("cat .vscode/*"); out != "person\nagain\nboth\n" {
		t.Errorf("the client sees %q", out)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	const held = "person\nagain\nold\nclient\nperson\nperson\n"
	const look = "cat .vscode/* .envrc 2> /dev/null; git config user.name; git config core.pager; git config core.editor; git config core.fsmonitor"
	if out, _ := p.Run(t, nil, "sh", "-c", look); out != held {
		t.Errorf("after it stands %q\n%s", out, &report)
	}
	if said := report.String(); !strings.Contains(said, ".vscode/tasks.json (changed)") || strings.Contains(said, ".vscode/settings.json (") ||
		!strings.Contains(said, "core.fsmonitor") || strings.Contains(said, "core.pager") {
		t.Errorf("it reports %s", said)
	}
	if out, _ := p.Run(t, nil, host.Binary, "run", "--", "sh", "-c", "cat .vscode/tasks.json .envrc"); !strings.Contains(out, "both\nclient\n") {
		t.Errorf("the next run sees %s", out)
	}
}
