//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// tree is a command that starts processes which hold on to life in every way known, all carrying the tag, and then says so and waits:
// in the background, in a session of their own, orphaned twice over, deaf to signals, and stopped.
func tree(tag string) string {
	deaf := `trap "" TERM HUP INT; while :; do sleep 1; done`
	return strings.ReplaceAll(`export TAG=`+tag+`
sleep 1000 &
setsid sleep 1001 &
setsid -f sleep 1002
(setsid bash -c '(DEAF) & exec sleep 1003' TAG &)
( ( nohup bash -c 'DEAF' TAG >/dev/null 2>&1 & ) & )
bash -c 'kill -STOP $$' TAG &
touch ready
trap "" TERM
while :; do sleep 1; done`, "DEAF", deaf)
}

// aTree is how many processes of a tree carry the tag at least.
const aTree = 7

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

// quick is within how long a host and all it started must have ended once its client is gone, where it took the given time to begin
// them: on a machine that does much else both take theirs. How long it took is logged.
func quick(begun time.Duration) time.Duration { return 10*time.Second + 10*begun }

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

// settings are flags under which commands run in a sandbox or outside.
func (g *ground) settings(contain bool) []string {
	if contain {
		return nil
	}
	off := filepath.Join(g.Home, "off.json")
	if err := os.WriteFile(off, []byte(`{"sandbox": {"enabled": false}, "permissions": {"allow": ["Bash"]}}`), 0o600); err != nil {
		g.T.Fatal(err)
	}
	return []string{"--settings", off}
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
	host.Eventually(t, func() string { // warm shells and the sandbox as well
		for _, pid := range below {
			if parent, state := host.ParentOf(pid); parent != 0 && state != 'Z' {
				return fmt.Sprintf("process %d, which the host had started, still runs", pid)
			}
		}
		return ""
	})
	all := time.Since(start)
	t.Logf("the host ended after %v, the last process after %v", took.Round(time.Millisecond), all.Round(time.Millisecond))
	if all > within {
		t.Errorf("it took %v until all had ended, more than %v", all, within)
	}
}

// TestFaultClientDies kills the client, while something else holds the host's input and output open.
func TestFaultClientDies(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	fifo := filepath.Join(g.Home, "input")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_RDWR, 0) // stays open when the client is gone
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	tag := host.NewTag()
	script := `"$0" stdio --root "$1" --state-dir "$2" <"$3" >"$1/output" & echo $! >"$1/pid"; wait`
	parent := exec.Command("sh", "-c", script, host.Binary, g.WS, g.State, fifo)
	parent.Env = host.CleanEnv(g.Home)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Wait() }()
	defer func() { _ = parent.Process.Kill() }()
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Bash","arguments":%s,`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", host.Args{"command": tree(tag)}, client.Modern)
	asked := time.Now()
	if _, err := in.WriteString(request); err != nil {
		t.Fatal(err)
	}
	host.Eventually(t, func() string {
		if _, err := os.Stat(g.Path("ready")); err != nil {
			raw, _ := os.ReadFile(g.Path("output"))
			return "the command is not ready: " + string(raw)
		}
		return ""
	})
	var pid int
	if _, err := fmt.Sscan(host.Get(t, g.Path("pid")), &pid); err != nil {
		t.Fatal(err)
	}
	watched := host.Watch(t, pid)
	start, within := time.Now(), quick(time.Since(asked))
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	took := watched.End(t)
	host.Survivors(t, tag)
	t.Logf("the host ended after %v, the last process after %v", took.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	if took > within {
		t.Errorf("it took %v until the host had ended, more than %v", took, within)
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
	for range host.Rounds(25) {
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

// TestFaultDisconnect closes the connection in the middle of calls, at random moments. A stdio host ends with its client, an HTTP host
// goes on; in both an edit was made or was not.
func TestFaultDisconnect(t *testing.T) {
	g := newGround(t)
	n := 0
	g.Put("a.txt", "number 0\n")
	web := g.start(host.HTTPModern)
	for i := range host.Rounds(12) {
		var s *session
		if i%2 == 0 {
			s = g.start(host.StdioModern)
		} else {
			conn, err := client.HTTP(web.Ctx, client.Modern, web.URL, web.Token)
			host.Must(t, err)
			s = &session{&host.Session{Host: &host.Host{Conn: conn, Stderr: web.Stderr}, T: t, Ctx: web.Ctx}}
		}
		s.MustCall("Read", host.Args{"file_path": "a.txt"})
		for _, tool := range []string{"Edit", "Bash", "Grep"} {
			a := map[string]host.Args{
				"Edit": {"file_path": "a.txt", "old_string": fmt.Sprintf("number %d\n", n), "new_string": fmt.Sprintf("number %d\n", n+1)},
				"Bash": {"command": "sleep 0.01"},
				"Grep": {"pattern": "number"},
			}[tool]
			if _, err := s.Start(s.Ctx, tool, a.String(), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(rand.N(10 * time.Millisecond)) // any station
		if err := s.Close(); err != nil {
			t.Errorf("%v\n%s", err, s.Stderr)
		}
		if i%2 == 1 {
			web.MustCall("Bash", host.Args{"command": "true"}) // waits for what runs
		}
		var now int
		if _, err := fmt.Sscanf(host.Get(t, g.Path("a.txt")), "number %d\n", &now); err != nil || now != n && now != n+1 {
			t.Fatalf("after number %d comes number %d, %v", n, now, err)
		}
		n = now
	}
	web.End()
	g.Tidy()
}
