package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/testenv"
)

func TestNothingSurvives(t *testing.T) {
	for name, test := range map[string]struct {
		after   string
		timeout time.Duration
		cancel  bool
		check   func(*Result) bool
	}{
		"return":            {"true", time.Minute, false, func(r *Result) bool { return r.Left >= 8 && r.ExitCode == 0 && r.Problem == nil }},
		"exit":              {"exit 7", time.Minute, false, func(r *Result) bool { return r.Left >= 8 && r.ExitCode == 7 }},
		"exec":              {"exec true", time.Minute, false, func(r *Result) bool { return r.Left >= 8 && r.ExitCode == 0 }},
		"kill itself":       {"kill -9 $$", time.Minute, false, func(r *Result) bool { return r.Left >= 8 && r.Signal == "SIGKILL" }},
		"kill the group":    {"kill -9 0", time.Minute, false, func(r *Result) bool { return r.Signal == "SIGKILL" }},
		"time-out":          {"wait", time.Second, false, func(r *Result) bool { return r.TimedOut && !r.Cancelled }},
		"time-out ignored":  {"while :; do sleep 1; done", time.Second, false, func(r *Result) bool { return r.TimedOut && r.Signal == "SIGKILL" }},
		"cancel":            {"wait", time.Minute, true, func(r *Result) bool { return r.Cancelled && !r.TimedOut }},
		"stop supervisor":   {"kill -STOP $PPID; wait", time.Second, false, func(r *Result) bool { return r.TimedOut }},
		"signal supervisor": {"kill -TERM $PPID; kill -HUP $PPID; kill -INT $PPID; kill -QUIT $PPID; echo on", time.Minute, false, func(r *Result) bool { return strings.HasSuffix(r.Text, "on\n") && r.Problem == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the time-outs wait side by side
			r := newRunner(t, Config{InheritPath: true, Grace: 100 * time.Millisecond})
			tag := newTag()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := Command{Text: tree(tag) + test.after, Dir: "/", Timeout: test.timeout}
			if name == "time-out ignored" { // before "ready" is said: the time may be over right after it
				c.Text = strings.Replace(c.Text, "echo ready", "trap '' TERM; echo ready", 1)
			}
			if test.cancel {
				c.Output = func(string) { cancel() }
			}
			res, err := r.Run(ctx, c)
			for err == nil && test.timeout < time.Minute && !strings.Contains(res.Text, "ready") &&
				c.Timeout < 10*time.Minute {
				checkGone(t, tag) // a machine under load takes longer to start it all
				c.Timeout *= 2
				res, err = r.Run(ctx, c)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(res.Text, "ready") || !test.check(res) {
				t.Errorf("got %+v", res)
			}
			checkGone(t, tag)
		})
	}
}

// TestSupervisorKilled: the command kills the one that would end its children. Only
// what left the session and has an empty environment may escape, which the
// documentation says, so that process is not in this tree.
func TestSupervisorKilled(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	tag := newTag()
	text := fmt.Sprintf("sleep %[1]s & setsid sleep %[1]s & (setsid bash -c 'trap \"\" TERM; (setsid sleep %[1]s &)' &) \n"+
		"while [ $(grep -lz '^%[1]s$' /proc/[0-9]*/cmdline 2>/dev/null | wc -l) -lt 3 ]; do :; done\n"+
		"kill -9 $PPID; sleep %[1]s", tag)
	got := run(t, r, Command{Text: text})
	if got.Problem == nil || got.Signal != "SIGKILL" {
		t.Errorf("got %+v", got)
	}
	checkGone(t, tag)
}

func TestCloseEndsCommands(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	tag := newTag()
	running := make(chan struct{})
	ended := make(chan *Result)
	go func() {
		once := false
		res, err := r.Run(context.Background(), Command{Text: tree(tag) + "wait", Dir: "/", Output: func(string) {
			if !once {
				once = true
				close(running)
			}
		}})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	<-running
	go r.Close()
	if res := <-ended; !res.Cancelled {
		t.Errorf("got %+v", res)
	}
	checkGone(t, tag)
}

// TestServerKilled kills a server with SIGKILL in the middle of a command, and its
// whole process group with it.
func TestServerKilled(t *testing.T) {
	tag := newTag()
	server := exec.Command("/proc/self/exe")
	server.Env = append(os.Environ(), serverVariable+"="+tree(tag)+"wait")
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Errorf("the server said %q, %v", line, err)
	}
	if n := len(withTag(t, tag)); n < 8 {
		t.Errorf("only %d processes run", n)
	}
	syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
	server.Wait()
	// The supervisors work on their own now. They are what to wait for.
	for end := time.Now().Add(time.Minute); len(withTag(t, tag)) > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	checkGone(t, tag)
}

// TestBackgroundChildHoldsNothing: the call returns although a child keeps its
// output open, and says what it ended.
func TestBackgroundChildHoldsNothing(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	for text, left := range map[string]int{
		"sleep TAG & echo hi":                     1,
		"sleep TAG >/dev/null 2>&1 & echo hi":     1,
		"echo hi; (sleep TAG & sleep TAG &)":      2,
		"echo hi; (sleep TAG & sleep TAG &) &":    1, // which may be ended before it has started the others
		"echo hi; exec setsid -f sleep TAG":       1,
		"echo hi; nohup sleep TAG & disown; exit": 1,
		"echo hi; sleep 0.001 & wait":             0,
	} {
		tag := newTag()
		got := run(t, r, Command{Text: strings.ReplaceAll(text, "TAG", tag), Timeout: 30 * time.Second})
		if got.TimedOut || got.Left < left || left == 0 && got.Left != 0 || !strings.HasPrefix(got.Text, "hi\n") {
			t.Errorf("%q: %+v", text, got)
		}
		checkGone(t, tag)
	}
}

// TestZombieWithThreads: a process whose first thread has ended looks like a zombie
// while its other threads run.
func TestZombieWithThreads(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: no program at hand that ends its first thread")
	}
	r := newRunner(t, Config{InheritPath: true})
	tag := newTag()
	// The thread starts a child now and then; its argument shows whether it lives.
	text := `setsid python3 -c '
import ctypes, threading, subprocess, time, sys
def work():
    while True: subprocess.Popen(["sleep", sys.argv[1]]); time.sleep(0.01)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
' ` + tag + ` & while ! grep -q '^State:.Z' /proc/$!/status; do :; done; echo zombie`
	got := run(t, r, Command{Text: text, Timeout: 30 * time.Second})
	if got.Text != "zombie\n" || got.Left == 0 {
		t.Errorf("got %+v", got)
	}
	checkGone(t, tag)
}

