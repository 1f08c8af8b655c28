//go:build slow

package mcpserver

import (
	"encoding/json"
	"path/filepath"
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
