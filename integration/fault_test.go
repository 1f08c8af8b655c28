//go:build linux

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
)

// The tests whose names begin with TestFault break what a host stands on and look at what is left: no torn file, no acknowledged write
// lost, no process, no temporary file. They run in a short form; -long runs them as long as a night's soak would be worth.

// A ground is where a host of a fault test works: a root, a home and a state directory of its own.
type ground struct {
	t               *testing.T
	ws, home, state string
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{t: t, ws: filepath.Join(tempDir(t), "ws"), home: tempDir(t)}
	g.state = filepath.Join(g.home, "state", "toolhost")
	if err := os.Mkdir(g.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	return g
}

// A session is a host that runs on a ground, and one conversation with it.
type session struct {
	*host
	t   *testing.T
	ctx context.Context
}

// start starts a host, which ends with the test if not before.
func (g *ground) start(s setting, flags ...string) *session {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	g.t.Cleanup(cancel)
	h, err := startHost(ctx, s, g.ws, cleanEnv(g.home), append([]string{"--root", g.ws, "--state-dir", g.state}, flags...)...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = h.cmd.Process.Kill() })
	return &session{h, g.t, ctx}
}

var (
	stdioModern = setting{"stdio", client.Modern}
	httpModern  = setting{"http", client.Modern}
	httpLegacy  = setting{"http", client.Legacy}
)

// args are the arguments of a call.
type args map[string]any

func (a args) String() string {
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err) // the tests make them of strings and numbers
	}
	return string(raw)
}

// conversation is the _meta that tells a conversation from the others of a connection.
func conversation(name string) map[string]any { return map[string]any{"threadId": name} }

// call calls a tool and returns its text. A tool's error fails the test.
func (s *session) call(tool string, a args) string {
	s.t.Helper()
	text, failed := s.try(tool, a)
	if failed {
		s.t.Fatalf("%s %.200s: %s", tool, a, text)
	}
	return text
}

// refused calls a tool that has to answer with an error saying one of the words.
func (s *session) refused(tool string, a args, words ...string) {
	s.t.Helper()
	text, failed := s.try(tool, a)
	for _, w := range words {
		if failed && strings.Contains(text, w) {
			return
		}
	}
	s.t.Errorf("%s %.200s: error %v, which says nothing of %q:\n%.600s", tool, a, failed, words, text)
}

// try calls a tool and returns its text, and whether that is an error.
func (s *session) try(tool string, a args) (string, bool) {
	s.t.Helper()
	r, err := s.Call(s.ctx, tool, a.String())
	if err != nil {
		s.t.Fatalf("%s %.200s: %v\n%s", tool, a, err, s.stderr)
	}
	return r.Text(), r.IsError
}

// end ends the host as its client would.
func (s *session) end() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Errorf("%v\n%s", err, s.stderr)
	}
}

// kill ends the host with SIGKILL and waits for its end.
func (s *session) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Error(err)
	}
	if s.web {
		<-s.gone
	} else {
		_ = s.Close() // it tells of the signal
	}
}

// run runs another command of the binary on the ground.
func (g *ground) run(command string, flags ...string) ([]byte, error) {
	cmd := exec.Command(binary, append([]string{command, "--state-dir", g.state}, flags...)...)
	cmd.Dir, cmd.Env = g.ws, cleanEnv(g.home)
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", command, err, out, &stderr)
	}
	return out, err
}

// path is that of a file in the root.
func (g *ground) path(name string) string { return filepath.Join(g.ws, name) }

// put writes a file in the root.
func (g *ground) put(name, content string) string {
	g.t.Helper()
	path := g.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// get reads a file.
func get(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// tidy holds that nothing is left of writes that ended. No host may run. A process that the host was just starting when it was killed
// holds its locks for a moment longer, so that the next start can find its owner alive; then it takes one more.
func (g *ground) tidy() {
	g.t.Helper()
	eventually(g.t, func() string {
		left := g.left()
		if len(left) == 0 {
			return ""
		}
		if _, err := g.run("history", "--path", g.state); err != nil {
			g.t.Error(err)
		}
		return fmt.Sprintf("left behind: %q", left)
	})
}

// left are temporary files and other traces of writes under way.
func (g *ground) left() []string { return append(leftovers(g.t, g.ws), unfinished(g.t, g.state)...) }
