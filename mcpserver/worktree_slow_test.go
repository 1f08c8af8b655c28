//go:build slow

package mcpserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorktreeLinks enters worktrees whose commits have a link in the place of a root, or of the caller's directory.
func TestWorktreeLinks(t *testing.T) {
	t.Parallel()
	for _, roots := range [][]string{{"", "sub"}, {"sub"}, {""}} {
		m := openMover(t, nil, func(c *Config) {
			top := c.Roots[0]
			c.Roots = nil
			for _, below := range roots {
				c.Roots = append(c.Roots, filepath.Join(top, below))
			}
		})
		victim := t.TempDir()
		writeFile(t, filepath.Join(victim, "f"), "mine\n")
		git(t, m.repo, "git checkout -q --orphan evil; git rm -rqf .; ln -s "+victim+
			" sub; git add sub; git commit -qm evil; git checkout -qf main; mkdir -p sub/x")
		raw, _ := json.Marshal(map[string]string{"command": "cd " + filepath.Join(m.repo, "sub", "x")})
		m.call("one", "Bash", string(raw))
		m.call("one", "EnterWorktree", `{"base":"evil"}`)
		for _, call := range [][2]string{
			{"Write", `{"file_path":"new","content":"x"}`}, {"Write", `{"file_path":"` + filepath.ToSlash(victim) + `/new","content":"x"}`},
			{"Write", `{"file_path":"sub/new","content":"x"}`}, {"Bash", `{"command":"echo x > ` + victim + `/new; echo x >> ` + victim + `/f"}`}, {"Bash", `{"command":"echo x > sub/new"}`},
		} {
			m.call("one", call[0], call[1])
		}
		if got := git(t, victim, "find . | sort; cat f"); got != ".\n./f\nmine" {
			t.Errorf("roots %q: the other directory has:\n%s", roots, got)
		}
	}
}

func (m *mover) reopen() {
	m.Helper()
	if err := m.h.Close(); err != nil {
		m.Error(err)
	}
	m.open()
}

// TestWorktreeDiscard asks before work is lost, and not where there is none.
func TestWorktreeDiscard(t *testing.T) {
	t.Parallel()
	m := openMover(t, nil)
	m.o.answer = Answer{Decision: DenyIt, Reason: "I want it"}
	m.must("one", "EnterWorktree", `{"name":"x"}`)
	m.must("one", "ExitWorktree", `{"keep":false}`)
	if got := git(t, m.repo, "git branch --list 'toolhost/*'"); got != "" || len(m.o.asked) > 0 {
		t.Errorf("left %q, asked %v", got, m.o.asked)
	}
	m.must("one", "EnterWorktree", `{"name":"x"}`)
	m.must("one", "Write", `{"file_path":"n.txt","content":"n"}`)
	m.refused("one", "ExitWorktree", `{"keep":false}`, "I want it")
	if !strings.Contains(m.o.asked[0].Message, "1 file changed") {
		t.Errorf("the person is shown:\n%s", m.o.asked[0].Message)
	}
	m.o.absent = true
	m.refused("one", "ExitWorktree", `{"keep":false}`, "keep: true")
	m.tree("one")
	m.o.absent, m.o.answer = false, Answer{Decision: AllowOnce}
	text := m.must("one", "ExitWorktree", `{"keep":false}`)
	_, commit, _ := strings.Cut(text, "git branch NAME ")
	if got := git(t, m.repo, "git branch --list 'toolhost/*'; git show "+strings.Fields(commit)[0]+
		":n.txt"); got != "n" {
		t.Errorf("afterwards: %s", got)
	}
}

// TestWorktreeAfterRestart: the conversation is where it was, whatever became of the host.
func TestWorktreeAfterRestart(t *testing.T) {
	t.Parallel()
	m := openMover(t, nil)
	m.must("one", "EnterWorktree", `{"name":"x"}`)
	m.must("two", "EnterWorktree", `{}`)
	tree := m.tree("one")
	m.must("one", "Write", `{"file_path":"n.txt","content":"n"}`)
	m.reopen()
	if got := git(t, m.repo, "git log --format=%s toolhost/x"); got != "toolhost: unfinished\nfirst" {
		t.Errorf("after the end of the host: %s", got)
	}
	m.must("one", "Write", `{"file_path":"m.txt","content":"m"}`)
	m.must("two", "Write", `{"file_path":"t.txt","content":"t"}`)
	m.must("three", "Write", `{"file_path":"three.txt","content":"3"}`)
	if got := git(t, tree, "ls; git status --porcelain"); got != "a.txt\nm.txt\nn.txt\nsub\n?? m.txt" ||
		m.tree("one") != tree {
		t.Errorf("the worktree: %s", got)
	}
	if got := git(t, m.repo, "git status --porcelain"); got != "?? three.txt" {
		t.Errorf("the checkout: %s", got)
	}
	m.must("one", "ExitWorktree", `{}`)
	m.reopen()
	m.must("one", "Write", `{"file_path":"back.txt","content":"b"}`)
	if _, err := os.Stat(filepath.Join(m.repo, "back.txt")); err != nil {
		t.Error(err)
	}
	m.must("two", "Read", `{"file_path":"t.txt"}`)
	if err := os.RemoveAll(filepath.Dir(m.tree("two"))); err != nil {
		t.Fatal(err)
	}
	m.refused("two", "Write", `{"file_path":"lost.txt","content":"l"}`, "removed from outside")
	m.must("two", "Write", `{"file_path":"found.txt","content":"f"}`)
}

// TestWorktreeRules: rules of the workspace hold in its worktree, and what settings files there say does not.
func TestWorktreeRules(t *testing.T) {
	t.Parallel()
	m := openMover(t, map[string]string{
		".claude/settings.json": `{"permissions":{"defaultMode":"default","deny":["Read(/sub/secret.txt)","Edit(/docs/**)","Bash(curl *)"],"ask":["Edit(/ask/**)"],"allow":["Edit(/src/**)"]}}`,
		"sub/secret.txt":        "secret\n", "docs/d": "d\n", "src/s.txt": "s\n", "ask/a": "a\n",
	})
	m.o.answer = Answer{Decision: DenyIt}
	m.must("one", "EnterWorktree", `{}`)
	tree := m.tree("one")
	if _, err := os.Stat(filepath.Join(tree, "sub", "secret.txt")); err == nil {
		t.Error("a denied file was copied")
	}
	for _, place := range []string{"", filepath.ToSlash(m.repo) + "/"} {
		m.refused("one", "Read", `{"file_path":"`+place+`sub/secret.txt"}`, "denied")
		m.refused("one", "Write", `{"file_path":"`+place+`docs/n","content":"x"}`, "denied")
	}
	m.refused("one", "Bash", `{"command":"curl example.org"}`, "denied")
	m.must("one", "Write", `{"file_path":"src/new.txt","content":"x"}`)
	m.refused("one", "Write", `{"file_path":"ask/new.txt","content":"x"}`, "")
	m.refused("one", "Write", `{"file_path":"other.txt","content":"x"}`, "")
	if len(m.o.asked) != 2 {
		t.Errorf("%d questions", len(m.o.asked))
	}
	m.refused("one", "Write", `{"file_path":".claude/settings.local.json","content":"{}"}`, "ermission settings")
	loose, _ := json.Marshal(map[string]any{"permissions": map[string]any{"allow": []string{"Edit", "Bash"},
		"defaultMode": "bypassPermissions"}})
	writeFile(t, filepath.Join(tree, ".claude", "settings.local.json"), string(loose)) // as a merge could bring it
	m.refused("one", "Write", `{"file_path":"other.txt","content":"x"}`, "")
}
