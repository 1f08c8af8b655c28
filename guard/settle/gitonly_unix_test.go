//go:build unix

package settle

import (
	"os/exec"
	"strings"
	"testing"
)

// TestGitOnly has commands put protected names into git without a file: they are named, and not known when the person's own git brings
// them out and a command removes and restores them.
func TestGitOnly(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	const blob = "b=$(echo planted | git hash-object -w --stdin); "
	const planted = "New content of protected files in git"
	for name, c := range map[string]struct{ begin, command, note string }{
		"a commit":        {"", blob + "git read-tree HEAD; git update-index --add --cacheinfo 100644,$b,.envrc; git branch x $(git commit-tree -p HEAD -m x $(git write-tree)); git read-tree HEAD", planted + ", which a checkout, merge or stash brings out: .envrc (refs/heads/x)"},
		"the index":       {"", blob + "git update-index --add --cacheinfo 100644,$b,pkg/.vscode/tasks.json", "pkg/.vscode/tasks.json (index)"},
		"a program":       {"", blob + "git update-index --add --cacheinfo 100755,$b,.husky/pre-commit", ".husky/pre-commit (index)"},
		"a link":          {"", blob + "git update-index --add --cacheinfo 120000,$b,.idea/x", ".idea/x (index)"},
		"an orphan":       {"", blob + "git update-index --add --cacheinfo 100644,$b,.envrc; git update-ref refs/heads/y $(git commit-tree -m x $(git write-tree)); git reset -q", ".envrc (refs/heads/y)"},
		"a packed ref":    {"", blob + "git update-index --add --cacheinfo 100644,$b,.envrc; git branch z $(git commit-tree -p HEAD -m x $(git write-tree)); git pack-refs --all; git reset -q", ".envrc (refs/heads/z)"},
		"a stash":         {"", "echo planted > .envrc; git add .envrc; git stash -q", ".envrc (refs/stash)"},
		"a fetch":         {"", "git init -q -b o sub; cd sub; echo planted > .envrc; git add -f .envrc; git commit -qm x; cd ..; git fetch -q ./sub o:refs/remotes/sub/o; rm -rf sub", ".envrc (refs/remotes/sub/o)"},
		"sha256":          {"rm -rf .git; git init -q -b main --object-format=sha256; git commit -q --allow-empty -m x", blob + "git update-index --add --cacheinfo 100644,$b,.envrc", ".envrc (index)"},
		"an empty repo":   {"rm -rf .git; git init -q -b main", blob + "git update-index --add --cacheinfo 100644,$b,.envrc; git update-ref HEAD $(git commit-tree -m x $(git write-tree))", ".envrc (HEAD)"},
		"skip-worktree":   {"", "git update-index --skip-worktree .mcp.json", "Marked skip-worktree by a command, so that git does not show their changes: .mcp.json"},
		"a sparse index":  {"git config index.version 4; echo a > a; git add a; git commit -qm a", "git update-index --skip-worktree a .mcp.json", "changes: .mcp.json."},
		"the same":        {"", "git checkout -q -b w; git commit -q --allow-empty -m w; git checkout -q main", ""},
		"its own files":   {"", "echo held > .mcp.json; git commit -qam x", "!" + planted},
		"no protected":    {"", "echo x > a; git add a; git commit -qm a; git tag t", ""},
		"a person's flag": {"git update-index --skip-worktree .mcp.json", "echo x > a; git add a", ""},
		"a blob ref":      {"", blob + "git update-ref refs/blob $b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			plain := func(script string) string { return (&gitGround{ground: g}).git(g.dir, script) }
			plain("git init -q -b main; echo '{}' > .mcp.json; git add -A; git commit -qm base; " + c.begin)
			g.call(func() {})
			var out string
			note := g.call(func() { out = plain(c.command) })
			if want, not := strings.CutPrefix(c.note, "!"); c.note == "" && note != "" ||
				strings.Contains(note, want) == not && c.note != "" {
				t.Errorf("the note is %q, want %q\n%s", note, c.note, out)
			}
			if again := g.call(func() {}); strings.Contains(again, planted) ||
				strings.Contains(again, "skip-worktree") {
				t.Errorf("named again: %q", again)
			}
			if name != "a commit" {
				return
			}
			plain("git checkout -q x; git checkout -q main")
			g.call(func() {})
			if note := g.call(func() { plain("git checkout -q x") }); !strings.Contains(note, ".envrc (new)") {
				t.Errorf("a command brings it out, and it is not held: %q", note)
			}
		})
	}
}
