package builtin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLongAsks: work asks the client while its call waits for it, and no one once it is a task.
func TestLongAsks(t *testing.T) {
	for _, window := range []time.Duration{0, time.Nanosecond} {
		asked := 0
		env := &Env{Principal: "p", Runtime: &Runtime{}, Shell: ShellLimits{Window: window, Tasks: 1}}
		env.Elicit = func(context.Context, json.RawMessage) (json.RawMessage, error) {
			asked++
			return json.RawMessage(`{"action":"accept"}`), nil
		}
		answered, ended := make(chan struct{}), make(chan error)
		task := window > 0
		r, err := env.Long(t.Context(), "the call", func(ctx context.Context, own *Env) (Result, error) {
			if task {
				<-answered
			}
			_, err := own.Elicit(ctx, nil)
			if task {
				ended <- err
			}
			return Result{}, err
		})
		if err != nil || strings.Contains(r.Text, "background task") != task {
			t.Fatalf("window %s: %+v, %v", window, r, err)
		}
		want := 1
		if task {
			close(answered)
			if want, err = 0, <-ended; err == nil {
				t.Error("a task was told that someone was asked")
			}
		}
		if asked != want {
			t.Errorf("window %s: asked %d times, want %d", window, asked, want)
		}
	}
}

// TestLongWithoutRoom: work that cannot become a task, because too many run, stays with its call, which can still ask.
func TestLongWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := &Env{Principal: "p", Runtime: &Runtime{}, Shell: ShellLimits{Window: time.Second, Tasks: 1}}
		env.Elicit = func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
		if _, err := env.Runtime.tasks.Reserve(env.taskSpec(callKind, "another call")); err != nil {
			t.Fatal(err)
		}
		r, err := env.Long(t.Context(), "the call", func(ctx context.Context, own *Env) (Result, error) {
			time.Sleep(time.Minute) // in the bubble's time
			_, err := own.Elicit(ctx, nil)
			return Result{Text: "done"}, err
		})
		if err != nil || r.Text != "done" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}