// TestBackgroundFlood: a child that never stops writing does not hold the call.
func TestBackgroundFlood(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	got := run(t, r, Command{Text: "yes & yes >&2 & sleep 0.05; echo", Timeout: 30 * time.Second})
	if got.TimedOut || got.Left != 2 || len(got.Text) > DefaultHead+DefaultTail+100 {
		t.Errorf("got %d bytes, left %d, timed out %v", len(got.Text), got.Left, got.TimedOut)
	}
}

// TestWarmShellsKilled: a command kills the shells that wait for the next ones.
func TestWarmShellsKilled(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true, Start: startKnown})
	for range 3 {
		awaitWarm(t, r)
		r.mu.Lock()
		for _, s := range r.pool.warm {
			syscall.Kill(s.proc.(known).leader(), syscall.SIGKILL)
			<-s.proc.Done()
		}
		r.mu.Unlock()
		if got := run(t, r, Command{Text: "echo on"}); got.Text != "on\n" {
			t.Errorf("got %+v", got)
		}
	}
}

// TestWarmShellsStopped: a command stops the shells that wait for the next ones.
func TestWarmShellsStopped(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true, Start: startKnown})
	awaitWarm(t, r)
	r.mu.Lock()
	for _, s := range r.pool.warm {
		syscall.Kill(s.proc.(known).leader(), syscall.SIGSTOP)
	}
	r.mu.Unlock()
	if got := run(t, r, Command{Text: "echo on", Timeout: 30 * time.Second}); got.Text != "on\n" {
		t.Errorf("got %+v", got)
	}
}

