//go:build slow && linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// aTree is how many processes of a tree carry the tag at least.
const aTree = 7

// TestFaultSurvivors ends hosts while commands run, and looks for what is left of those.
func TestFaultSurvivors(t *testing.T) {
	for _, contain := range []bool{true, false} {
		if contain && !host.Contained(t) {
			t.Log("not tried with a sandbox: this machine can contain nothing")
			continue
		}
		for _, e := range endings {
			for _, s := range []host.Setting{host.StdioModern, host.HTTPLegacy} {
				if s.Transport == "http" && !e.web {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/contained=%v", e.name, s.Transport, contain), func(t *testing.T) {
					t.Parallel()
					g := newGround(t)
					endWithTree(t, g.start(s, g.settings(contain)...), g, func(s *session) { e.end(t, s) })
				})
			}
		}
	}
}

// endWithTree ends a host while a tree grows in it, and looks for survivors.
func endWithTree(t *testing.T, s *session, g *ground, end func(*session)) {
	tag := host.NewTag()
	asked := time.Now()
	if _, err := s.Start(s.Ctx, "Bash", host.Args{"command": tree(tag)}.String(), nil); err != nil {
		t.Fatal(err)
	}
	host.Eventually(t, func() string {
		if _, err := os.Stat(g.Path("ready")); err != nil {
			return "the command is not ready: " + s.Stderr.String()
		}
		return ""
	})
	host.Eventually(t, func() string {
		if n := len(host.Tagged(t, tag)); n < aTree {
			return fmt.Sprintf("only %d processes run", n)
		}
		return ""
	})
	below := host.Descendants(t, s.Cmd.Process.Pid)
	watched := host.Watch(t, s.Cmd.Process.Pid)
	start, within := time.Now(), quick(time.Since(asked))
	end(s)
	took := watched.End(t)
	if !s.Web {
		_ = s.Close() // reaps it
	}
	host.Survivors(t, tag)
	gone(t, below) // warm shells and the sandbox as well
	all := time.Since(start)
	t.Logf("the host ended after %v, the last process after %v", took.Round(time.Millisecond),
		all.Round(time.Millisecond))
	if all > within {
		t.Errorf("it took %v until all had ended, more than %v", all, within)
	}
}

// TestFaultCancel cancels calls wherever they are: queued, running, and at a random moment, which can be any station. What was
// cancelled leaves nothing behind, and what comes after it works.
func TestFaultCancel(t *testing.T) {
	for _, setting := range host.Settings {
		t.Run(setting.String(), func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			g.Put("a.txt", "number 0\n")
			s := g.start(setting, "--metrics", ":0")
			s.MustCall("Read", host.Args{"file_path": "a.txt"})
			cancelCommands(t, g, s)
			cancelQueued(t, g, s, setting)
			cancelEdits(t, g, s)
			s.MustCall("Bash", host.Args{"command": "echo on"})
			s.End()
			g.Tidy()
		})
	}
}

// outcome waits for the answer to a call that was cancelled; it may be an answer, an error or none.
func (s *session) outcome(p *client.Pending, within time.Duration) (*client.Result, error) {
	ctx, cancel := context.WithTimeout(s.Ctx, within)
	defer cancel()
	return p.Result(ctx)
}

