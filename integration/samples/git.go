package samples

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Git makes random scripts of git commands that move the files of a tree, protected ones among them.
type Git struct{ *rand.Rand }

// NewGit returns one whose scripts depend on the seed only.
func NewGit(seed uint64) *Git { return &Git{rand.New(rand.NewPCG(49, seed))} }

// gitProtected are protected names of each kind, and gitNames these and others.
var (
	gitProtected = []string{".mcp.json", ".vscode/settings.json", ".vscode/tasks.json", ".husky/pre-commit",
		"mise.toml", ".claude/settings.json", "pkg/.envrc", ".claude/commands/c.md", "CLAUDE.md"}
	gitNames = append(slices.Clone(gitProtected), "a.txt", "sub/b.txt")
)

// GitEnv are variables with which equal scripts make equal commits.
var GitEnv = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t",
	"GIT_COMMITTER_EMAIL=t@example.org", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "LC_ALL=C"}

const (
	gitFiles = `find . -path ./.git -prune -o \( -type f -o -type l \) -print`
	describe = ` | LC_ALL=C sort | xargs -rd '\n' sh -c 'sha256sum "$@"; stat -c "%n %A" "$@"' x`

	// GitState is a script that prints the tree, HEAD, the branches and the state of the index.
	GitState = gitFiles + describe + "\ngit status --porcelain -uall; git rev-parse HEAD; git for-each-ref; git stash list; git ls-files -s"
	// HeldState is a script that prints what stands at the names that are held.
	HeldState = gitFiles + ` | grep -E 'mcp.json|vscode|husky|mise.toml|claude/settings|envrc'` + describe
)

// Begin returns a script that makes a repository with three branches.
func (g *Git) Begin() string {
	script := "git init -q -b main .; git config core.hooksPath /dev/null; git config merge.conflictStyle merge\n"
	add := func(text string, names ...string) {
		for _, n := range names {
			script += fmt.Sprintf("mkdir -p $(dirname %s); echo %s > %s\n", n, text, n)
		}
		script += "git add -A; git commit -q -m " + text + "\n"
	}
	some := func() []string {
		return slices.DeleteFunc(slices.Clone(gitNames), func(string) bool { return g.IntN(2) == 0 })
	}
	add("base", append(some(), "a.txt")...)
	script += "git checkout -q -b one\n"
	add("one", append(some(), "one.txt")...)
	script += "git checkout -q main; git checkout -q -b two\n"
	add("two", append(some(), "two.txt")...)
	return script + "git checkout -q main\n"
}

// Next returns the script of a call: one to four commands.
func (g *Git) Next() string {
	var script []string
	for range 1 + g.IntN(4) {
		script = append(script, g.command())
	}
	return strings.Join(script, "\n")
}

func (g *Git) command() string {
	pick := func(list ...string) string { return list[g.IntN(len(list))] }
	name, branch, text := pick(gitNames...), pick("main", "one", "two"), pick("red", "green", "blue")
	write := fmt.Sprintf("mkdir -p $(dirname %s); echo %s > %s", name, text, name)
	return pick(
		"git checkout -q "+branch, "git checkout -q "+branch, "git switch -q --discard-changes "+branch, "git checkout -q -f "+branch, "git checkout "+branch+" -- "+name,
		"git merge -q --no-edit "+branch, "git merge -q --ff-only "+branch, "git merge -q -X theirs --no-edit "+branch, "git merge --abort", "git merge -q --squash "+branch,
		"git rebase -q "+branch, "git rebase -q -X theirs "+branch, "git rebase -q -x false "+branch, "git rebase --abort", "git rebase --continue", "git cherry-pick "+branch, "git cherry-pick --abort", "git revert --no-edit HEAD",
		"git reset -q --hard "+branch, "git reset -q --hard HEAD", "git reset -q "+branch, "git reset -q --soft "+branch, "git restore "+name, "git restore -s "+branch+" "+name,
		"git stash -q", "git stash -q -u", "git stash pop -q", "git stash drop -q", "git clean -fdq", "git clean -fdxq",
		"git rm -q -f "+name, "mkdir -p moved; git mv -f "+name+" moved/x", "git add -A", "git commit -q -a -m "+text, "git add -A; git commit -q -m "+text, "git commit -q --amend -a --no-edit",
		"git update-index -q --refresh; git apply --3way <(git diff HEAD "+branch+")", "git read-tree -u --reset "+branch, "git checkout-index -f -a", "git format-patch -1 --stdout "+branch+" > .git/p; git am -q .git/p", "git am --abort",
		write, write, "rm -f "+name, "rm -rf $(dirname "+name+"/x)", "chmod +x "+name,
		"git update-index --refresh -q", "git worktree add -q ../wt-$$ "+branch+"; rm -rf ../wt-$$; git worktree prune",
	)
}
