package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Ground is where a host of a test works: a root, a home and a state directory of its own.
type Ground struct {
	T               *testing.T
	WS, Home, State string
}

// NewGround makes the directories of a ground.
func NewGround(t *testing.T) *Ground {
	t.Helper()
	g := &Ground{T: t, WS: filepath.Join(TempDir(t), "ws"), Home: TempDir(t)}
	g.State = filepath.Join(g.Home, "state", "toolhost")
	if err := os.Mkdir(g.WS, 0o755); err != nil {
		t.Fatal(err)
	}
	return g
}

// A Session is a host that runs on a ground, and one conversation with it.
type Session struct {
	*Host
	T   *testing.T
	Ctx context.Context
}

// Start starts a host, which ends with the test if not before.
func (g *Ground) Start(s Setting, flags ...string) *Session {
	g.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*Patience)
	g.T.Cleanup(cancel)
	h, err := StartHost(ctx, s, g.WS, CleanEnv(g.Home),
		append([]string{"--root", g.WS, "--state-dir", g.State}, flags...)...)
	if err != nil {
		g.T.Fatal(err)
	}
	started := &Session{h, g.T, ctx}
	g.T.Cleanup(func() {
		if h.Cmd.Process.Kill() == nil { // else its end was waited for
			started.awaitEnd() // before the directories in which it writes are removed
		}
	})
	return started
}

// Args are the arguments of a call.
type Args map[string]any

// String returns the arguments as JSON.
func (a Args) String() string {
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err) // the tests make them of strings and numbers
	}
	return string(raw)
}

// Conversation is the _meta that tells a conversation from the others of a connection.
func Conversation(name string) map[string]any { return map[string]any{"threadId": name} }

// MustCall calls a tool and returns its text. A tool's error fails the test.
func (s *Session) MustCall(tool string, a Args) string {
	s.T.Helper()
	text, failed := s.Try(tool, a)
	if failed {
		s.T.Fatalf("%s %.200s: %s", tool, a, text)
	}
	return text
}

// Refused calls a tool that has to answer with an error saying one of the words.
func (s *Session) Refused(tool string, a Args, words ...string) {
	s.T.Helper()
	text, failed := s.Try(tool, a)
	for _, w := range words {
		if failed && strings.Contains(text, w) {
			return
		}
	}
	s.T.Errorf("%s %.200s: error %v, which says nothing of %q:\n%.600s", tool, a, failed, words, text)
}

// Try calls a tool and returns its text, and whether that is an error.
func (s *Session) Try(tool string, a Args) (string, bool) {
	s.T.Helper()
	r, err := s.Call(s.Ctx, tool, a.String())
	if err != nil {
		s.T.Fatalf("%s %.200s: %v\n%s", tool, a, err, s.Stderr)
	}
	return r.Text(), r.IsError
}

// End ends the host as its client would.
func (s *Session) End() {
	s.T.Helper()
	if err := s.Stop(); err != nil {
		s.T.Errorf("%v\n%s", err, s.Stderr)
	}
}

// Kill ends the host with SIGKILL and waits for its end.
func (s *Session) Kill() {
	s.T.Helper()
	if err := s.Cmd.Process.Kill(); err != nil {
		s.T.Error(err)
	}
	s.awaitEnd()
}

// awaitEnd waits for the end of a host that was killed.
func (s *Session) awaitEnd() {
	if s.Web {
		<-s.gone
	} else {
		_ = s.Close() // it tells of the signal
	}
}

// Run runs another command of the binary on the ground.
func (g *Ground) Run(command string, flags ...string) ([]byte, error) {
	cmd := exec.Command(Binary, append([]string{command, "--state-dir", g.State}, flags...)...)
	cmd.Dir, cmd.Env = g.WS, CleanEnv(g.Home)
	var stderr LockedBuffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", command, err, out, &stderr)
	}
	return out, err
}

// Path is that of a file in the root.
func (g *Ground) Path(name string) string { return filepath.Join(g.WS, name) }

// Put writes a file in the root.
func (g *Ground) Put(name, content string) string {
	g.T.Helper()
	path := g.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		g.T.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		g.T.Fatal(err)
	}
	return path
}

// Get reads a file.
func Get(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Tidy holds that nothing is left of writes that ended. No host may run. A process that the host was just starting
// when it was killed holds its locks for a moment longer, so that the next start can find its owner alive; then it
// takes one more.
func (g *Ground) Tidy() {
	g.T.Helper()
	Eventually(g.T, func() string {
		left := g.Left()
		if len(left) == 0 {
			return ""
		}
		if _, err := g.Run("history", "--path", g.State); err != nil {
			g.T.Error(err)
		}
		return fmt.Sprintf("left behind: %q", left)
	})
}

// Left are temporary files and other traces of writes under way.
func (g *Ground) Left() []string { return append(Leftovers(g.T, g.WS), unfinished(g.T, g.State)...) }
