package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// hostArg makes the test binary a host with one sandbox, that prints "ready"
// when a command runs in it, and then waits to be killed.
const hostArg = "__host"

func host(ws, duration string) {
	s, err := Start(context.Background(), Policy{Writable: []string{ws}}, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", "sleep " + duration + " & setsid sleep " + duration + " & trap '' TERM HUP INT; " +
		os.Args[0] + " " + attackArg + " detach " + duration + "; " + os.Args[0] + " " + attackArg +
		" deafen 1 & touch up; sleep " + duration}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		if _, err := os.Stat(ws + "/up"); err == nil {
			fmt.Println("ready")
			select {}
		}
		time.Sleep(time.Millisecond)
	}
}

// sleepers returns how many processes of this machine run "sleep duration", or another
// program that is given this to tell it by. One whose main thread has ended is known by
// its other threads.
func sleepers(t testing.TB, duration string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, l := range lines {
		b, err := os.ReadFile(l)
		if err == nil && (bytes.HasSuffix(b, []byte("sleep\x00"+duration+"\x00")) ||
			bytes.HasSuffix(b, []byte("leaderless\x00"+duration+"\x00"))) {
			found[strings.Split(l, "/")[2]] = true
		}
	}
	return len(found)
}

// waitFor polls until ok, for as long as something outside of this process may
// take.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

var durations atomic.Int64

// duration returns a number of seconds that no one else sleeps.
func duration() string { return fmt.Sprintf("%d%04d", 1_000_000+os.Getpid(), durations.Add(1)) }

func start1(t testing.TB, p Policy) *Sandbox {
	t.Helper()
	s, err := Start(context.Background(), p, Options{})
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// No one is told that all has ended when what would have ended it is gone, and no namespace went with it.
func TestKillWithoutGuardian(t *testing.T) {
	f := newFixture(t)
	s, err := Start(context.Background(), f.policy(), Options{Backends: []Backend{backendLandlock}})
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := duration()
	p, err := s.Spawn(Spec{Argv: []string{"/bin/sleep", d}})
	if err != nil {
		t.Fatal(err)
	}
	defer endSleepers(t, d)
	if err := p.(*supervised).initProcess.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Kill(); err == nil || !strings.Contains(err.Error(), "may still run") {
		t.Errorf("Kill() = %v with %d processes left", err, sleepers(t, d))
	}
}

// endSleepers ends what a test has left on purpose.
func endSleepers(t *testing.T, d string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if b, err := os.ReadFile(l); err == nil && bytes.HasSuffix(b, []byte("sleep\x00"+d+"\x00")) {
			if pid, err := strconv.Atoi(strings.Split(l, "/")[2]); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// Killing one command leaves the others alone.
func TestKillEndsOneTreeOnly(t *testing.T) {
	f := newFixture(t)
	s := start1(t, f.policy())
	one, other := duration(), duration()+"1"
	a, err := s.Spawn(Spec{Argv: []string{"/bin/sleep", one}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Spawn(Spec{Argv: []string{"/bin/sleep", other}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := a.Kill(); n != 1 || err != nil {
		t.Errorf("Kill() = %d, %v", n, err)
	}
	if n := sleepers(t, other); n != 1 {
		t.Errorf("%d of the other command are left, want 1", n)
	}
	b.Kill()
}

func TestCloseEndsEverything(t *testing.T) {
	f := newFixture(t)
	for backend, s := range available(t, f) {
		d := duration()
		var ps []Process
		for range 3 {
			p, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", "trap '' TERM; setsid sleep " + d +
				" & sleep " + d}})
			if err != nil {
				t.Fatal(err)
			}
			ps = append(ps, p)
		}
		waitFor(t, "the commands to run", func() bool { return sleepers(t, d) == 6 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := sleepers(t, d); n > 0 && s.Report().Enforces.Processes {
			t.Errorf("%s: %d processes are left", backend, n)
		}
		for _, p := range ps {
			if _, err := p.Wait(); err == nil && backend == Namespaces {
				t.Error("Wait knows how a command ended that was killed with the sandbox")
			}
			p.Kill()
		}
		if _, err := s.Spawn(Spec{Argv: []string{"/bin/true"}}); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: Spawn after Close: %v", backend, err)
		}
		if err := s.Deny(f.ws + "/src"); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: Deny after Close: %v", backend, err)
		}
	}
}

func TestHostKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSEGV} {
		t.Run(sig.String(), func(t *testing.T) {
			f := newFixture(t)
			start1(t, f.policy())
			d := duration()
			cmd := exec.Command(os.Args[0], hostArg, f.ws, d)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			if line != "ready\n" {
				t.Fatalf("the host says %q", line)
			}
			waitFor(t, "the processes to start", func() bool { return sleepers(t, d) == 4 })
			cmd.Process.Signal(sig)
			cmd.Wait()
			waitFor(t, "the processes to end", func() bool { return sleepers(t, d) == 0 })
		})
	}
}
