package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// foldedPlants are scripts that reach a protected name by another spelling, where case does not count.
var foldedPlants = []struct{ name, bash string }{
	{"written", "echo pwned > .VSCODE/Tasks.JSON"},
	{"new", "echo pwned > .MCP.json"},
	{"a new directory", "mkdir .Husky; echo pwned > .Husky/Pre-Commit"},
	{"renamed over", "echo pwned > x; mv x .vscode/TASKS.json"},
	{"the directory renamed", "mv .vscode .VSCODE; echo pwned > .vscode/tasks.json"},
	{"renamed and made", "mv .vscode old; mkdir .VSCODE; echo pwned > .VSCODE/tasks.json"},
	{"the case alone", "mv .vscode/tasks.json .vscode/Tasks.json; echo pwned > .vscode/tasks.json"},
	{"removed", "rm -r .VSCODE"},
	{"a hook", "mkdir -p .GIT/hooks; echo pwned > .GIT/Hooks/pre-commit; chmod +x .git/hooks/pre-commit"},
	{"a nested repository", "mkdir -p sub/.GIT/hooks; echo ref: refs/heads/x > sub/.GIT/HEAD; mkdir sub/.GIT/objects sub/.GIT/refs; printf '[core]\\n\\tfsmonitor = pwned\\n' > sub/.GIT/Config"},
	{"a git file", "mkdir sub; echo gitdir: ../pwned > sub/.GIT; mkdir pwned; printf '[core]\\n\\tfsmonitor = pwned\\n' > pwned/CONFIG"},
}

// TestFoldedNames plants protected names by other spellings on a file system that folds case: outside stands what stood,
// and the next command sees what the one before it made.
func TestFoldedNames(t *testing.T) {
	t.Parallel()
	if !host.Contained(t) {
		t.Skip("nothing contains commands on this machine")
	}
	for _, backend := range []string{"namespaces", "landlock"} {
		for i, p := range samples.Few(foldedPlants) {
			if backend == "landlock" && i%2 == 1 { // what a command made is settled in the same way
				continue
			}
			t.Run(backend+" "+p.name, func(t *testing.T) {
				t.Parallel()
				g := newLeftoverGround(t, 0)
				host.Must(t, os.RemoveAll(g.ws))
				host.Must(t, os.Mkdir(g.ws, 0o755))
				host.FoldCase(t, g.ws)
				if backend == "landlock" {
					g.as = host.WithoutNamespaces(t)
				}
				g.must(t, g.ws, "git init -q; mkdir .vscode; echo '{}' > .vscode/tasks.json; git add -A; git commit -q -m x; rm -rf .git/hooks; test -d .GIT")
				const look = `find . -path ./.git/objects -prune -o -type f -print | grep -iE 'vscode|husky|mcp.json|hooks/|config$|\.git$' | LC_ALL=C sort | while read f; do echo "$f"; cat "$f"; done`
				before := g.must(t, g.ws, look)
				s := g.start(t)
				s.MustCall("Bash", host.Args{"command": "true"})
				said, _ := s.Try("Bash", host.Args{"command": p.bash})
				if now := g.must(t, g.ws, look); strings.Contains(strings.ReplaceAll(now, "gitdir: ../pwned", "pwned"), "pwned") ||
					p.name == "removed" && now != before {
					t.Errorf("outside stands\n%s\nbefore:\n%s\n%s", now, before, said)
				}
				sees := s.MustCall("Bash", host.Args{"command": "cat .Vscode/Tasks.json .Husky/pre-commit .MCP.json 2>&1; true"})
				if held := !strings.Contains(p.bash, "/.GIT") && !strings.Contains(p.bash, ".GIT/"); held &&
					strings.Contains(sees, "pwned") != (p.name != "removed") {
					t.Errorf("the next command sees\n%s\n%s", sees, said)
				}
				s.End()
				if text, err := os.ReadFile(filepath.Join(g.ws, ".vscode", "tasks.json")); string(text) != "{}\n" {
					t.Errorf("the protected file is %q, %v\n%s", text, err, said)
				}
				if out, err := g.outside(g.ws, host.Binary+" keep --yes"); err != nil {
					t.Errorf("keep: %v\n%s", err, out)
				}
				if kept := g.must(t, g.ws, "cat .vscode/tasks.json .husky/pre-commit .mcp.json 2>&1; true"); strings.Contains(kept,
					"pwned") != strings.Contains(sees, "pwned") {
					t.Errorf("kept is\n%s\nand the command saw\n%s", kept, sees)
				}
			})
		}
	}
}
