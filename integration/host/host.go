package host

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
)

// Patience bounds every wait of these tests. It passes only when something is broken.
const Patience = 2 * time.Minute

// A Host is a running toolhost with one client connected to it.
type Host struct {
	*client.Conn
	Cmd    *exec.Cmd
	Web    bool
	Stderr *LockedBuffer
	URL    string
	Token  string
	gone   chan error // receives the end of a web host
	Ended  bool       // it was stopped
}

// A Setting is a transport and an era.
type Setting struct {
	Transport string // stdio or http
	Era       client.Era
}

// String returns the name of a setting, such as stdio-2026-07-28.
func (s Setting) String() string { return s.Transport + "-" + string(s.Era) }

// The ways in which a client can speak to a host.
var (
	StdioModern = Setting{"stdio", client.Modern}
	StdioLegacy = Setting{"stdio", client.Legacy}
	HTTPModern  = Setting{"http", client.Modern}
	HTTPLegacy  = Setting{"http", client.Legacy}
)

// Settings are all of them.
var Settings = []Setting{StdioModern, StdioLegacy, HTTPModern, HTTPLegacy}

// StartHost starts a host in dir with the given flags and environment, and connects a client to it.
func StartHost(ctx context.Context, s Setting, dir string, env []string, flags ...string) (*Host, error) {
	return StartHostAs(ctx, func(*exec.Cmd) {}, s, dir, env, flags...)
}

// StartHostAs is startHost after a last word about the process.
func StartHostAs(ctx context.Context, as func(*exec.Cmd), s Setting, dir string, env []string,
	flags ...string) (*Host, error) {
	h := &Host{Stderr: &LockedBuffer{}, Web: s.Transport == "http"}
	args := append([]string{s.Transport}, flags...)
	if h.Web {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	h.Cmd = exec.Command(Binary, args...)
	h.Cmd.Dir, h.Cmd.Env, h.Cmd.Stderr = dir, env, h.Stderr
	as(h.Cmd)
	var err error
	if h.Web {
		err = h.connectWeb(ctx, s.Era)
	} else {
		h.Conn, err = client.Stdio(ctx, s.Era, h.Cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the host: %w\n%s", err, h.Stderr)
	}
	return h, nil
}

// connectWeb starts the host, reads its address and token from what it prints, and connects.
func (h *Host) connectWeb(ctx context.Context, era client.Era) error {
	r, w := io.Pipe()
	h.Cmd.Stderr = io.MultiWriter(h.Stderr, w)
	if err := h.Cmd.Start(); err != nil {
		return err
	}
	h.gone = make(chan error, 1)
	go func() {
		h.gone <- h.Cmd.Wait()
		w.Close()
	}()
	var err error
	if h.URL, h.Token, err = client.Announced(r); err != nil {
		r.CloseWithError(err) // what else it writes is not waited for
		return err
	}
	h.URL = strings.Replace(h.URL, "/w/NAME/", "/w/"+filepath.Base(h.Cmd.Dir)+"/", 1) // of the server of many workspaces
	h.Conn, err = client.HTTP(ctx, era, h.URL, h.Token)
	return err
}

// Stop ends the host as its client would, and reports what it complained of.
func (h *Host) Stop() error {
	h.Ended = true
	err := h.Close()
	if h.Web {
		if e := h.Cmd.Process.Signal(syscall.SIGTERM); e != nil {
			return e
		}
		err = <-h.gone
	}
	return err
}

// A LockedBuffer collects what a process writes.
type LockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements io.Writer.
func (l *LockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written so far.
func (l *LockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Eventually waits until a condition holds, which it tells by an empty string. It asks less and less often: many
// conditions start programs.
func Eventually(t testing.TB, missing func() string) {
	t.Helper()
	var last string
	pause := time.Millisecond
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(pause) {
		if last = missing(); last == "" {
			return
		}
		pause = min(2*pause, 64*time.Millisecond)
	}
	t.Errorf("after %v: %s", Patience, last)
}

// Must fails the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// CleanEnv is an environment in which nothing of the developer's own settings counts.
func CleanEnv(home string) []string {
	env := []string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CONFIG_HOME=" +
		filepath.Join(home, "config")}
	for _, name := range []string{"PATH", "TMPDIR", "LANG", "GORACE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

var contained struct {
	once sync.Once
	yes  bool
}

// Contained reports whether this machine can contain commands.
func Contained(t *testing.T) bool {
	t.Helper()
	contained.once.Do(func() {
		cmd := exec.Command(Binary, "check", "Bash", `{"command":"make"}`, "--root", TempDir(t))
		cmd.Env = CleanEnv(TempDir(t))
		out, _ := cmd.Output() // a command that would not run is told by the exit status
		contained.yes = strings.Contains(string(out), "The sandbox")
	})
	return contained.yes
}

// NeedsContained skips a test where this machine cannot contain commands.
func NeedsContained(t *testing.T) {
	t.Helper()
	if !Contained(t) {
		t.Skip("nothing contains commands on this machine")
	}
}

// Patient returns a context that ends after Patience.
func Patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Patience)
}

// Clip cuts the middle out of a text that is longer than most bytes.
func Clip(s string, most int) string {
	if len(s) > most {
		return s[:most/2] + " … " + s[len(s)-most/2:]
	}
	return s
}

// Nowhere is a registry that does not answer: nothing can be downloaded from it.
const Nowhere = "http://127.0.0.1:9"

var metricsAddress = regexp.MustCompile(`metrics on (\S+)\n`)

// Metrics returns the page of a host that serves one.
func (h *Host) Metrics(t *testing.T) string {
	t.Helper()
	var where []string
	Eventually(t, func() string { // what a host has written is read in its own time, and an answer of the host can be there before
		if where = metricsAddress.FindStringSubmatch(h.Stderr.String()); where == nil {
			return "the address is not told: " + h.Stderr.String()
		}
		return ""
	})
	if where == nil || !strings.HasPrefix(where[1], "http://127.0.0.1:") {
		t.Fatalf("the address is not told, or not loopback: %s", h.Stderr)
	}
	resp, err := http.Get(where[1])
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// PicturesDir is where tests write the pictures of the documentation, if at all.
var PicturesDir = flag.String("pictures", "", "the directory that tests write the pictures of the documentation to")

// Update is set to write generated files.
var Update = flag.Bool("update", false, "write generated tables and files")

// MustWrite writes a file and the directories above it.
func MustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
