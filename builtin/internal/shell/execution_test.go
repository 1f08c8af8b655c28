//go:build unix

package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// start starts a command.
func start(t *testing.T, r *Runner, c Command) *Execution {
	t.Helper()
	c.Dir = "/"
	run, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestWaitAgain: a command goes on after the window, with its output and its timeout.
func TestWaitAgain(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	path := filepath.Join(t.TempDir(), "goes-on")
	reports := make(chan string, 100)
	run := start(t, r, Command{Text: "echo one; until [ -e " + path + " ]; do sleep 0.01; done; echo two; exit 4",
		Output: func(s string) { reports <- s }})
	ctx, cancel := context.WithCancel(t.Context())
	if run.Wait(ctx, time.Millisecond) {
		t.Fatal("the command is over")
	}
	cancel() // the call is over; the command is not
	run.EndProgress()
	for len(reports) > 0 {
		<-reports
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !run.Wait(t.Context(), 0) {
		t.Error("the command is not over")
	}
	res, err := run.Finish()
	run.Leave()
	if err != nil || res.Text != "one\ntwo\n" || res.ExitCode != 4 || res.Cancelled || run.Closed() {
		t.Errorf("got %+v, %v; closed: %v", res, err, run.Closed())
	}
	if len(reports) > 0 {
		t.Errorf("progress after its end: %q", <-reports)
	}
}

// TestWithinTheWindow: a command that ends, or is cancelled, within the window is over.
func TestWithinTheWindow(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true, Grace: 100 * time.Millisecond})
	for text, want := range map[string]bool{"echo hi; exit 2": false, "echo hi; sleep 1000": true} {
		ctx, cancel := context.WithCancel(t.Context())
		run := start(t, r, Command{Text: text, Output: func(string) {
			if want { // the other one may be about to end when it is reported
				cancel()
			}
		}})
		over := run.Wait(ctx, time.Minute)
		res, err := run.Finish()
		run.Leave()
		if cancel(); !over || err != nil || res.Cancelled != want || res.Text != "hi\n" {
			t.Errorf("%s: over: %v, %+v, %v", text, over, res, err)
		}
	}
}

// TestEndsWithRunner: closing the runner ends what goes on.
func TestEndsWithRunner(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	tag := newTag()
	ready := make(chan struct{}, 100)
	run := start(t, r, Command{Text: tree(tag) + "wait", Output: func(string) { ready <- struct{}{} }})
	go func() {
		<-ready
		r.Close()
	}()
	run.Wait(t.Context(), 0)
	res, err := run.Finish()
	run.Leave()
	if err != nil || !res.Cancelled || !run.Closed() {
		t.Errorf("got %+v, %v; closed: %v", res, err, run.Closed())
	}
	checkGone(t, tag)
	if _, err := r.Start(t.Context(), Command{Text: "true", Dir: "/"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Start after the end: %v", err)
	}
}
