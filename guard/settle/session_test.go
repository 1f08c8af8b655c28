package settle

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A program says while it changes files that it is not quiet: a timer settles what a quiet one has changed.
type program struct{ busy atomic.Bool }

func (p *program) quiet() bool { return !p.busy.Load() }

// writes has a session change files as its program.
func (p *program) writes(s *Session, do func()) {
	p.busy.Store(true)
	defer p.busy.Store(false)
	if err := s.Wrote(); err != nil {
		panic(err)
	}
	do()
}

// sleeps has the program of a session fall asleep, unless the timer was first.
func (p *program) sleeps(s *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active && !s.settle() {
		panic("it does not sleep")
	}
}

// TestSession has a server and a person change files in turn: what changes while the server is a command is held,
// and what changes between is known.
func TestSession(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	var notes []string
	var server program
	log := func(more []string) { notes = append(notes, more...) }
	s, err := g.k.Session([]string{g.dir}, Program{Quiet: server.quiet, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	call := func(f func()) {
		t.Helper()
		leave, err := s.Enter()
		if err != nil {
			t.Fatal(err)
		}
		f()
		leave()
	}
	settled := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			s.mu.Lock()
			over := !s.active
			s.mu.Unlock()
			if over {
				return
			}
		}
		t.Fatal("it is not settled")
	}
	call(func() { g.write(".mcp.json", "by a call"); g.write(".idea/x", "by a call") })
	g.want("after a call", ".mcp.json=old")
	g.write(".vscode/settings.json", "by a person")
	call(func() {
		g.want("in a call", ".idea/ .idea/x=by a call .mcp.json=by a call .vscode/ .vscode/settings.json=by a person")
	})
	g.want("after another call", ".mcp.json=old .vscode/ .vscode/settings.json=by a person")
	server.writes(s, func() { g.write(".vscode/settings.json", "by the server"); g.write(".envrc", "by the server") })
	settled()
	g.want("between calls", ".mcp.json=old .vscode/ .vscode/settings.json=by a person")
	g.write(".vscode/settings.json", "by a person again")
	server.writes(s, func() {
		g.want("the person's wins", ".envrc=by the server .idea/ .idea/x=by a call .mcp.json=by a call .vscode/ .vscode/settings.json=by a person again")
	})
	settled()
	server.busy.Store(true)
	call(func() {})
	g.write(".exrc", "by what is under way")
	server.busy.Store(false)
	settled()
	g.want("after what was under way", ".mcp.json=old .vscode/ .vscode/settings.json=by a person again")
	leave, _ := s.Enter()
	g.write(".exrc", "at the end")
	s.End()
	leave()
	g.want("in the end", ".mcp.json=old .vscode/ .vscode/settings.json=by a person again")
	if !strings.Contains(strings.Join(notes, "\n"), ".envrc (new)") {
		t.Errorf("notes: %q", notes)
	}
}

