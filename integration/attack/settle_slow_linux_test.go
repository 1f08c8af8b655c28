//go:build slow

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestSettleLinks writes the target of a protected name that is a link.
func TestSettleLinks(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "mkdir conf; echo '{}' | tee conf/mcp.json > conf/tasks.json; ln -s conf/mcp.json .mcp.json; ln -s conf .vscode")
	s := g.start(t)
	for _, script := range []string{"echo pwned > conf/mcp.json", "echo pwned > c; mv c conf/tasks.json",
		"ln -sfn d .vscode; mkdir d; echo pwned > d/tasks.json", "rm .mcp.json; echo pwned > .mcp.json"} {
		_, err := s.Host.Call(s.Ctx, "Bash", fmt.Sprintf(`{"command":%q}`, "eval '"+script+"'"))
		host.Must(t, err)
		if text := g.must(t, g.ws, "cat .mcp.json .vscode/tasks.json"); text != "{}\n{}\n" {
			t.Errorf("%s: outside stands %s", script, text)
		}
	}
	s.End()
}

// TestSettleSequencer has commands stop rebases with steps that run programs, in the repository, a linked work tree and a nested
// repository: the person's own git runs none of the steps, and in commands the rebases go on.
func TestSettleSequencer(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	const history = `git init -q -b main; git config user.name t; git config user.email t@example.org; git config core.hooksPath /dev/null; echo 1 > a; git add a; git commit -qm a; git checkout -qb topic; for f in b d; do echo 2 > $f; git add $f; git commit -qm $f; done; git checkout -q main; echo 3 > c; git add c; git commit -qm c`
	for _, c := range samples.Of([]struct{ dir, begin string }{
		{".", history + "; git checkout -q topic"},
		{"side", history + "; git worktree add -q side topic"},
		{"nested", "mkdir nested; cd nested; " + history + "; git checkout -q topic"},
	}, 1) {
		dir := c.dir
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			g := newLeftoverGround(t, 0)
			g.must(t, g.ws, "rm -rf .git; "+c.begin)
			s := g.start(t)
			r := s.MustCall("Bash", host.Args{"command": "cd " + dir + " && git rebase -q -x 'test -e go && touch ran' main; git status | head -3"})
			if !strings.Contains(r, "held until a person answers") || !strings.Contains(r, "rebase in progress") {
				t.Errorf("the command says %s", r)
			}
			out, _ := g.outside(filepath.Join(g.ws, dir), "touch go; git rebase --continue; rm go; ls")
			if strings.Contains(out, "ran") {
				t.Errorf("outside a step ran: %s", out)
			}
			s.MustCall("Bash", host.Args{"command": "cd " + filepath.Join(g.ws, dir) +
				" && git rebase --abort; git rebase -q -x 'touch ran' main && ls"})
			if _, err := os.Stat(filepath.Join(g.ws, dir, "ran")); err != nil {
				t.Error("in commands no rebase ends:", err)
			}
			s.End()
		})
	}
}

// TestSettleTask has a task run while calls write protected files: what the calls wrote is held at their ends, what the task
// wrote when it has ended.
func TestSettleTask(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "mkdir .vscode; echo '{}' > .vscode/tasks.json")
	s := g.start(t)
	r := s.MustCall("Bash", host.Args{"command": "n=rc; echo task > .env$n; : > ready; cat fifo 2> /dev/null || sleep 600", "run_in_background": true})
	task := taskID.FindString(r)
	if r += s.MustCall("Bash", host.Args{"command": "until [ -e ready ]; do sleep 0.01; done"}); !strings.Contains(r,
		".envrc") {
		t.Errorf("what the task wrote is not told: %s", r)
	}
	r = s.MustCall("Bash", host.Args{"command": "cat .envrc; d=.vscode; echo call > $d/tasks.json; mkdir .idea; echo call > .idea/x"})
	if !strings.Contains(r, "task") || !strings.Contains(r, ".vscode/tasks.json (changed)") {
		t.Errorf("the call says %s", r)
	}
	g.wantFiles(t, "the call has ended", map[string]string{".vscode/tasks.json": "{}\n", ".idea/x": ""})
	if r = s.MustCall("Bash", host.Args{"command": "cat .vscode/tasks.json .idea/x"}); strings.Count(r, "call") != 2 {
		t.Errorf("the next call sees %s", r)
	}
	g.wantFiles(t, "the next call has ended", map[string]string{".vscode/tasks.json": "{}\n", ".idea/x": ""})
	s.MustCall("TaskStop", host.Args{"task_id": task})
	g.wantFiles(t, "the task has ended", map[string]string{".vscode/tasks.json": "{}\n", ".idea/x": "", ".envrc": ""})
	if r = s.MustCall("Bash", host.Args{"command": "cat .vscode/tasks.json .idea/x .envrc"}); strings.Count(r,
		"call") != 2 || !strings.Contains(r, "task") {
		t.Errorf("the last call sees %s", r)
	}
	s.End()
}

// TestSettleUncontained has commands write protected files where the sandbox is off.
func TestSettleUncontained(t *testing.T) {
	t.Parallel()
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "mkdir .vscode; echo '{}' > .vscode/tasks.json")
	off := filepath.Join(g.root, "off.json")
	host.MustWrite(t, off, `{"sandbox":{"enabled":false,"onUnavailable":"allow"},"permissions":{"defaultMode":"acceptEdits","allow":["Bash"]}}`)
	s := g.start(t, "--settings", off)
	r := s.MustCall("Bash", host.Args{"command": `python3 -c 'open(".vscode/tasks.json", "w").write("call\n"); open(".env" + "rc", "w").write("call\n")'`})
	if !strings.Contains(r, ".envrc (new)") {
		t.Errorf("the call says %s", r)
	}
	g.wantFiles(t, "the call has ended", map[string]string{".vscode/tasks.json": "{}\n", ".envrc": ""})
	if text := s.MustCall("Read", host.Args{"file_path": filepath.Join(g.ws, ".envrc")}); !strings.Contains(text,
		"call") {
		t.Errorf("Read shows %s", text)
	}
	if r = s.MustCall("Bash", host.Args{"command": "cat .vscode/tasks.json .envrc"}); strings.Count(r, "call") != 2 {
		t.Errorf("the next call sees %s", r)
	}
	s.End()
}
