//go:build unix

package hook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/guard/settings"
)

// patience bounds the wait for what must happen at once.
const patience = time.Minute

// A lifeline is a FIFO that processes of a hook hold open for writing: its end is
// the proof that none of them is left.
type lifeline struct {
	path string
	*os.File
}

func newLifeline(t *testing.T) lifeline {
	t.Helper()
	path := filepath.Join(t.TempDir(), "life")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.SetReadDeadline(time.Now().Add(patience))
	t.Cleanup(func() { f.Close() })
	return lifeline{path, f}
}

// rest returns what was written, when no writer is left.
func (l lifeline) rest(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(l)
	if err != nil {
		t.Errorf("a process of the hook still runs: %v", err)
	}
	return string(text)
}

// first waits until a process of the hook has written a line. It opens the FIFO
// once more, because that waits for a writer.
func (l lifeline) first(t *testing.T) {
	t.Helper()
	f, err := os.Open(l.path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := bufio.NewReader(f).ReadString('\n'); err != nil {
		t.Error(err)
	}
}

// A hook that has answered takes along what it started, even what holds its
// output open or has left the shell.
func TestNothingOfTheGroupSurvives(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]string{
		"in the background":        "sleep 1000 &",
		"away from the output":     "sleep 1000 >/dev/null 2>&1 </dev/null &",
		"deaf to signals":          "(trap '' TERM HUP INT; sleep 1000; sleep 1000) &",
		"an orphan":                "(sleep 1000 & exit) &",
		"several, with a pipeline": "sleep 1000 | cat & sleep 1000 &",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			life := newLifeline(t)
			hook := "exec 5>" + life.path + "; echo begun >&5; " + leave + " echo no >&2; exit 2"
			got := newRunner(t, Config{}).Pre(t.Context(), commands(hook), bashCall("ls"))
			if got.Action != Deny || got.Reason != "no" {
				t.Errorf("got %+v, want its refusal", got)
			}
			if text := life.rest(t); text != "begun\n" {
				t.Errorf("the hook wrote %q", text)
			}
		})
	}
}

// Output that comes after the shell's end is still an answer.
func TestLateOutput(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("bash is not installed")
	}
	for name, tt := range map[string]struct {
		hook     string
		response time.Duration
		want     action
	}{
		"late":              {"exec > >(cat); echo '" + permission("deny") + "'", patience, Deny},
		"in parts":          {"exec > >(echo '{'; cat); echo '" + strings.TrimPrefix(permission("deny"), "{") + "'", patience, Deny},
		"and a holder":      {"sleep 1000 & exec > >(cat); echo '" + permission("deny") + "'", time.Hour, Deny},
		"none, by a holder": {"sleep 1000 &", 0, none},
		"none, after text":  {"echo text; sleep 1000 &", 0, none},
		"exit 2, a holder":  {"sleep 1000 & exit 2", time.Hour, Deny},
		"errors are held":   {"sleep 1000 >/dev/null &", time.Hour, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, Config{})
			r.drain, r.response = 0, tt.response // as on a machine on which nothing is done within a tenth of a second
			if got := r.Pre(t.Context(), commands(tt.hook), bashCall("ls")); got.Action != tt.want {
				t.Errorf("got %+v, want %v", got, tt.want)
			}
		})
	}
}

// A call that is cancelled ends its hooks, and does not go on.
func TestCancel(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		life.first(t)
		cancel()
	}()
	hook := "exec 5>" + life.path + "; echo begun >&5; sleep 1000"
	got := newRunner(t, Config{}).Pre(ctx, commands(hook, "true"), bashCall("ls"))
	if want := (Decision{Action: Deny, Reason: "The call was cancelled while its hooks ran."}); !cmp.Equal(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	life.rest(t)
}

func TestCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := newRunner(t, Config{}).Pre(ctx, commands("true"), bashCall("ls")); got.Action != Deny {
		t.Errorf("got %+v, want a refusal", got)
	}
	after := newRunner(t, Config{}).Post(ctx, commands("true"), bashCall("ls"), nil, 0)
	if len(after.Context) != 1 || !strings.Contains(after.Context[0], "because the call was cancelled") {
		t.Errorf("got %+v, want context", after)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	h := command("exec 5>" + life.path + "; trap '' TERM; sleep 1000 & wait; sleep 1000")
	h.Timeout = 50 * time.Millisecond
	set := []settings.HookMatcher{at(1, "", h)}
	got := newRunner(t, Config{}).Pre(t.Context(), strict(set), bashCall("ls"))
	if got.Action != Deny || !strings.Contains(got.Reason, "no answer within 50ms") {
		t.Errorf("got %+v, want a refusal", got)
	}
	life.rest(t)
	after := newRunner(t, Config{}).Post(t.Context(), set, bashCall("ls"), nil, 0)
	if after.Block || len(after.Context) != 1 || !strings.Contains(after.Context[0], "no answer within 50ms") {
		t.Errorf("got %+v, want context", after)
	}
	life.rest(t)
}

// stuck is a process that ends when it is killed.
type stuck struct {
	killed  chan struct{}
	waitErr error
	killErr error
}

func (s *stuck) Wait() (int, error) {
	<-s.killed
	return 137, s.waitErr
}

func (s *stuck) Kill() ([]string, error) {
	close(s.killed)
	return nil, s.killErr
}

// A hook without a time-out of its own has that of the settings.
func TestDefaultTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Dir: "/", Start: func(context.Context, Spec) (Process, error) { return &stuck{killed: make(chan struct{})}, nil }})
		begun := time.Now()
		got := r.Pre(t.Context(), strict(commands("x")), bashCall("ls"))
		if d := time.Since(begun); d != settings.DefaultHookTimeout || got.Action != Deny {
			t.Errorf("got %+v after %v, want a refusal after %v", got, d, settings.DefaultHookTimeout)
		}
	})
}

// The starter gets all it needs, and its errors are told.
func TestStart(t *testing.T) {
	t.Parallel()
	var got Spec
	lost := errors.New("the supervisor was killed")
	r := newRunner(t, Config{Start: func(_ context.Context, s Spec) (Process, error) {
		got = s
		p := &stuck{killed: make(chan struct{}), waitErr: lost, killErr: lost}
		close(p.killed)
		return &ended{p}, nil
	}})
	r.env = environ([]string{"A=1"}, r.dir)
	d := r.Pre(t.Context(), commands("guard --now"), bashCall("ls"))
	if d.Action != Deny || !strings.Contains(d.Reason, lost.Error()) {
		t.Errorf("got %+v, want a refusal because of %v", d, lost)
	}
	shell, err := findShell()
	if err != nil {
		t.Fatal(err)
	}
	if want := "[" + shell + " -c guard --now]"; fmt.Sprint(got.Argv) != want || got.Dir != r.dir || len(got.Files) != 3 ||
		got.Env[0] != "A=1" {
		t.Errorf("started %+v", got)
	}
}

// ended is a process that has ended by itself.
type ended struct{ *stuck }

func (e *ended) Kill() ([]string, error) { return nil, e.killErr }

// Descriptors do not pile up.
func TestDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted in /proc")
	}
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	r := newRunner(t, Config{})
	r.Pre(t.Context(), commands("true"), bashCall("ls"))
	before := count()
	for range 20 {
		r.Pre(t.Context(), commands("cat", "exit 1"), bashCall("ls"))
		New(Config{Dir: "/no/such/project", Start: StartPlain}).Pre(t.Context(), commands("cat"), bashCall("ls"))
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}
