//go:build linux

package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// overUnix is a client whose every request goes to a Unix socket.
func overUnix(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
}

// shortDir is a directory of its owner's with a name short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "th")
	host.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestNetworkUnixSocket(t *testing.T) {
	g := host.NewGround(t)
	g.Put("a.txt", "content\n")
	path := filepath.Join(shortDir(t), "run", "s")
	s := g.Serve(overUnix(path), nil, "--listen", "unix:"+path)
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt"}, nil); !strings.Contains(r.Result.Text(), "content") {
		t.Errorf("%+v", r)
	}
	if out, err := exec.Command(host.Binary, "http", "--root", g.WS, "--state-dir", g.State, "--listen", "unix:"+
		path).CombinedOutput(); err == nil || !strings.Contains(string(out), "another server") {
		t.Errorf("a second server on the socket: %v %s", err, out)
	}
	token := s.Token
	s.Token = "wrong"
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt"}, nil); r.Status != http.StatusUnauthorized {
		t.Errorf("without the token: status %d", r.Status)
	}
	for name, want := range map[string]int{"any.example": 401, "": 401} {
		req, err := http.NewRequest(http.MethodPost, "http://localhost/mcp", nil)
		host.Must(t, err)
		req.Host = name
		resp, err := s.HTTP.Do(req)
		host.Must(t, err)
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("addressed as %q: status %d, want %d", name, resp.StatusCode, want)
		}
	}
	host.Must(t, s.Cmd.Process.Kill()) // the socket is left behind
	<-s.Gone
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	s = g.Serve(overUnix(path), nil, "--listen", "unix:"+path)
	if s.Token != token {
		t.Error("the token has changed")
	}
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt"}, nil); !strings.Contains(r.Result.Text(), "content") {
		t.Errorf("after a kill: %+v", r)
	}
	s.End()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is left behind")
	}
}

func TestNetworkRefusals(t *testing.T) {
	g := host.NewGround(t)
	for name, flags := range map[string][]string{
		"in the clear": {"--listen", "0.0.0.0:0"},
		"--tls-key":    {"--listen", "127.0.0.1:0", "--tls-cert", "x"},
		"--host":       {"--host", "https://example.com"},
		"scope key":    {"--scope-key", "=exact"},
	} {
		out, err := exec.Command(host.Binary, append([]string{"http", "--root", g.WS, "--state-dir", g.State}, flags...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), name) {
			t.Errorf("%q: %v %s", flags, err, out)
		}
	}
}

func TestNetworkBeyondLoopback(t *testing.T) {
	g := host.NewGround(t)
	g.Put("a.txt", "content\n")
	s := g.Serve(nil, nil, "--listen", "0.0.0.0:0", "--insecure-plain-http", "--host", "tools.example.com")
	if !strings.HasPrefix(s.URL, "http://tools.example.com:") {
		t.Errorf("it announces %s", s.URL)
	}
	s.URL = strings.Replace(s.URL, "tools.example.com", "127.0.0.1", 1)
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt"}, nil); !strings.Contains(r.Result.Text(), "content") {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]int{"tools.example.com": 401, "evil.example": 403} {
		req, err := http.NewRequest(http.MethodPost, s.URL, nil)
		host.Must(t, err)
		req.Host = name
		resp, err := s.HTTP.Do(req)
		host.Must(t, err)
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, want)
		}
	}
	s.End()
}

