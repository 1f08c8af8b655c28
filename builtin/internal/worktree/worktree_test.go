package worktree

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
)

// sh runs a script in a directory, with the environment of a person who has no configuration of git.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=t",
		"GIT_AUTHOR_EMAIL=t@example.org",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes a repository with one commit.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "git init -q -b main; mkdir sub; echo one > a; echo two > sub/b; printf '*.log\\n' > .gitignore; git add .; git commit -qm first")
	return dir
}

func room(t *testing.T) Room { return In(filepath.Join(t.TempDir(), "state")) }

func mustMake(t *testing.T, r Room, dir string, dirty bool) *Worktree {
	t.Helper()
	w, err := r.Make(t.Context(), dir, Spec{Kind: Agent, Dirty: dirty})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func mustEnd(t *testing.T, w *Worktree) Report {
	t.Helper()
	r, err := w.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// state is everything that a worktree must leave as it is: files, index, stashes, refs but our own, and configuration.
func state(t *testing.T, dir string) string {
	t.Helper()
	return sh(t, dir, `find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum; d=$(git rev-parse --absolute-git-dir); c=$(git rev-parse --git-common-dir)
		sha256sum $d/index $d/HEAD $c/config; git stash list; git for-each-ref | grep -v toolhost || true; git worktree list`)
}

func TestCleanIsRemoved(t *testing.T) {
	dir, r := repository(t), room(t)
	sh(t, dir, "echo changed >> a; echo new > new; git add new; echo x > x.log")
	before := state(t, dir)
	for _, dirty := range []bool{false, true} {
		w := mustMake(t, r, filepath.Join(dir, "sub"), dirty)
		if !regexp.MustCompile(`^toolhost/agent-[0-9a-f]{8}$`).MatchString(w.BranchName()) ||
			w.Dir() != filepath.Join(w.Tree(), "sub") {
			t.Errorf("branch %s, directory %s", w.BranchName(), w.Dir())
		}
		status := sh(t, w.Tree(), "git status --porcelain; git symbolic-ref HEAD")
		if want := map[bool]string{false: "", true: "M a\n?? new\n"}[dirty] + "refs/heads/" +
			w.BranchName(); status != want {
			t.Errorf("dirty %v: status %q, want %q", dirty, status, want)
		}
		if got := sh(t, dir, "git rev-parse "+w.BranchName()); got != w.Base {
			t.Errorf("the branch begins at %s", got)
		}
		release, err := w.Use()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.End(t.Context()); !errors.Is(err, ErrInUse) {
			t.Errorf("ended while in use: %v", err)
		}
		release()
		if report := mustEnd(t, w); report.Branch != "" {
			t.Errorf("kept: %+v", report)
		}
		if _, err := os.Lstat(w.Tree()); err == nil || sh(t, dir, "git for-each-ref | grep toolhost || true") != "" {
			t.Error("something is left")
		}
	}
	if after := state(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestWork: whatever a child does, what stands in the worktree is on the branch, and the user's checkout is as it was.
func TestWork(t *testing.T) {
	for i, tt := range []struct{ name, script, look, want string }{
		{"edits", "echo more >> a; rm sub/b; echo n > new", "git show $B:a; git show $B:new; git ls-tree -r --name-only $B; git log --format=%s $B", "one\nmore\nn\n.gitignore\na\nnew\ntoolhost: unfinished\nfirst"},
		{"ignored", "echo x > x.log", "git for-each-ref | grep -c toolhost || true", "0"},
		{"commits", "echo c >> a; git commit -qam mine; echo d >> a", "git log --format=%s $B; git show $B:a", "toolhost: unfinished\nmine\nfirst\none\nc\nd"},
		{"a commit alone", "echo c >> a; git commit -qam mine", "git log --format=%s $B", "mine\nfirst"},
		{"another branch", "git checkout -qb other; echo o > o; git add o; git commit -qm other; git checkout -q -", "git log --format=%s $B+other; git log --format=%s $B", "other\nfirst\nfirst"},
		{"detached", "git checkout -q --detach; echo o > o; git add o; git commit -qm loose", "git log --format=%s $B", "loose\nfirst"},
		{"a stash", "echo s >> a; git stash -q", "git show $B+stash:a", "one\ns"},
		{"a packed repository", "echo c >> a; git commit -qam mine; git gc -q --prune=now; git pack-refs --all", "git log --format=%s $B", "mine\nfirst"},
		{"a repository in it", "git init -q in; echo i > in/f; cd in; git add f; git commit -qm i; git init -q empty; echo e > empty/f", "git show $B:in/f; git show $B:in/empty/f; git ls-tree $B in | cut -c1-6", "i\ne\n040000"},
		{"no repository any more", "rm -rf .git; echo x >> a", "git show $B:a; git log --format=%s $B", "one\nx\ntoolhost: unfinished\nfirst"},
		{"a damaged one", "echo c >> a; git commit -qam mine; for f in .git/objects/??/*; do chmod u+w $f; echo x > $f; done", "git show $B:a; git log --format=%s $B", "one\nc\ntoolhost: unfinished\nfirst"},
		{"a mode, a link", "chmod +x a; ln -s a l", "git ls-tree $B a l | cut -c1-6", "100755\n120000"},
		{"a pipe and a closed directory", "mkfifo p; mkdir d; echo d > d/f; chmod 0500 d", "git show $B:d/f", "d"},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			dir, r := repository(t), room(t)
			before := state(t, dir)
			w := mustMake(t, r, dir, false)
			sh(t, w.Tree(), tt.script)
			mustEnd(t, w)
			if got := sh(t, dir, strings.ReplaceAll(tt.look, "$B", w.BranchName())); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
			sh(t, dir, "git fsck --strict")
			if after := state(t, dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

func TestBroughtAlong(t *testing.T) {
	dir, r := repository(t), room(t)
	sh(t, dir, "echo mine >> a; echo u > u")
	w := mustMake(t, r, dir, true)
	sh(t, w.Tree(), "echo theirs >> a")
	report := mustEnd(t, w)
	if got := sh(t, dir, "git log --format=%s "+report.Branch+"; git diff "+report.Branch+"~ "+report.Branch+
		" | grep '^[+-][^+-]'"); got !=
		"toolhost: unfinished\ntoolhost: changes that were not committed\nfirst\n+theirs" {
		t.Error(got)
	}
	var diff bytes.Buffer
	if err := w.Patch(t.Context(), &diff); err != nil || !strings.Contains(diff.String(), "\n+theirs\n") ||
		strings.Contains(diff.String(), "+mine") {
		t.Errorf("%v\n%s", err, &diff)
	}
	if err := w.Discard(t.Context()); err != nil || sh(t, dir, "git for-each-ref | grep toolhost || true") != "" {
		t.Errorf("discarded: %v", err)
	}
}

// TestRefused: what a worktree cannot have is said, and nothing is left.
func TestRefused(t *testing.T) {
	for i, tt := range []struct{ name, script, want string }{
		{"none", "rm -rf .git", "not a git repository"},
		{"unborn", "rm -rf .git; git init -q", "no commit to start from"},
		{"bare", "rm -rf .git; git init -q --bare .", "no work tree"},
		{"a submodule", "git init -q s; git -C s commit -q --allow-empty -m s; git add s 2>/dev/null; git commit -qm s", "has the submodule s"},
		{"LFS", "echo '*.bin filter=lfs' > .gitattributes; echo b > b.bin; git add .; git commit -qm b", `filter "lfs"`},
		{"core.worktree", "mkdir ../elsewhere; git config core.worktree $PWD/../elsewhere", "core.worktree"},
		{"symlinked .git", "mv .git ../moved; ln -s ../moved .git", "symbolic link"},
		{"partial clone", "git config extensions.partialClone origin; git config remote.origin.promisor true", "partial clone"},
		{"damaged", "echo x > .git/HEAD", "git"},
		{"a branch in the way", "git branch toolhost", "toolhost"},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			outer := repository(t)
			dir, r := filepath.Join(outer, "in"), room(t)
			sh(t, outer, "rm -rf sub a .gitignore; mv .git x; mkdir in; mv x in/.git; cd in; git checkout -q .")
			sh(t, dir, tt.script)
			_, err := r.Make(t.Context(), dir, Spec{Kind: Try, Dirty: true})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if (errors.Is(err, ErrNoRepository)) != (tt.name == "none") {
				t.Errorf("taken for no repository: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(r.dir, "*-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestAttacks: nothing that is planted in a worktree, or in a repository, is run or followed by the host.
func TestAttacks(t *testing.T) {
	const plant = `printf '#!/bin/sh\ntouch %s\n' $RAN > /dev/null; p="touch $RAN;"
		git config core.fsmonitor "$p"; git config diff.external "$p"; git config core.hooksPath $PWD/.git/h; git config core.sshCommand "$p"; git config gpg.program "$p"
		git config filter.x.clean "$p cat"; git config filter.x.smudge "$p cat"; git config filter.x.process "$p"; git config diff.x.textconv "$p"; git config diff.x.command "$p"; git config merge.x.driver "$p"
		git config alias.add "!$p"; git config commit.gpgSign true; git config core.editor "$p"; git config core.pager "$p"
		mkdir -p .git/h .git/hooks; for h in post-checkout reference-transaction post-index-change pre-commit post-commit post-rewrite; do printf '#!/bin/sh\ntouch %s\n' $RAN | tee .git/h/$h > .git/hooks/$h; done; chmod +x .git/h/* .git/hooks/*`
	for i, tt := range []struct{ name, parent, child string }{
		{"in the parent", plant, "echo x >> a"},
		{"in the child", "", plant + `; echo '* filter=x diff=x merge=x' > .gitattributes; mkdir -p .git/info; cp .gitattributes .git/info/attributes; echo x >> a`},
		{"in a repository in it", "", "git init -q in; cd in; " + plant + "; echo x > x"},
		{"in the file of another one", "", "mkdir in; cd in; git init -q --separate-git-dir ../real; cd ../real; " + strings.ReplaceAll(plant, ".git/", "") + "; echo x > ../in/x"},
		{"the parent's refs", "", `git update-ref refs/heads/main HEAD~0 2>/dev/null || true; git commit -q --allow-empty -m evil; git update-ref refs/heads/main HEAD; echo x >> a`},
		{"core.worktree", "", `git config core.worktree $SECRET/..; echo x >> a`},
		{".git elsewhere", "", `rm -rf .git; ln -s $SECRET/.git .git; echo x >> a`},
		{".git names another", "", `rm -rf .git; echo "gitdir: $SECRET/.git" > .git; echo x >> a`},
		{"another HEAD", "", `git -C $SECRET rev-parse HEAD > .git/HEAD; echo x >> a`},
		{"alternates", "", `echo $SECRET/.git/objects >> .git/objects/info/alternates; git -C $SECRET rev-parse HEAD > .git/HEAD; echo x >> a`},
		{"objects elsewhere", "", `git -C $SECRET rev-parse HEAD > .git/HEAD; mv .git/objects .git/o; ln -s $SECRET/.git/objects .git/objects; echo x >> a`},
		{"a pack elsewhere", "", `git -C $SECRET rev-parse HEAD > .git/HEAD; rm -r .git/objects/pack; ln -s $SECRET/.git/objects/pack .git/objects/pack; echo x >> a`},
		{"a link out", "", `ln -s $SECRET out; rm -r sub; ln -s $SECRET sub; echo x >> a`},
		{"pipes", "", `rm .git/HEAD .git/packed-refs; mkfifo .git/HEAD .git/packed-refs .git/refs/heads/p .git/objects/pack/pack-0000000000000000000000000000000000000000.pack; echo x >> a`},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, r, away := repository(t), room(t), t.TempDir()
			ran, secret := filepath.Join(away, "ran"), filepath.Join(away, "secret")
			sh(t, away, "git init -q secret; cd secret; echo told > secret; git add .; git commit -qm secret; git gc -q")
			set := "RAN=" + ran + "; SECRET=" + secret + "; "
			sh(t, dir, set+tt.parent+"\nrm -f $RAN")
			before := sh(t, dir, "cat a sub/b; git rev-parse main; cat .git/config")
			w := mustMake(t, r, dir, true)
			sh(t, w.Tree(), set+tt.child+"\nrm -f $RAN")
			report := mustEnd(t, w)
			if _, err := os.Lstat(ran); err == nil {
				t.Error("a planted program was run")
			}
			os.Remove(ran)
			sh(t, dir, "git config core.fsmonitor false; git config core.hooksPath /dev/null; git config --unset diff.external || true")
			if report.Branch == "" || strings.Contains(sh(t, dir, "git log -p "+report.Branch), "told") {
				t.Errorf("%+v holds what the child could not read", report)
			}
			sh(t, dir, "git config core.worktree 2>/dev/null && exit 1; test $(git rev-parse main) = "+
				strings.Fields(before)[2])
		})
	}
}

// TestSettings: what the settings of the workspace deny is denied in the worktree, and is no change.
func TestSettings(t *testing.T) {
	for _, dirty := range []bool{false, true} {
		dir, r := repository(t), room(t)
		sh(t, dir, "mkdir .claude .toolhost; echo '{}' > .claude/settings.json; git add .; git commit -qm s; echo .claude/settings.local.json >> .gitignore; git commit -qam i; echo '{ }' > .claude/settings.local.json; echo '{  }' > .toolhost/toolhost.json")
		w := mustMake(t, r, dir, dirty)
		if got := sh(t, w.Tree(), "cat .claude/* .toolhost/*; git status --porcelain"); got != "{}\n{ }\n{  }" {
			t.Errorf("dirty %v: %s", dirty, got)
		}
		if report := mustEnd(t, w); report.Branch != "" {
			t.Errorf("dirty %v: they are a change: %+v", dirty, report)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	dir, r := repository(t), room(t)
	var wait sync.WaitGroup
	branches := make([]string, 8)
	for i := range branches {
		wait.Go(func() {
			w, err := r.Make(t.Context(), dir, Spec{Kind: Agent, Dirty: i%2 == 0})
			if err == nil {
				err = os.WriteFile(filepath.Join(w.Tree(), "new"), []byte(w.Name), 0o600)
			}
			if err == nil {
				var report Report
				report, err = w.End(t.Context())
				branches[i] = report.Branch
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	slices.Sort(branches)
	if n := len(slices.Compact(slices.Clone(branches))); n != 8 || branches[0] == "" {
		t.Errorf("branches: %v", branches)
	}
	for _, b := range branches {
		if got := sh(t, dir, "git show "+b+":new"); "toolhost/"+got != b {
			t.Errorf("%s holds the file of %s", b, got)
		}
	}
}

func TestKeptForThirtyDays(t *testing.T) {
	dir, r := repository(t), room(t)
	w := mustMake(t, r, dir, false)
	sh(t, w.Tree(), "echo x >> a")
	report := mustEnd(t, w)
	if list := r.List(); len(list) != 1 || list[0].Branch != report.Branch {
		t.Errorf("listed: %+v", list)
	}
	w.Close()
	now := time.Now()
	if err := r.Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	sh(t, w.Tree(), "echo later >> a") // a person goes on there
	if err := r.Sweep(t.Context(), now.Add(keepFor+time.Hour)); err != nil {
		t.Fatal(err)
	}
	if list := r.List(); len(list) != 0 || sh(t, dir, "git show "+report.Branch+":a") != "one\nx\nlater" {
		t.Errorf("listed after 30 days: %+v", list)
	}
}

// TestHidden: what rules keep from being read is not in the worktree, not in what is brought along, and no change.
func TestHidden(t *testing.T) {
	for _, dirty := range []bool{false, true} {
		dir, r := repository(t), room(t)
		sh(t, dir, "echo old > secret; mkdir keys; echo k > keys/k; git add .; git commit -qm s; echo told >> secret; echo told > untracked; echo told > keys/new; echo x > x")
		hidden := func(path string, _ bool) bool {
			return slices.Contains([]string{"secret", "untracked", "keys"}, filepath.Base(path))
		}
		w, err := r.Make(t.Context(), dir, Spec{Kind: Agent, Dirty: dirty, Hidden: hidden})
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{false: "a\nsub", true: "a\nsub\nx\n?? x"}[dirty]
		if got := sh(t, w.Tree(), "ls; git status --porcelain"); got != want {
			t.Errorf("dirty %v: %s", dirty, got)
		}
		if got := sh(t, dir, "git cat-file --batch-all-objects --batch | grep -c told || true"); got != "0" {
			t.Error("a hidden file was copied")
		}
		sh(t, w.Tree(), "echo y >> a; git add -A; git commit -qm y; echo z > z")
		mustEnd(t, w)
		var diff bytes.Buffer
		if err := w.Patch(t.Context(), &diff); err != nil || strings.Count(diff.String(), "\ndiff --git ") != 2 ||
			!strings.Contains(diff.String(), "b/a\n") || !strings.Contains(diff.String(), "b/z\n") {
			t.Errorf("dirty %v: %v %q", dirty, err, &diff)
		}
		m, err := w.Merge(t.Context(), hidden)
		if err != nil || len(m.Changes) != 2 || len(m.Conflicts) != 0 {
			t.Errorf("dirty %v: %v %+v", dirty, err, m)
		}
		m.Close()
		if got := sh(t, dir, "git cat-file --batch-all-objects --batch | grep -c told || true"); got != "0" {
			t.Error("a hidden file was copied for the merge")
		}
		w.Close()
	}
}
