package builtin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// TestLongAsks: work asks the client while its call waits for it, and no one once it is a task.
func TestLongAsks(t *testing.T) {
	for _, window := range []time.Duration{0, time.Nanosecond} {
		asked := 0
		env := &Env{Principal: "p", Runtime: &Runtime{tasks: shell.NewTasks(shell.TaskLimits{})}, Shell: ShellLimits{Window: window, Tasks: 1}}
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