// systemd opens the socket, is told when clients are served, and no command hears of either.
func TestNetworkSystemd(t *testing.T) {
	testenv.NeedsNamespaces(t)
	g := host.NewGround(t)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	host.Must(t, err)
	defer l.Close()
	socket, err := l.File()
	host.Must(t, err)
	defer socket.Close()
	notes := filepath.Join(shortDir(t), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notes, Net: "unixgram"})
	host.Must(t, err)
	defer manager.Close()
	notices := make(chan string, 8)
	go listenTo(manager, notices)
	hear := func() string {
		select {
		case said := <-notices:
			return said
		case <-time.After(host.Patience):
			t.Fatal("systemd is told nothing more")
			return ""
		}
	}
	activate := func(cmd *exec.Cmd) {
		// LISTEN_PID names the process itself, which is known only once it runs.
		cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, cmd.Args...)
		cmd.Path = "/bin/sh"
		cmd.ExtraFiles = []*os.File{socket} // descriptor 3
		cmd.Env = append(cmd.Env, "LISTEN_FDS=1", "NOTIFY_SOCKET="+notes, "WATCHDOG_USEC=200000")
	}
	s := g.Serve(nil, activate, "--allow", "Bash")
	if got, want := s.URL, "http://"+l.Addr().String()+"/mcp"; got != want {
		t.Errorf("it announces %s, want %s", got, want)
	}
	if got := hear(); got != "READY=1" {
		t.Errorf("systemd is told %q", got)
	}
	if got := hear(); got != "WATCHDOG=1" {
		t.Errorf("systemd is told %q", got)
	}
	r := s.MustCall("Bash", host.Args{"command": "env | grep -E '^(LISTEN|NOTIFY|WATCHDOG)'; echo end"}, nil)
	if got := strings.TrimSpace(r.Result.Text()); got != "end" {
		t.Errorf("a command sees %s", got)
	}
	s.HTTP.CloseIdleConnections()
	s.End()
	for got := hear(); got != "STOPPING=1"; got = hear() {
		if got != "WATCHDOG=1" {
			t.Errorf("systemd is told %q", got)
		}
	}
	// Who connects between two servers waits for the next one.
	waiting := make(chan host.Reply, 1)
	go func() {
		r, err := s.Try(context.Background(), "Bash", host.Args{"command": "echo waited"}, nil)
		if err != nil {
			t.Error(err)
		}
		waiting <- r
	}()
	next := g.Serve(nil, activate, "--allow", "Bash")
	if r := <-waiting; !strings.Contains(r.Result.Text(), "waited") {
		t.Errorf("the client that waited got %+v", r)
	}
	next.End()
	if out, err := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" http --listen 127.0.0.1:0 --root "$1" 3</dev/null`, host.Binary, g.WS).CombinedOutput(); err == nil {
		t.Errorf("a file was taken for a socket: %s", out)
	}
}

// listenTo hands on what systemd is told, but for repetitions. It always listens, as systemd does: a few notices fill the queue.
func listenTo(manager *net.UnixConn, notices chan<- string) {
	b := make([]byte, 64)
	for last := ""; ; {
		n, err := manager.Read(b)
		if err != nil {
			return
		}
		if said := string(b[:n]); said != last {
			notices <- said
			last = said
		}
	}
}

func TestNetworkScopes(t *testing.T) {
	g := host.NewGround(t)
	g.Put("a.txt", "content\n")
	s := g.Serve(nil, nil, "--listen", "127.0.0.1:0", "--strict-scope", "--session-argument", "--scope-key",
		"chat=exact")
	read := host.Args{"file_path": "a.txt"}
	if r := s.MustCall("Read", read, nil); !r.Result.IsError ||
		!strings.Contains(r.Result.Text(), `"toolhost/session": "new"`) {
		t.Errorf("without a scope: %s", r.Result.Text())
	}
	if r := s.MustCall("Read", read, map[string]any{"chat": "1"}); r.Result.IsError {
		t.Errorf("with a key of its own: %s", r.Result.Text())
	}
	r := s.MustCall("Read", host.Args{"file_path": "a.txt", "session": "new"}, nil)
	var handed struct{ Session string }
	host.Must(t, json.Unmarshal(r.Result.Structured, &handed))
	if handed.Session == "" || !strings.Contains(r.Result.Text(), handed.Session) {
		t.Errorf("with the argument: %s", r.Result.Text())
	}
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt", "session": handed.Session}, nil); r.Result.IsError {
		t.Errorf("with the session it got: %s", r.Result.Text())
	}
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt", "session": "main"}, nil); !r.Result.IsError {
		t.Error("an invented session is taken")
	}
	s.End()
}

// The first SIGTERM lets what runs end; the second does not wait.
func TestNetworkSecondSignal(t *testing.T) {
	g := host.NewGround(t)
	tag := host.NewTag()
	s := g.Serve(nil, nil, "--listen", "127.0.0.1:0", "--allow", "Bash")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Try(context.Background(), "Bash", host.Args{"command": fmt.Sprintf("touch started; trap '' TERM; sleep 600 # %s", tag)}, nil) // it is cut off
	}()
	host.Eventually(t, func() string {
		if _, err := os.Stat(g.Path("started")); err != nil {
			return "the command has not started"
		}
		return ""
	})
	host.Must(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	host.Eventually(t, func() string { // the drain has begun
		resp, err := s.HTTP.Get(strings.TrimSuffix(s.URL, "/mcp") + "/readyz")
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return ""
		}
		return "it is ready still"
	})
	host.Must(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	if err := <-s.Gone; err == nil {
		t.Errorf("the second signal was waited out\n%s", s.Stderr)
	}
	<-ended
	host.Survivors(t, tag)
}
