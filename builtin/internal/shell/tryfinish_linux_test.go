package shell

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/integration/testenv"
)

// concluding is a process on the host that can be concluded, as one of a sandbox.
type concluding struct {
	known
	count *atomic.Int64 // of those that were
}

// startConcluding returns a Starter of such processes, and how many were concluded.
func startConcluding() (supervise.Starter, *atomic.Int64) {
	var count atomic.Int64
	return func(s supervise.Spec) (supervise.Process, error) {
		p, err := startKnown(s)
		if err != nil {
			return nil, err
		}
		return concluding{p.(known), &count}, nil
	}, &count
}

// TryFinish implements [supervise.Finisher].
func (p concluding) TryFinish() (files int, ok bool) {
	leader := p.leader()
	if leader == 0 || children(leader) != "" {
		return 0, false
	}
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", leader))
	syscall.Kill(leader, syscall.SIGKILL)
	p.count.Add(1)
	go p.Kill()
	return len(open), true
}

// TestRunFinished: commands do the same where their shells are ended at their last
// word.
func TestRunFinished(t *testing.T) {
	testenv.NotShort(t, "runs the table of TestRun")
	start, count := startConcluding()
	testRun(t, start)
	if count.Load() == 0 {
		t.Error("no shell was concluded")
	}
}

// TestTryFinish: a shell is ended at its last word if nothing else is left of the
// command, and then only.
func TestTryFinish(t *testing.T) {
	start, count := startConcluding()
	r := newRunner(t, Config{InheritPath: true, Start: start})
	for text, want := range map[string]bool{
		"true":                              true,
		"false":                             true,
		"exit 3":                            true,
		"set -eux; false":                   true,
		"sleep 0.001":                       true,
		"trap - EXIT":                       true,
		"trap 'echo x' HUP":                 true,
		"trap 'echo bye' EXIT":              false,
		"trap : DEBUG":                      false,
		"exec true":                         false,
		"f() { exit; }; f":                  false,
		"sleep 1000 &":                      false,
		"sleep 1000 >/dev/null 2>&1 <&1 &":  false,
		"(setsid sleep 1000 &) >/dev/null":  false,
		"exec > >(cat)":                     false,
		"kill -9 $$":                        false,
		"builtin() { :; }":                  false,
		"echo /; echo //0 >&18; exec 17<&-": true, // closes nothing of ours
	} {
		t.Run(text, func(t *testing.T) {
			before := count.Load()
			run(t, r, Command{Text: text})
			if got := count.Load() == before+1; got != want {
				t.Errorf("concluded %v, want %v", got, want)
			}
		})
	}
}

// TestForgedLastWord: a command that says the last word itself ends itself, with what
// it started, or nothing.
func TestForgedLastWord(t *testing.T) {
	const find = `for f in /proc/$$/fd/*; do n=${f##*/}; [ -S $f ] && word=$n; [ -p $f ] && [ $n -gt 9 ] && [ $n -lt 20 ] && report=$n; done; `
	const forge = `printf '/usr\n//5\n' >&$report; `
	start, _ := startConcluding()
	r := newRunner(t, Config{InheritPath: true, Start: start})
	tag := newTag()
	for text, want := range map[string]Result{
		"echo >&$word; sleep 0.05; echo on":                      {Shown: said("on\n"), Dir: "/"},
		"eval \"exec $word>&- $report>&-\"; sleep 0.05; echo on": {Shown: said("on\n")},
		forge + "echo on": {Shown: said("on\n"), ExitCode: 0, Dir: "/usr"},
		forge + "echo on; echo >&$word; while :; do :; done":      {Shown: said("on\n"), ExitCode: 5, Dir: "/usr"},
		forge + "sleep " + tag + " & echo >&$word; echo on; exit": {Shown: said("on\n"), ExitCode: 0, Dir: "/usr", Left: 1},
	} {
		got := run(t, r, Command{Text: find + text, Timeout: 20 * time.Second})
		got.Text, _, _ = strings.Cut(got.Text, "bash: ") // it misses the descriptors that were closed
		if diff := cmp.Diff(&want, got, ignore); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		checkGone(t, tag)
	}
}
