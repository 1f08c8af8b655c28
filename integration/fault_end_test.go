//go:build linux

package integration

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
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
}

// quick is within how long a host and all it started must have ended once its client is gone, where it took the given time to begin
// them: on a machine that does much else both take theirs. How long it took is logged.
func quick(begun time.Duration) time.Duration { return 10*time.Second + 10*begun }

// TestFaultSurvivors ends hosts while commands run, and looks for what is left of those.
func TestFaultSurvivors(t *testing.T) {
	for _, contain := range []bool{true, false} {
		if contain && !contained(t) {
			t.Log("not tried with a sandbox: this machine can contain nothing")
			continue
		}
		for _, e := range endings {
			for _, s := range []setting{stdioModern, httpLegacy} {
				if s.transport == "http" && !e.web {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/contained=%v", e.name, s.transport, contain), func(t *testing.T) {
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
	off := filepath.Join(g.home, "off.json")
	if err := os.WriteFile(off, []byte(`{"sandbox": {"enabled": false}, "permissions": {"allow": ["Bash"]}}`), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return []string{"--settings", off}
}

// endWithTree ends a host while a tree grows in it, and looks for survivors.
func endWithTree(t *testing.T, s *session, g *ground, end func(*session)) {
	tag := newTag()
	asked := time.Now()
	if _, err := s.Start(s.ctx, "Bash", args{"command": tree(tag)}.String(), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if _, err := os.Stat(g.path("ready")); err != nil {
			return "the command is not ready: " + s.stderr.String()
		}
		return ""
	})
	eventually(t, func() string {
		if n := len(tagged(t, tag)); n < aTree {
			return fmt.Sprintf("only %d processes run", n)
		}
		return ""
	})
	below := descendants(t, s.cmd.Process.Pid)
	host := watch(t, s.cmd.Process.Pid)
	start, within := time.Now(), quick(time.Since(asked))
	end(s)
	took := host.end(t)
	if !s.web {
		_ = s.Close() // reaps it
	}
	survivors(t, tag)
	eventually(t, func() string { // warm shells and the sandbox as well
		for _, pid := range below {
			if parent, state := parentOf(pid); parent != 0 && state != 'Z' {
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
	fifo := filepath.Join(g.home, "input")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_RDWR, 0) // stays open when the client is gone
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	tag := newTag()
	script := `"$0" stdio --root "$1" --state-dir "$2" <"$3" >"$1/output" & echo $! >"$1/pid"; wait`
	parent := exec.Command("sh", "-c", script, binary, g.ws, g.state, fifo)
	parent.Env = cleanEnv(g.home)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Wait() }()
	defer func() { _ = parent.Process.Kill() }()
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Bash","arguments":%s,`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", args{"command": tree(tag)}, client.Modern)
	asked := time.Now()
	if _, err := in.WriteString(request); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if _, err := os.Stat(g.path("ready")); err != nil {
			raw, _ := os.ReadFile(g.path("output"))
			return "the command is not ready: " + string(raw)
		}
		return ""
	})
	var pid int
	if _, err := fmt.Sscan(get(t, g.path("pid")), &pid); err != nil {
		t.Fatal(err)
	}
	host := watch(t, pid)
	start, within := time.Now(), quick(time.Since(asked))
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	took := host.end(t)
	survivors(t, tag)
	t.Logf("the host ended after %v, the last process after %v", took.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	if took > within {
		t.Errorf("it took %v until the host had ended, more than %v", took, within)
	}
}

// TestFaultCancel cancels calls wherever they are: queued, running, and at a random moment, which can be any station. What was
// cancelled leaves nothing behind, and what comes after it works.
func TestFaultCancel(t *testing.T) {
	for _, setting := range settings {
		t.Run(setting.String(), func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			g.put("a.txt", "number 0\n")
			s := g.start(setting, "--metrics", ":0")
			s.call("Read", args{"file_path": "a.txt"})
			cancelCommands(t, g, s)
			cancelQueued(t, g, s, setting)
			cancelEdits(t, g, s)
			s.call("Bash", args{"command": "echo on"})
			s.end()
			g.tidy()
		})
	}
}

// outcome waits for the answer to a call that was cancelled; it may be an answer, an error or none.
func (s *session) outcome(p *client.Pending, within time.Duration) (*client.Result, error) {
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	return p.Result(ctx)
}

// cancelCommands cancels commands that run.
func cancelCommands(t *testing.T, g *ground, s *session) {
	tag := newTag()
	p, err := s.Start(s.ctx, "Bash", args{"command": tree(tag)}.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if _, err := os.Stat(g.path("ready")); err != nil {
			return "the command is not ready"
		}
		return ""
	})
	if err := s.Cancel(s.ctx, p); err != nil {
		t.Fatal(err)
	}
	survivors(t, tag)
}

// cancelQueued cancels a call that waits after another.
func cancelQueued(t *testing.T, g *ground, s *session, over setting) {
	first, err := s.Start(s.ctx, "Bash", args{"command": "touch begun; until [ -e go ]; do sleep 0.01; done; echo first"}.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if _, err := os.Stat(g.path("begun")); err != nil {
			return "the command has not begun"
		}
		return ""
	})
	queued, err := s.Start(s.ctx, "Write", args{"file_path": "never.txt", "content": "x"}.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	switch over {
	case httpModern: // the connection is closed, which the host sees in its own time, and not before the call has come
		s.waits(t)
		must(t, s.Cancel(s.ctx, queued))
		g.recorded("Write")
	case httpLegacy: // the two messages travel apart, and the later one may arrive first
		eventually(t, func() string {
			must(t, s.Cancel(s.ctx, queued))
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
		must(t, s.Cancel(s.ctx, queued))
		// The line that cancels has been read once a later request is answered.
		if _, err := s.Request(s.ctx, "tools/list", nil); err != nil {
			t.Fatal(err)
		}
	}
	g.put("go", "")
	if r, err := first.Result(s.ctx); err != nil || !strings.Contains(r.Text(), "first") {
		t.Errorf("the call before a cancelled one: %v, %v", r, err)
	}
	s.call("Bash", args{"command": "true"}) // comes after it in the queue
	if _, err := os.Stat(g.path("never.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cancelled call ran: %v", err)
	}
}

// waits waits until a call stands in the queue, by what a host that serves metrics tells.
func (s *session) waits(t *testing.T) {
	t.Helper()
	eventually(t, func() string {
		if page := s.metrics(t); !strings.Contains(page, "\ntoolhost_calls_waiting 1\n") {
			return "the call does not wait:\n" + page
		}
		return ""
	})
}

// recorded waits until a call of a tool is on record, which it is when it has ended.
func (g *ground) recorded(tool string) {
	g.t.Helper()
	eventually(g.t, func() string {
		if log := get(g.t, filepath.Join(g.state, "audit.jsonl")); !strings.Contains(log, `"tool":"`+tool+`"`) {
			return "no call of " + tool + " is on record:\n" + log
		}
		return ""
	})
}

// cancelEdits cancels edits at random moments. Each was made or was not, whole and once.
func cancelEdits(t *testing.T, g *ground, s *session) {
	n, cancelled := 0, 0
	for range often(25, 2000) {
		p, err := s.Start(s.ctx, "Edit", args{
			"file_path": "a.txt", "old_string": fmt.Sprintf("number %d\n", n), "new_string": fmt.Sprintf("number %d\n", n+1),
		}.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if rand.IntN(2) == 0 {
			time.Sleep(rand.N(time.Millisecond)) // any station
		}
		if err := s.Cancel(s.ctx, p); err != nil {
			t.Fatal(err)
		}
		if s.web {
			_, _ = s.outcome(p, patience)
		}
		s.call("Bash", args{"command": "true"}) // exclusive: it waits for what runs
		var now int
		if _, err := fmt.Sscanf(get(t, g.path("a.txt")), "number %d\n", &now); err != nil {
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
	g.put("a.txt", "number 0\n")
	web := g.start(httpModern)
	for i := range often(12, 400) {
		var s *session
		if i%2 == 0 {
			s = g.start(stdioModern)
		} else {
			conn, err := client.HTTP(web.ctx, client.Modern, web.url, web.token)
			must(t, err)
			s = &session{&host{Conn: conn, stderr: web.stderr}, t, web.ctx}
		}
		s.call("Read", args{"file_path": "a.txt"})
		for _, tool := range []string{"Edit", "Bash", "Grep"} {
			a := map[string]args{
				"Edit": {"file_path": "a.txt", "old_string": fmt.Sprintf("number %d\n", n), "new_string": fmt.Sprintf("number %d\n", n+1)},
				"Bash": {"command": "sleep 0.01"},
				"Grep": {"pattern": "number"},
			}[tool]
			if _, err := s.Start(s.ctx, tool, a.String(), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(rand.N(10 * time.Millisecond)) // any station
		if err := s.Close(); err != nil {
			t.Errorf("%v\n%s", err, s.stderr)
		}
		if i%2 == 1 {
			web.call("Bash", args{"command": "true"}) // waits for what runs
		}
		var now int
		if _, err := fmt.Sscanf(get(t, g.path("a.txt")), "number %d\n", &now); err != nil || now != n && now != n+1 {
			t.Fatalf("after number %d comes number %d, %v", n, now, err)
		}
		n = now
	}
	web.end()
	g.tidy()
}
