package settle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSession has a server and a person change files in turn: what changes while the server is a command is held,
// and what changes between is known.
func TestSession(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	var notes []string
	quiet := true
	s, err := g.k.Session([]string{g.dir}, false, func() bool { return quiet }, func(more []string) { notes = append(notes, more...) })
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
	alone := func(f func()) {
		t.Helper()
		if err := s.Wrote(); err != nil {
			t.Fatal(err)
		}
		f()
	}
	settled := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			s.mu.Lock()
			over := s.now == nil
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
	alone(func() { g.write(".vscode/settings.json", "by the server"); g.write(".envrc", "by the server") })
	settled()
	g.want("between calls", ".mcp.json=old .vscode/ .vscode/settings.json=by a person")
	g.write(".vscode/settings.json", "by a person again")
	alone(func() {
		g.want("the person's wins", ".envrc=by the server .idea/ .idea/x=by a call .mcp.json=by a call .vscode/ .vscode/settings.json=by a person again")
	})
	settled()
	quiet = false
	call(func() {})
	g.write(".exrc", "by what is under way")
	quiet = true
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
	s, err := g.k.Session([]string{g.dir}, false, func() bool { return false },
		func(more []string) { notes = append(notes, more...) })
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
	s, err := g.k.Session([]string{g.dir}, false, nil, func([]string) {})
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
