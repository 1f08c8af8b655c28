//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestFewDescriptors: a shell needs some descriptors of its own. It gets them where
// it may take them, and says what is wrong where it may not.
func TestFewDescriptors(t *testing.T) {
	for _, test := range []struct {
		name, limit, text string
		want              string // output, or part of the error
		dir               string
	}{
		{"low", "ulimit -S -n 12", "cd /usr; echo on", "on\n", "/usr"},
		{"low for good", "ulimit -n 12", "echo on", "ulimit -H -n", ""},
		{"hardly any", "ulimit -n 6", "echo on", "", ""},
		{"enough for good", "ulimit -n 24", "cd /usr; echo on", "on\n", "/usr"},
		{"lowered by the command", "true", "cd /usr; ulimit -n 20; echo on", "on\n", "/usr"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRunner(t, Config{InheritPath: true, Warm: -1, Start: func(s supervise.Spec) (supervise.Process, error) {
				s.Argv = append([]string{"/bin/bash", "-c", test.limit + `; exec "$@"`, "bash"}, s.Argv...)
				return supervise.Start(s)
			}})
			got, err := r.Run(t.Context(), Command{Text: test.text, Dir: "/"})
			switch {
			case test.dir == "":
				if err == nil && (got.Text != "" || got.ExitCode == 0) || err != nil &&
					!strings.Contains(err.Error(), test.want) {
					t.Errorf("got %+v, %v; want an error with %q", got, err, test.want)
				}
			case err != nil || got.Text != test.want || got.Dir != test.dir:
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestPromisedShells: commands take the shells that are being started, each its
// own, and where one cannot be started the command that waits for it says why.
func TestPromisedShells(t *testing.T) {
	const commands = 12
	for _, broken := range []bool{false, true} {
		var mu sync.Mutex
		started := 0
		r := newRunner(t, Config{InheritPath: true, Start: func(s supervise.Spec) (supervise.Process, error) {
			mu.Lock()
			defer mu.Unlock()
			if started++; broken && started%3 == 0 {
				return nil, errors.New("no more processes")
			}
			return supervise.Start(s)
		}})
		var all sync.WaitGroup
		for range commands {
			all.Go(func() {
				got, err := r.Run(context.Background(), Command{Text: "echo $$", Dir: "/"})
				switch {
				case err != nil && (!broken || !strings.Contains(err.Error(), "no more processes")):
					t.Errorf("got %+v, %v", got, err)
				case err == nil && got.ExitCode != 0:
					t.Errorf("got %+v", got)
				}
			})
		}
		all.Wait()
		r.mu.Lock()
		if r.pool.coming < len(r.pool.waiting) {
			t.Errorf("%d wait for %d shells", len(r.pool.waiting), r.pool.coming)
		}
		r.mu.Unlock()
	}
}

// TestCloseWhileShellsCome: whichever process waits for a shell that is being started when the
// runner closes is told so.
func TestCloseWhileShellsCome(t *testing.T) {
	go1, begun := make(chan struct{}), make(chan struct{}, 10)
	r := newRunner(t, Config{InheritPath: true, Warm: 1, Start: func(s supervise.Spec) (supervise.Process, error) {
		begun <- struct{}{}
		<-go1
		return supervise.Start(s)
	}})
	<-begun
	failed := make(chan error)
	go func() {
		_, err := r.Run(context.Background(), Command{Text: "true", Dir: "/"})
		failed <- err
	}()
	for waits := 0; waits == 0; {
		r.mu.Lock()
		waits = len(r.pool.waiting)
		r.mu.Unlock()
	}
	go r.Close()
	<-r.ctx.Done()
	close(go1)
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestRenew holds that no command runs in a shell whose start had begun before the shells were renewed, be it ready or
// still coming.
func TestRenew(t *testing.T) {
	var renewals atomic.Int64
	r := newRunner(t, Config{InheritPath: true, Start: func(s supervise.Spec) (supervise.Process, error) {
		s.Env = append(slices.Clone(s.Env), fmt.Sprintf("RENEWAL=%d", renewals.Load()))
		return supervise.Start(s)
	}})
	for i := range int64(samples.Raced(20)) {
		renewals.Store(i)
		r.Renew()
		out, err := r.Run(context.Background(), Command{Text: "echo $RENEWAL", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.Text); got != fmt.Sprint(i) {
			t.Errorf("after %d renewals a command runs in a shell of %s", i, got)
		}
	}
}

func TestParseReport(t *testing.T) {
	for text, want := range map[string]finalDir{
		"/usr\n":                               {dir: "/usr"},
		"/a\nb\n":                              {dir: "/a\nb"},
		"/usr\n//3\n":                          {dir: "/usr", over: true, status: 3},
		"/a\nb\n//0\n" + ownTraps:              {dir: "/a\nb", over: true},
		"\n//1\n" + ownTraps:                   {gone: true, over: true, status: 1},
		"/usr\n//3":                            {dir: "/usr", status: 3}, // not whole yet
		"/usr\n//x\n":                          {dir: "/usr"},
		"/usr\n//0\ntrap -- 'echo bye' EXIT\n": {dir: "/usr"},
		"/usr\n//0\n" + ownTraps + "trap -- ':' DEBUG\n": {dir: "/usr"},
		"\n":                       {gone: true},
		"":                         {},
		"/usr":                     {}, // the shell was killed meanwhile
		"nonsense\n":               {},
		"too few descriptors!\n":   {refused: "too few descriptors"},
		"bash: line 1: cd: x\n!\n": {refused: "cd: x"},
	} {
		if got := parseReport(text); got != want {
			t.Errorf("parseReport(%q) = %+v, want %+v", text, got, want)
		}
	}
}

func TestMessage(t *testing.T) {
	for _, test := range [][3]string{
		{"/", "true", "A0000000008/.//true"},
		{"/a/", "x", "A0000000005/a//x"},
		{"/a", "", "A0000000004/a//"},
		{"/é", "x", "U0000000006/é//x"},
		{"/\xff", "x", "U0000000005/\xff//x"},
		{"/a", "a//b", "A0000000008/a//a//b"},
	} {
		if got := message(test[0], test[1]); got != test[2] {
			t.Errorf("message(%q, %q) = %q, want %q", test[0], test[1], got, test[2])
		}
	}
}
