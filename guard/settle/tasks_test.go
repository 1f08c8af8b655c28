package settle

import (
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestTasks looks at what stands outside while a task runs: what it has changed itself, but nothing that a call has
// changed besides.
func TestTasks(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	g.call(func() { g.write(".vimrc", "held") })
	task := g.begin(false)
	g.write(".envrc", "by the task")
	if note := strings.Join(task.Background(), ""); !strings.Contains(note, ".envrc") {
		t.Errorf("not told: %q", note)
	}
	g.want("the task runs", ".envrc=by the task .mcp.json=old .vimrc=held")
	note := g.call(func() {
		g.want("inside", ".envrc=by the task .mcp.json=old .vimrc=held")
		g.write(".mcp.json", "by a call")
		g.write(".idea/x", "by a call")
	})
	if !strings.Contains(note, ".mcp.json (changed)") || strings.Contains(note, ".envrc") {
		t.Errorf("note of the call: %q", note)
	}
	g.want("the call has ended", ".envrc=by the task .mcp.json=old .vimrc=held")
	g.write(".exrc", "by the task")
	note = g.call(func() {
		g.want("inside of the next call", ".envrc=by the task .exrc=by the task .idea/ .idea/x=by a call .mcp.json=by a call .vimrc=held")
	})
	if !strings.Contains(note, ".exrc") {
		t.Errorf("not told: %q", note)
	}
	g.want("the next call has ended", ".envrc=by the task .exrc=by the task .mcp.json=old .vimrc=held")
	task.End()
	g.want("the task has ended", ".mcp.json=old")
	all := ".envrc=by the task .exrc=by the task .idea/ .idea/x=by a call .mcp.json=by a call .vimrc=held"
	g.call(func() { g.want("inside", all) })
	if _, err := g.k.Keep(g.dir); err != nil {
		t.Fatal(err)
	}
	g.want("kept", all)
}

// TestTaskOfGit leaves files alone while git works, in a task for all that is known.
func TestTaskOfGit(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	task := g.begin(false)
	task.Background()
	os.MkdirAll(g.dir+"/.git/rebase-merge", 0o755)
	g.call(func() { g.write(".mcp.json", "by the rebase") })
	if text, _ := os.ReadFile(g.dir + "/.mcp.json"); string(text) != "by the rebase" {
		t.Errorf("exchanged: %s", text)
	}
	os.RemoveAll(g.dir + "/.git")
	task.End()
	g.want("the task has ended", ".mcp.json=old")
}

// TestTaskKilled settles what a task had changed when its host was killed.
func TestTaskKilled(t *testing.T) {
	g := newGround(t)
	g.write(".mcp.json", "old")
	task := g.begin(false)
	g.write(".envrc", "by the task")
	task.Background()
	g.call(func() { g.write(".mcp.json", "by a call") })
	g.kill()
	g.k.Recover([]string{g.dir})
	g.want("after a kill", ".mcp.json=old")
	g.call(func() { g.want("inside", ".envrc=by the task .mcp.json=by a call") })
}

// TestTaskOfAnotherHost runs calls while only a task of another host runs, as that of an agent in a sandbox for hours:
// what a call has changed is settled at its end, and what the task has changed when the task has ended.
func TestTaskOfAnotherHost(t *testing.T) {
	g := newGround(t)
	other := Open(g.state, marksIn, slog.New(slog.DiscardHandler))
	defer other.Close()
	begin := func() *Command {
		t.Helper()
		c, _, err := other.Begin([]string{g.dir}, false)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	g.write(".mcp.json", "old")
	task := begin()
	task.Background()
	g.write(".envrc", "by the task")
	for _, again := range []bool{false, true} {
		note := g.call(func() {
			g.write(".mcp.json", "by a call")
			g.write(".vscode/tasks.json", "by a call")
		})
		if again == strings.Contains(note, ".mcp.json (changed)") {
			t.Errorf("note of the call: %q", note)
		}
		g.want("the call has ended", ".envrc=by the task .mcp.json=old")
	}
	all := ".envrc=by the task .mcp.json=by a call .vscode/ .vscode/tasks.json=by a call"
	first, second := g.begin(false), begin()
	g.want("inside", all)
	first.End()
	g.want("a call of the other host runs", all)
	second.End()
	g.want("both calls have ended", ".envrc=by the task .mcp.json=old")

	g.kill()
	g.k.Recover([]string{g.dir})
	g.want("a host has started", ".envrc=by the task .mcp.json=old")
	if list, err := g.k.Keep(g.dir, g.dir+"/.vscode"); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	g.call(func() {})
	g.want("kept while the task runs", ".envrc=by the task .mcp.json=old .vscode/ .vscode/tasks.json=by a call")

	last := g.begin(false)
	g.write(".exrc", "by a call")
	task.End()
	g.want("a call still runs", ".envrc=by the task .exrc=by a call .mcp.json=by a call .vscode/ .vscode/tasks.json=by a call")
	last.End()
	g.want("all have ended", ".mcp.json=old .vscode/ .vscode/tasks.json=by a call")
	g.call(func() {
		g.want("inside", ".envrc=by the task .exrc=by a call .mcp.json=by a call .vscode/ .vscode/tasks.json=by a call")
	})
}

// TestTasksOfTwoHosts ends one task while that of another host goes on. Its names stay until both have ended.
func TestTasksOfTwoHosts(t *testing.T) {
	g := newGround(t)
	other := Open(g.state, marksIn, slog.New(slog.DiscardHandler))
	defer other.Close()
	theirs, _, err := other.Begin([]string{g.dir}, false)
	if err != nil {
		t.Fatal(err)
	}
	mine := g.begin(false)
	g.write(".envrc", "by a task")
	mine.Background()
	theirs.Background()
	g.write(".exrc", "by a task")
	mine.End()
	g.want("one has ended", ".envrc=by a task .exrc=by a task")
	g.call(func() { g.write(".vimrc", "by a call") })
	g.want("a call has ended", ".envrc=by a task .exrc=by a task")
	theirs.End()
	g.want("both have ended", "")
}
