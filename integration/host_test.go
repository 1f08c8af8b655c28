package integration

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
)

// patience bounds every wait of these tests. It passes only when something is broken.
const patience = 60 * time.Second

// A host is a running toolhost with one client connected to it.
type host struct {
	*client.Conn
	cmd    *exec.Cmd
	web    bool
	stderr *lockedBuffer
	url    string
	token  string
	gone   chan error // receives the end of a web host
	ended  bool       // it was stopped
}

// A setting is a transport and an era.
type setting struct {
	transport string // stdio or http
	era       client.Era
}

func (s setting) String() string { return s.transport + "-" + string(s.era) }

// settings are all the ways in which a client can speak to a host.
var settings = []setting{
	{"stdio", client.Modern}, {"stdio", client.Legacy}, {"http", client.Modern}, {"http", client.Legacy},
}

// startHost starts a host in dir with the given flags and environment, and connects a client to it.
func startHost(ctx context.Context, s setting, dir string, env []string, flags ...string) (*host, error) {
	return startHostAs(ctx, func(*exec.Cmd) {}, s, dir, env, flags...)
}

// startHostAs is startHost after a last word about the process.
func startHostAs(ctx context.Context, as func(*exec.Cmd), s setting, dir string, env []string, flags ...string) (*host, error) {
	h := &host{stderr: &lockedBuffer{}, web: s.transport == "http"}
	args := append([]string{s.transport}, flags...)
	if h.web {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	h.cmd = exec.Command(binary, args...)
	h.cmd.Dir, h.cmd.Env, h.cmd.Stderr = dir, env, h.stderr
	as(h.cmd)
	var err error
	if h.web {
		err = h.connectWeb(ctx, s.era)
	} else {
		h.Conn, err = client.Stdio(ctx, s.era, h.cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the host: %w\n%s", err, h.stderr)
	}
	return h, nil
}

// connectWeb starts the host, reads its address and token from what it prints, and connects.
func (h *host) connectWeb(ctx context.Context, era client.Era) error {
	r, w := io.Pipe()
	h.cmd.Stderr = io.MultiWriter(h.stderr, w)
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.gone = make(chan error, 1)
	go func() {
		h.gone <- h.cmd.Wait()
		w.Close()
	}()
	var err error
	if h.url, h.token, err = client.Announced(r); err != nil {
		r.CloseWithError(err) // what else it writes is not waited for
		return err
	}
	h.Conn, err = client.HTTP(ctx, era, h.url, h.token)
	return err
}

// stop ends the host as its client would, and reports what it complained of.
func (h *host) stop() error {
	h.ended = true
	err := h.Close()
	if h.web {
		if e := h.cmd.Process.Signal(syscall.SIGTERM); e != nil {
			return e
		}
		err = <-h.gone
	}
	return err
}

// A lockedBuffer collects what a process writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// eventually waits until a condition holds, which it tells by an empty string.
func eventually(t testing.TB, missing func() string) {
	t.Helper()
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if last = missing(); last == "" {
			return
		}
	}
	t.Errorf("after %v: %s", patience, last)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cleanEnv is an environment in which nothing of the developer's own settings counts.
func cleanEnv(home string) []string {
	env := []string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CONFIG_HOME=" + filepath.Join(home, "config")}
	for _, name := range []string{"PATH", "TMPDIR", "LANG", "GORACE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