// cancelCommands cancels commands that run.
func cancelCommands(t *testing.T, g *ground, s *session) {
	tag := host.NewTag()
	p, err := s.Start(s.Ctx, "Bash", host.Args{"command": tree(tag)}.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	host.Eventually(t, func() string {
		if _, err := os.Stat(g.Path("ready")); err != nil {
			return "the command is not ready"
		}
		return ""
	})
	if err := s.Cancel(s.Ctx, p); err != nil {
		t.Fatal(err)
	}
	host.Survivors(t, tag)
}

// cancelQueued cancels a call that waits after another.
func cancelQueued(t *testing.T, g *ground, s *session, over host.Setting) {
	first, err := s.Start(s.Ctx, "Bash", host.Args{"command": "touch begun; until [ -e go ]; do sleep 0.01; done; echo first"}.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	host.Eventually(t, func() string {
		if _, err := os.Stat(g.Path("begun")); err != nil {
			return "the command has not begun"
		}
		return ""
	})
	queued, err := s.Start(s.Ctx, "Write", host.Args{"file_path": "never.txt", "content": "x"}.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	switch over {
	case host.HTTPModern: // the connection is closed, which the host sees in its own time, and not before the call has come
		s.waits(t)
		host.Must(t, s.Cancel(s.Ctx, queued))
		g.recorded("Write")
	case host.HTTPLegacy: // the two messages travel apart, and the later one may arrive first
		host.Eventually(t, func() string {
			host.Must(t, s.Cancel(s.Ctx, queued))
			r, err := s.outcome(queued, 50*time.Millisecond)
			if errors.Is(err, context.DeadlineExceeded) {
				return "the cancelled call is not answered"
			}
			if err == nil && !r.IsError {
				t.Errorf("the cancelled call was answered: %s", r.Text())
			}
			return ""
		})
	default:
		host.Must(t, s.Cancel(s.Ctx, queued))
		// The line that cancels has been read once a later request is answered.
		if _, err := s.Request(s.Ctx, "tools/list", nil); err != nil {
			t.Fatal(err)
		}
	}
	g.Put("go", "")
	if r, err := first.Result(s.Ctx); err != nil || !strings.Contains(r.Text(), "first") {
		t.Errorf("the call before a cancelled one: %v, %v", r, err)
	}
	s.MustCall("Bash", host.Args{"command": "true"}) // comes after it in the queue
	if _, err := os.Stat(g.Path("never.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cancelled call ran: %v", err)
	}
}

// waits waits until a call stands in the queue, by what a host that serves metrics tells.
func (s *session) waits(t *testing.T) {
	t.Helper()
	host.Eventually(t, func() string {
		if page := s.Metrics(t); !strings.Contains(page, "\ntoolhost_calls_waiting 1\n") {
			return "the call does not wait:\n" + page
		}
		return ""
	})
}

// recorded waits until a call of a tool is on record, which it is when it has ended.
func (g *ground) recorded(tool string) {
	g.T.Helper()
	host.Eventually(g.T, func() string {
		if log := host.Get(g.T, filepath.Join(g.State, "audit.jsonl")); !strings.Contains(log, `"tool":"`+tool+`"`) {
			return "no call of " + tool + " is on record:\n" + log
		}
		return ""
	})
}

// cancelEdits cancels edits at random moments. Each was made or was not, whole and once.
func cancelEdits(t *testing.T, g *ground, s *session) {
	n, cancelled := 0, 0
	for range samples.Rounds(25) {
		p, err := s.Start(s.Ctx, "Edit", host.Args{
			"file_path": "a.txt", "old_string": fmt.Sprintf("number %d\n", n), "new_string": fmt.Sprintf("number %d\n", n+1),
		}.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if rand.IntN(2) == 0 {
			time.Sleep(rand.N(time.Millisecond)) // any station
		}
		if err := s.Cancel(s.Ctx, p); err != nil {
			t.Fatal(err)
		}
		if s.Web {
			_, _ = s.outcome(p, host.Patience)
		}
		s.MustCall("Bash", host.Args{"command": "true"}) // exclusive: it waits for what runs
		var now int
		if _, err := fmt.Sscanf(host.Get(t, g.Path("a.txt")), "number %d\n", &now); err != nil {
			t.Fatal(err)
		}
		switch now {
		case n:
			cancelled++
		case n + 1:
			n++
		default:
			t.Fatalf("after number %d comes number %d", n, now)
		}
	}
	t.Logf("%d edits were cancelled in time, %d were made", cancelled, n)
}

// endings are the ways in which a host ends.
var endings = []struct {
	name string
	end  func(t *testing.T, s *session)
	web  bool
}{
	{"SIGTERM", func(t *testing.T, s *session) { signal(t, s, syscall.SIGTERM) }, true},
	{"SIGKILL", func(t *testing.T, s *session) { signal(t, s, syscall.SIGKILL) }, true},
	{"EOF", func(t *testing.T, s *session) { _ = s.CloseInput() }, false},
}

func signal(t *testing.T, s *session, sig os.Signal) {
	if err := s.Cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
}
