package sandbox

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A screen collects what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

func show(r io.Reader) *screen {
	s := &screen{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the screen shows a text.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(s.String(),
		text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the terminal does not show %q:\n%s", text, s)
		}
	}
}

// inTerminal starts a program in a terminal of a sandbox.
func inTerminal(t *testing.T, argv ...string) (*Terminal, Process, *screen) {
	t.Helper()
	f := newFixture(t)
	s, err := Start(context.Background(), f.policy(), Options{Backends: []Backend{Namespaces}})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { s.Close() })
	term, err := s.Terminal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.Close)
	shown := show(term.Master)
	p, err := s.Spawn(Spec{Argv: argv, Dir: f.ws, Env: append(f.env, "TERM=xterm"), Terminal: term})
	if err != nil {
		t.Fatal(err)
	}
	return term, p, shown
}

func TestTerminal(t *testing.T) {
	term, p, shown := inTerminal(t, "bash", "--norc", "--noprofile", "-i")
	typed := func(text string) {
		if _, err := term.Master.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.IoctlSetWinsize(fdOf(t, term), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}); err != nil {
		t.Fatal(err)
	}
	typed("tty; stty size; echo own-$(( $(ps -o tpgid= -p $$) == $$ ))-group\n")
	shown.await(t, "/dev/pts/0")
	shown.await(t, "33 77")
	shown.await(t, "own-1-group")
	typed("sh -c 'echo run\"\"ning; exec sleep 1000'\n")
	shown.await(t, "running")
	typed("\x03")
	typed("echo status=$?\n")
	shown.await(t, "status=130")
	typed("sh -c 'echo a\"\"gain; exec sleep 1001'\n")
	shown.await(t, "again")
	typed("\x1a")
	shown.await(t, "Stopped")
	typed("kill %1; (setsid sleep 1002 &) ; exit 7\nexit 7\n") // once more, if it still has the job when it is to end
	if status, err := p.Wait(); err != nil || status.ExitCode != 7 {
		t.Errorf("it ended with %+v, %v", status, err)
	}
	if n, err := p.Kill(); err != nil || n == 0 {
		t.Errorf("%d processes were left and ended, %v; the daemon is one", n, err)
	}
	if why := term.Failure(); why != "" {
		t.Error(why)
	}
	<-shown.done
}

// TestTerminalSuspend has the program itself suspended, which the host is told.
func TestTerminalSuspend(t *testing.T) {
	term, p, shown := inTerminal(t, "sh", "-c", "echo ready; read line; kill -TSTP $$; echo resumed; exit 3")
	shown.await(t, "ready")
	for range 2 {
		term.Master.WriteString("go\n")
	}
	<-term.Stopped()
	if strings.Contains(shown.String(), "resumed") {
		t.Error("it goes on while it is suspended")
	}
	term.Resume()
	if status, err := p.Wait(); err != nil || status.ExitCode != 3 {
		t.Errorf("it ended with %+v, %v", status, err)
	}
	shown.await(t, "resumed")
	if _, open := <-term.Stopped(); open {
		t.Error("it was suspended again")
	}
}

func TestTerminalFailure(t *testing.T) {
	term, p, _ := inTerminal(t, "/etc/passwd")
	if why := term.Failure(); why != "exec /etc/passwd: permission denied" {
		t.Errorf("got %q", why)
	}
	p.Wait()
	f := newFixture(t)
	s, err := Start(context.Background(), f.policy(), Options{Backends: []Backend{Namespaces}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if term, err = s.Terminal(); err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	if _, err := s.Spawn(Spec{Argv: []string{"no-such-program"}, Env: f.env, Terminal: term}); err == nil ||
		!strings.Contains(err.Error(), "no such program") {
		t.Errorf("got %v", err)
	}
}

func fdOf(t *testing.T, term *Terminal) int {
	t.Helper()
	fd, err := rawFD(term.Master)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestForward has a command reach a service of the host, and no other.
func TestForward(t *testing.T) {
	f := newFixture(t)
	f.serve(t)
	s, err := Start(context.Background(), f.policy(), Options{Backends: []Backend{Namespaces}})
	if err != nil {
		t.Skip(err)
	}
	defer s.Close()
	var port int
	for _, e := range f.env {
		if text, ok := strings.CutPrefix(e, "PORT="); ok {
			port, _ = strconv.Atoi(text)
		}
	}
	const read = `exec 3<>/dev/tcp/127.0.0.1/$PORT && cat <&3`
	if r := runIn(t, s, f.ws, f.env, "bash", "-c", read); strings.Contains(r.output, breach) {
		t.Error("the service is reached without being forwarded")
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := s.Forward(ctx, port); err != nil {
		t.Fatal(err)
	}
	if r := runIn(t, s, f.ws, f.env, "bash", "-c", read); !strings.Contains(r.output, breach) {
		t.Errorf("the service is not reached: %s", r.output)
	}
}