// TestSessionLate has a server change files without an end: that is told, and what a command changes is settled.
func TestSessionLate(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	var notes []string
	s, err := g.k.Session([]string{g.dir}, Program{Quiet: func() bool { return false },
		Log: func(more []string) { notes = append(notes, more...) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Wrote(); err != nil {
		t.Fatal(err)
	}
	g.write(".mcp.json", "by the server")
	s.mu.Lock()
	s.begun = s.begun.Add(-2 * lateAfter)
	s.mu.Unlock()
	s.rest()
	if told := strings.Join(notes, " "); !strings.Contains(told, ".mcp.json") {
		t.Errorf("it is told %q", told)
	}
	g.call(func() { g.write(".envrc", "by a command") })
	g.want("after a command", ".mcp.json=by the server")
	s.End()
	g.want("in the end", ".mcp.json=old")
}

// TestSessionUntold is about systems that do not tell what a server changes.
func TestSessionUntold(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	s, err := g.k.Session([]string{g.dir}, Program{Log: func([]string) {}})
	if err != nil {
		t.Fatal(err)
	}
	leave, err := s.Enter()
	if err != nil {
		t.Fatal(err)
	}
	g.write(".mcp.json", "by a call")
	leave()
	g.want("after a call", ".mcp.json=old")
	g.write(".envrc", "by the server, or a person")
	s.End()
	g.want("in the end", ".mcp.json=old")
}

// TestHome settles what is new in the home directory, but leaves alone what other programs have there.
func TestHome(t *testing.T) {
	g := newGround(t)
	t.Setenv("HOME", g.dir)
	g.write(".claude/settings.json", "old")
	g.write(".claude.json", "old")
	g.write(".bashrc", "old")
	g.write("src/.vscode/tasks.json", "old")
	g.call(func() {
		for _, name := range []string{".claude/settings.json", ".claude/projects/x", ".claude.json"} {
			g.write(name, "by another program")
		}
		for _, name := range []string{".bashrc", ".profile", ".cursor/mcp.json", "src/.vscode/tasks.json", "src/.claude/settings.json"} {
			g.write(name, "by a command")
		}
		if got, want := g.k.Settled(filepath.Join(g.dir, ".claude/settings.json")), filepath.Join(g.dir, ".claude/settings.json"); got != want {
			t.Errorf("the settings of the user are read from %q", got)
		}
	})
	g.want("after a command", ".bashrc=old .claude/ .claude/projects/ .claude/projects/x=by another program .claude/settings.json=by another program "+
		".claude.json=by another program src/ src/.vscode/ src/.vscode/tasks.json=old")
	os.RemoveAll(filepath.Join(g.dir, ".claude"))
	g.call(func() { g.write(".claude/settings.json", "by a command") })
	g.want("a directory that was removed", ".bashrc=old .claude.json=by another program src/ src/.vscode/ src/.vscode/tasks.json=old")
}

// TestSessionOfAgent has an agent and a person change files in turn: what the agent has changed stays while it runs,
// also for calls, and is held at its end, even if others change it later. What a person alone has changed is the person's.
func TestSessionOfAgent(t *testing.T) {
	g := newGround(t)
	for _, rel := range []string{".mcp.json", ".envrc", ".vscode/settings.json", ".vscode/tasks.json"} {
		g.write(rel, "old")
	}
	var notes []string
	var s *Session
	var agent program
	begin := func() {
		t.Helper()
		notes = nil
		var err error
		s, err = g.k.Session([]string{g.dir}, Program{IsAgent: true, Quiet: agent.quiet,
			Log: func(more []string) { notes = append(notes, more...) }})
		if err != nil {
			t.Fatal(err)
		}
	}
	begin()
	g.write(".vscode/settings.json", "by a person")
	agent.writes(s, func() {
		g.write(".mcp.json", "by the agent")
		g.write(".idea/x", "by the agent")
		g.write(".exrc", "by the agent")
	})
	agent.sleeps(s)
	g.write(".vscode/tasks.json", "by a person")
	g.write(".exrc", "by a person, after the agent")
	g.write(".vimrc", "by a person")
	const both = ".envrc=old .exrc=by a person, after the agent .idea/ .idea/x=by the agent .mcp.json=by the agent " +
		".vimrc=by a person .vscode/ .vscode/settings.json=by a person .vscode/tasks.json=by a person"
	g.want("while it runs", both)
	note := g.call(func() { g.want("in a call", both); g.write(".envrc", "by a call") })
	if strings.Contains(note, ".vimrc") || !strings.Contains(note, ".envrc (changed)") {
		t.Errorf("the call says %q", note)
	}
	g.want("after a call", both)
	g.write(".vscode/settings.json", "by a person again")
	agent.writes(s, func() { g.write(".vscode/tasks.json", "by the agent, after a person") })
	agent.sleeps(s)
	g.write(".vimrc", "by a person at the end")
	told := strings.Join(s.End(), "\n")
	const after = ".envrc=old .mcp.json=old .vimrc=by a person at the end .vscode/ " +
		".vscode/settings.json=by a person again .vscode/tasks.json=by a person"
	g.want("after its end", after)
	for _, rel := range []string{".mcp.json (changed)", ".idea/x (new)", ".exrc (new)", ".vscode/tasks.json (changed)"} {
		if !strings.Contains(told, rel) {
			t.Errorf("%s is not told: %q", rel, told)
		}
	}
	if strings.Contains(told, ".vimrc") || strings.Contains(told, "settings.json") || len(notes) > 0 {
		t.Errorf("told: %q, %q", told, notes)
	}

	begin()
	g.want("in the next run", ".envrc=by a call .exrc=by a person, after the agent .idea/ .idea/x=by the agent .mcp.json=by the agent "+
		".vimrc=by a person at the end .vscode/ .vscode/settings.json=by a person again .vscode/tasks.json=by the agent, after a person")
	agent.writes(s, func() {
		g.write(".vimrc", "by the agent")
		s.rest()
		g.write(".envrc", "by what is under way")
	})
	agent.sleeps(s)
	g.write(".vscode/launch.json", "by a person")
	g.kill()
	g.k.Recover([]string{g.dir})
	g.want("after a restart", strings.Replace(after, ".vscode/settings.json=",
		".vscode/launch.json=by a person .vscode/settings.json=", 1))
}

// TestSessionOfAgentOpen has an agent keep a protected file open, and write it when it counts as a person.
func TestSessionOfAgentOpen(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	if err := leases(g.dir); err != nil {
		t.Skip(err)
	}
	var agent program
	s, err := g.k.Session([]string{g.dir}, Program{IsAgent: true, Quiet: agent.quiet, Log: func([]string) {}})
	if err != nil {
		t.Fatal(err)
	}
	var f *os.File
	agent.writes(s, func() { f, err = os.OpenFile(filepath.Join(g.dir, ".mcp.json"), os.O_RDWR, 0) })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	agent.sleeps(s)
	f.WriteString("pwned")
	s.Wrote()
	s.End()
	g.want("in the end", ".mcp.json=old")
}

// TestSessionOfAgentAmongHosts has another host's calls and tasks change files while an agent sleeps: nothing of that is
// taken for a person's, also when that host is killed.
func TestSessionOfAgentAmongHosts(t *testing.T) {
	for _, c := range []struct {
		name       string
		task, kill bool
	}{{"a call", false, false}, {"a task", true, false}, {"a killed call", false, true}, {"a killed task", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			g := newGround(t)
			g.write(".mcp.json", "old")
			var agent program
			s, err := g.k.Session([]string{g.dir}, Program{IsAgent: true, Quiet: agent.quiet, Log: func([]string) {}})
			if err != nil {
				t.Fatal(err)
			}
			other := Open(g.state, marksIn, slog.New(slog.DiscardHandler))
			command, _, err := other.Begin([]string{g.dir}, false)
			if err != nil {
				t.Fatal(err)
			}
			if c.task {
				command.Background()
			}
			g.write(".mcp.json", "by "+c.name)
			if c.kill {
				for _, p := range other.places {
					p.store.close()
				}
			} else {
				command.End()
				other.Close()
			}
			for range 2 {
				agent.writes(s, func() {})
				agent.sleeps(s)
			}
			s.End()
			g.want("in the end", ".mcp.json=old")
		})
	}
}
