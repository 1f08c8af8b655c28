package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// A process that another one traces cannot be compared: it is refused where that is asked for, and runs else.
func TestExecTraced(t *testing.T) {
	f := newFixture(t)
	f.victim(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		for _, confirm := range []bool{false, true} {
			var why string
			judge := func(_ context.Context, e *execgate.Exec) execgate.Verdict {
				v := execgate.Verdict{Allow: true}
				if filepath.Base(e.Path) == "victim" {
					v.Confirm, v.Failed = confirm, func(s string) { why = s }
				}
				return v
			}
			r := runGated(t, s, f, judge, "$ATTACK tracing ./victim made")
			_, err := os.Lstat(f.ws + "/made")
			if confirm && (!strings.Contains(why, "another program traces the process") || err == nil) || !confirm && (why != "" || err != nil) {
				t.Errorf("confirm %v: %q, %v; said %q", confirm, why, err, r.output)
			}
			os.Remove(f.ws + "/made")
		}
	})
}

// A program that wants a listener of its own gets none, and the judge learns of it.
func TestExecNested(t *testing.T) {
	f := newFixture(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		r := &refuser{}
		got := runGated(t, s, f, r.judge, "$ATTACK listen; /bin/echo on")
		if !strings.Contains(got.output, unix.EBUSY.Error()) || !strings.HasSuffix(got.output, "on\n") {
			t.Errorf("said %q", got.output)
		}
		if !slices.ContainsFunc(r.seen, func(e *execgate.Exec) bool {
			return e.Unreadable != nil && strings.Contains(e.Unreadable.Error(), "seccomp user notification")
		}) {
			t.Error("the judge was told nothing")
		}
	})
}

// When the host is stopped in the middle, and then killed, nothing survives.
func TestExecHostKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a host for each backend")
	}
	f := newFixture(t)
	f.victim(t)
	for _, b := range backendsUnderTest() {
		t.Run(string(b), func(t *testing.T) {
			if _, err := Start(t.Context(), Policy{Writable: []string{f.ws}},
				Options{Backends: []Backend{b}}); err != nil {
				t.Skip(err)
			}
			d := duration()
			os.Remove(f.ws + "/on")
			cmd := exec.Command(os.Args[0], judgingArg, string(b), f.ws, d)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, _ := bufio.NewReader(out).ReadString('\n'); line != "asked\n" {
				t.Fatalf("the host says %q", line)
			}
			waitFor(t, "the other process", func() bool { return sleepers(t, d) == 1 })
			cmd.Process.Signal(unix.SIGSTOP) // a host that is stopped lets nothing start, and what waits can be killed
			waitFor(t, "the host to stop", func() bool { stat, err := proc.StatOf(cmd.Process.Pid); return err == nil && stat.State == "T" })
			if n := sleepers(t, d); n != 1 {
				t.Errorf("%d other processes are there while the host is stopped", n)
			}
			cmd.Process.Kill()
			cmd.Wait()
			waitFor(t, "the end of all", func() bool { return sleepers(t, d) == 0 })
			for _, name := range []string{"held", "on"} {
				if _, err := os.Lstat(filepath.Join(f.ws, name)); err == nil {
					text, _ := os.ReadFile(filepath.Join(f.ws, name))
					t.Errorf("%s was made: %s", name, text)
				}
			}
		})
	}
}

// judgingArg makes the test binary a host that asks about one program for ever, and prints "asked".
const judgingArg = "__judging"

func judgingHost(b Backend, ws, duration string) {
	s, err := Start(context.Background(), Policy{Writable: []string{ws}, Execs: true}, Options{Backends: []Backend{b}})
	if err != nil {
		fmt.Println(err)
		return
	}
	g := execgate.New()
	g.Judge(func(ctx context.Context, e *execgate.Exec) execgate.Verdict {
		if filepath.Base(e.Path) == "victim" {
			fmt.Println("asked")
			<-ctx.Done()
		}
		return execgate.Verdict{Allow: true}
	})
	script := "setsid sleep " + duration + " & ./victim held; echo $? > on"
	if _, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", script}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Execs: g}); err != nil {
		fmt.Println(err)
		return
	}
	select {}
}

// BenchmarkExec tells what one program costs that a shell starts.
func BenchmarkExec(b *testing.B) {
	f := newFixture(b)
	f.victim(b)
	const many = `i=0; while [ $i -lt $N ]; do /bin/true; i=$((i+1)); done`
	for _, c := range []struct {
		name, script string
		gate         bool
		confirm      bool
	}{
		{"without", many, false, false}, {"allowed", many, true, false}, {"confirmed", many, true, true},
		{"missed", `exec $ATTACK missing $N`, true, false}, {"missed without", `exec $ATTACK missing $N`, false, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := f.policy()
			p.Execs = c.gate
			s, err := Start(b.Context(), p, Options{Backends: []Backend{Namespaces}})
			if err != nil {
				b.Skip(err)
			}
			defer s.Close()
			r := newRefuser(b, f.ws+"/victim")
			r.confirm = c.confirm
			script := fmt.Sprintf("N=%d; %s", b.N, c.script)
			begun := processorTime(b)
			defer func() { b.ReportMetric(float64(processorTime(b)-begun)/float64(b.N), "host-ns/op") }()
			if c.gate {
				runGated(b, s, f, r.judge, script)
			} else {
				runIn(b, s, f.ws, f.env, "/bin/bash", "-c", script)
			}
		})
	}
}

// processorTime is what this process has had of the processors, which says more than the time where others run.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
