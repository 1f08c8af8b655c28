//go:build slow

package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAgentReadOnly: an agent whose definition takes Edit and Write away changes no file, by whatever way it has.
func TestAgentReadOnly(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	agents := filepath.Join(p.Home, ".claude/agents")
	host.Must(t, os.MkdirAll(agents, 0o700))
	for name, members := range map[string]string{
		"list":    "disallowedTools: [Edit, Write]",
		"text":    "disallowedTools: Write, Edit(**), WebFetch",
		"alias":   "disallowedTools: edit_file, write_file",
		"with":    "tools: Read, Bash, Edit, Write\ndisallowedTools: Edit, Write",
		"oneonly": "disallowedTools: NotebookEdit",
	} {
		host.Must(t, os.WriteFile(filepath.Join(agents, name+".md"), []byte("---\nname: "+name+"\ndescription: a test\n"+members+"\n---\nGo.\n"), 0o600))
	}
	p.runs(t, nil, "")
	h := startAgentHost(t, p, host.StdioModern, nil)
	host.Must(t, os.WriteFile(filepath.Join(p.Project, "n.ipynb"), []byte(`{"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"execution_count":null,"source":[]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`), 0o600))
	before, err := os.ReadFile(filepath.Join(p.Project, "n.ipynb"))
	host.Must(t, err)
	script := "echo x > by-shell; echo x >> kept.txt; mkdir dir; ln -s kept.txt link; chmod 777 kept.txt; python3 -c 'open(\"by-python\", \"w\")'; echo own > $TMPDIR/own && cat $TMPDIR/own kept.txt"
	host.Must(t, os.WriteFile(filepath.Join(p.Home, "try.sh"), []byte(script), 0o600)) // a script, since literal writes are refused before
	for _, isolation := range []string{"none", "worktree"} {
		if isolation == "worktree" {
			h.commit()
		}
		for _, name := range []string{"list", "text", "alias", "with"} {
			text, out, _ := h.agent(map[string]any{"subagent_type": name, "isolation": isolation},
				`{"list": true}`, shellStep(script), toolStep("Bash", `{"command": "bash ~/try.sh"}`),
				toolStep("Edit", `{"file_path": "kept.txt", "old_string": "kept", "new_string": "changed"}`),
				toolStep("Write", `{"file_path": "by-write", "content": "x"}`),
				toolStep("NotebookEdit", `{"notebook_path": "n.ipynb", "cell_id": "a", "new_source": "x"}`),
				toolStep("Read", `{"file_path": "kept.txt"}`))
			if files, _ := out["files"].([]any); len(files) > 0 || strings.Contains(text, "Worktree") &&
				isolation == "none" {
				t.Errorf("%s, isolation %s: it changed %v\n%s", name, isolation, files, text)
			}
			if strings.Count(text, "> own\n") != 2 || strings.Count(text, "kept") < 3 {
				t.Errorf("%s, isolation %s: its commands do not read, or have no directory of their own:\n%s", name,
					isolation, text)
			}
			for _, made := range []string{"by-shell", "by-python", "by-write", "dir", "link"} {
				if _, err := os.Lstat(filepath.Join(p.Project, made)); err == nil {
					t.Errorf("%s, isolation %s: it made %s", name, isolation, made)
				}
			}
		}
	}
	for name, want := range map[string]string{"kept.txt": "kept\n", "n.ipynb": string(before)} {
		if got, err := os.ReadFile(filepath.Join(p.Project, name)); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if text, _, _ := h.agent(map[string]any{"subagent_type": "oneonly"}, shellStep("echo x > by-shell"),
		toolStep("Bash", `{"command": "echo x > by-bash"}`),
		toolStep("Write", `{"file_path": "by-write", "content": "x"}`)); !strings.Contains(text, "Changed 3 files") {
		t.Errorf("an agent that keeps Edit and Write says\n%s", text)
	}
}
