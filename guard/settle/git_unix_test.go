//go:build unix

package settle

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// protectedSample are names of each kind.
var protectedSample = []string{".mcp.json", ".vscode/settings.json", ".vscode/tasks.json", ".husky/pre-commit", "mise.toml", ".claude/settings.json", "pkg/.envrc", ".claude/commands/c.md", "CLAUDE.md"}

// A gitGround is two equal repositories: in one git runs plainly, in the other as a command whose changes are held.
type gitGround struct {
	*ground
	plain string
	rand  *rand.Rand
	log   []string
}

// git runs a script in a directory and returns its output.
func (g *gitGround) git(dir, script string) string {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t",
		"GIT_COMMITTER_EMAIL=t@example.org", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

// state is what a command sees: the tree, HEAD, the branches and the state of the index.
func (g *gitGround) state(dir string) string {
	return g.git(dir, `find . -path ./.git -prune -o \( -type f -o -type l \) -print | LC_ALL=C sort | while read f; do echo "$f $(cat "$f" | sha256sum) $(stat -c %A "$f")"; done
git status --porcelain -uall; git rev-parse HEAD; git for-each-ref; git stash list; git ls-files -s`)
}

// command returns a random command on the tree.
func (g *gitGround) command() string {
	pick := func(list ...string) string { return list[g.rand.IntN(len(list))] }
	name, branch := pick(append(protectedSample, "a.txt", "sub/b.txt")...), pick("main", "one", "two")
	text := pick("red", "green", "blue")
	return pick(
		"git checkout -q "+branch, "git checkout -q "+branch, "git switch -q --discard-changes "+branch, "git checkout -q -f "+branch, "git checkout "+branch+" -- "+name,
		"git merge -q --no-edit "+branch, "git merge -q --ff-only "+branch, "git merge -q -X theirs --no-edit "+branch, "git merge --abort", "git merge -q --squash "+branch,
		"git rebase -q "+branch, "git rebase -q -X theirs "+branch, "git rebase -q -x false "+branch, "git rebase --abort", "git rebase --continue", "git cherry-pick "+branch, "git cherry-pick --abort", "git revert --no-edit HEAD",
		"git reset -q --hard "+branch, "git reset -q --hard HEAD", "git reset -q "+branch, "git reset -q --soft "+branch, "git restore "+name, "git restore -s "+branch+" "+name,
		"git stash -q", "git stash -q -u", "git stash pop -q", "git stash drop -q", "git clean -fdq", "git clean -fdxq",
		"git rm -q -f "+name, "mkdir -p moved; git mv -f "+name+" moved/x", "git add -A", "git commit -q -a -m "+text, "git add -A; git commit -q -m "+text, "git commit -q --amend -a --no-edit",
		"git update-index -q --refresh; git apply --3way <(git diff HEAD "+branch+")", "git read-tree -u --reset "+branch, "git checkout-index -f -a", "git format-patch -1 --stdout "+branch+" > .git/p; git am -q .git/p", "git am --abort",
		fmt.Sprintf("mkdir -p $(dirname %s); echo %s > %s", name, text, name), fmt.Sprintf("mkdir -p $(dirname %s); echo %s > %s", name, text, name), "rm -f "+name, "rm -rf $(dirname "+name+"/x)", "chmod +x "+name,
		"git update-index --refresh -q", "git worktree add -q ../wt-$$ "+branch+"; rm -rf ../wt-$$; git worktree prune",
	)
}

// begin makes the repositories.
func (g *gitGround) begin() {
	script := "git init -q -b main .; git config core.hooksPath /dev/null; git config merge.conflictStyle merge\n"
	add := func(text string, names ...string) {
		for _, n := range names {
			script += fmt.Sprintf("mkdir -p $(dirname %s); echo %s > %s\n", n, text, n)
		}
		script += "git add -A; git commit -q -m " + text + "\n"
	}
	some := func() []string {
		return slices.DeleteFunc(append(slices.Clone(protectedSample), "a.txt", "sub/b.txt"), func(string) bool { return g.rand.IntN(2) == 0 })
	}
	add("base", append(some(), "a.txt")...)
	script += "git checkout -q -b one\n"
	add("one", append(some(), "one.txt")...)
	script += "git checkout -q main; git checkout -q -b two\n"
	add("two", append(some(), "two.txt")...)
	script += "git checkout -q main\n"
	for _, dir := range []string{g.dir, g.plain} {
		g.git(dir, script)
	}
}

// TestGitAsPlain runs random scripts of git over several calls, without an answer to any question: what commands see
// and commit is what they would without settlement, and outside stands what stood there before. In the end everything
// is kept.
func TestGitAsPlain(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	for i := range samples.Rounds(gitScripts) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			plain, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			g := &gitGround{ground: newGround(t), plain: plain, rand: rand.New(rand.NewPCG(49, uint64(i)))}
			g.begin()
			g.play(t)
		})
	}
}

// play runs the calls of one script.
func (g *gitGround) play(t *testing.T) {
	outside := g.outside()
	for range 8 {
		var script []string
		for range 1 + g.rand.IntN(4) {
			script = append(script, g.command())
		}
		text := strings.Join(script, "\n")
		g.log = append(g.log, text)
		var inside, out string
		g.call(func() {
			out = g.git(g.dir, GitPrelude+text)
			inside = g.state(g.dir)
		})
		wantOut := g.git(g.plain, text)
		if want := g.state(g.plain); inside != want {
			t.Fatalf("after\n%s\n%s\ninside:\n%s\nplain:\n%s\nout: %s\nplain: %s", strings.Join(g.log, "\n--\n"), "", inside, want, out, wantOut)
		}
		if now := g.outside(); now != outside {
			t.Fatalf("after\n%s\noutside:\n%s\nbefore:\n%s", strings.Join(g.log, "\n--\n"), now, outside)
		}
		if g.rand.IntN(4) == 0 {
			g.kill()
		}
	}
	if _, err := g.k.Keep(g.dir); err != nil {
		t.Fatal(err)
	}
	if kept, want := g.state(g.dir), g.state(g.plain); kept != want {
		t.Errorf("after\n%s\nkept:\n%s\nplain:\n%s", strings.Join(g.log, "\n--\n"), kept, want)
	}
}

// outside returns what stands at held names outside of commands.
func (g *gitGround) outside() string {
	return g.git(g.dir, `find . -path ./.git -prune -o \( -type f -o -type l \) -print | grep -E 'mcp.json|vscode|husky|mise.toml|claude/settings|envrc' | LC_ALL=C sort | while read f; do echo "$f $(cat "$f" | sha256sum) $(stat -c %A "$f")"; done`)
}