// TestWarmShellsTakeNoOrders: a command cannot hand a script to the shells that wait for
// the next commands, where it would survive the end of its own.
func TestWarmShellsTakeNoOrders(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true, Start: startKnown})
	awaitWarm(t, r)
	tag := newTag()
	order := message("/", "sleep "+tag)
	var waiting []string
	r.mu.Lock()
	for _, s := range r.pool.warm {
		waiting = append(waiting, fmt.Sprintf("/proc/%d", s.proc.(known).leader()))
	}
	r.mu.Unlock()
	text := `for p in ` + strings.Join(waiting, " ") + `; do [ $p != /proc/$$ ] && { echo found; printf %s '` + order + `' > $p/fd/3; }; done 2>/dev/null
		for i in {1..50}; do grep -lz '^` + tag + `$' /proc/[0-9]*/cmdline && break; done 2>/dev/null`
	if got := run(t, r, Command{Text: text}); !strings.HasPrefix(got.Text, "found\n") ||
		strings.Contains(got.Text, "cmdline") {
		t.Errorf("got %+v", got)
	}
	checkGone(t, tag)
}

// TestHarden tries to reach a hardened server from its command as an ordinary
// user, with a control that shows that the attack works without.
func TestHarden(t *testing.T) {
	testenv.NeedsUsers(t)
	attack := "S=$(awk '{print $4}' /proc/$PPID/stat); { : > /proc/$S/fd/1 && echo forged; } 2>/dev/null; " +
		"{ : > /proc/$PPID/fd/4 && echo supervisor; } 2>/dev/null; " +
		"{ tr '\\0' '\\n' < /proc/$S/environ | grep -q . && echo environ; } 2>/dev/null; [ -e /proc/self/fd/97 ] && echo inherited; echo end"
	for _, harden := range []string{"", "1"} {
		server := exec.Command("/proc/self/exe")
		server.Env = append(os.Environ(), serverVariable+"="+attack, "SHELL_TEST_HARDEN="+harden)
		server.SysProcAttr = &syscall.SysProcAttr{}
		if os.Getuid() == 0 {
			server.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w.Chmod(0o666) // as if it belonged to the server's user
		server.Stdout = w
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		out, _ := io.ReadAll(r)
		r.Close()
		err = server.Wait()
		want := "forged\nenviron\nend\n"
		if harden != "" {
			want = "end\n"
		}
		if err != nil || string(out) != want {
			t.Errorf("harden=%q: got %q, %v; want %q", harden, out, err, want)
		}
	}
}

// blockedInRead reports whether a shell has come as far as waiting for its script. One without a process id has not: a
// signal to 0 would be to our own group.
func blockedInRead(s *shell) bool {
	p, ok := s.proc.(known)
	if !ok {
		return true
	}
	leader := p.leader()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(leader) + "/wchan")
	return leader > 0 && (err != nil || strings.Contains(string(b), "unix_stream"))
}

// awaitWarm waits until all shells that are started ahead wait for their script.
func awaitWarm(tb testing.TB, r *Runner) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		ready := len(r.pool.warm) == r.cfg.Warm && r.pool.coming == 0
		for _, s := range r.pool.warm {
			ready = ready && blockedInRead(s)
		}
		r.mu.Unlock()
		if ready {
			return
		}
	}
	tb.Fatal("the shells started ahead did not come up")
}

// spillTo returns a Spill into a temporary directory.
func spillTo(tb testing.TB) Spill {
	dir := tb.TempDir()
	return func() (io.WriteCloser, string, error) {
		f, err := os.CreateTemp(dir, "spill")
		if err != nil {
			return nil, "", err
		}
		return f, f.Name(), nil
	}
}
