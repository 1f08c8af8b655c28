//go:build slow

package worktree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// commands are what a child may do, each of which may fail.
var commands = []string{
	"echo $N >> a", "echo $N > new$N", "rm -f a", "mv sub sub$N", "ln -s a l$N", "chmod +x a", "mkdir -p d$N/e; echo $N > d$N/e/f", "git add -A", "git commit -qam c$N", "git commit -q --amend -m am$N",
	"git checkout -qb b$N", "git checkout -q --detach", "git stash -q", "git stash pop -q", "git gc -q --prune=now", "git reset -q --hard HEAD", "git checkout -q -", "git init -q n$N; echo $N > n$N/f",
	"rm -rf .git", "git worktree add -q w$N", "git rebase -q HEAD~1", "git rm -q -r --cached .", "git clean -qfd", "rm -rf sub", "git tag t$N", "git merge -q main",
}

// TestKilled kills a host at each step, after random work: what stood in the worktree is on its branch afterwards, or stands there still.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for kill := 1; ; kill++ {
		dir, stateDir := repository(t), filepath.Join(t.TempDir(), "state")
		sh(t, dir, "echo mine >> a; echo u > u")
		before := state(t, dir)
		script := "N=0\nexport GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t GIT_CONFIG_GLOBAL=/dev/null\n"
		for n := range 1 + random.IntN(8) {
			script += fmt.Sprintf("N=%d\n%s\n", n, commands[random.IntN(len(commands))])
		}
		after := []string{"keep", "remove", "resume"}[random.IntN(3)]
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "WORKTREE_HOST="+dir, "WORKTREE_STATE="+stateDir, "WORKTREE_SCRIPT="+script,
			fmt.Sprint("WORKTREE_KILL=", kill), "WORKTREE_AFTER="+after)
		out, err := cmd.CombinedOutput()
		survived := err == nil
		if !survived && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%s\n%v: %s", script, err, out)
		}
		r := In(stateDir)
		for range 2 {
			if err := r.Sweep(t.Context(), time.Now()); err != nil {
				t.Errorf("step %d, %s\n%v", kill, script, err)
			}
		}
		if got := state(t, dir); got != before {
			t.Errorf("step %d, %s\nthe checkout was\n%s\nand is\n%s", kill, script, before, got)
		}
		sh(t, dir, "git fsck --strict")
		checkKept(t, r, dir, stateDir, fmt.Sprintf("step %d, %s", kill, script))
		if survived {
			return
		}
	}
}

// checkKept looks for what stood in the worktree when the host began to end it.
func checkKept(t *testing.T, r Room, dir, stateDir, what string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(stateDir, "done"))
	if err != nil { // killed before
		if left, _ := filepath.Glob(filepath.Join(r.dir, "agent-*")); len(left) > 0 && len(r.List()) == 0 {
			t.Errorf("%s\nleft: %v", what, left)
		}
		return
	}
	branches := strings.Fields(sh(t, dir, "git for-each-ref --format='%(refname)' refs/heads/toolhost"))
	for _, b := range append(branches, "main") {
		at := filepath.Join(t.TempDir(), "at")
		sh(t, dir, "git --work-tree="+t.TempDir()+" read-tree --index-output="+at+" "+b+"; mkdir -p "+at+
			".d; GIT_INDEX_FILE="+at+" git checkout-index -a --prefix="+at+".d/")
		if b == "main" { // what was brought along
			sh(t, dir, "cp a u "+at+".d/")
		}
		cmd := exec.Command("sh", "-c", listing, "sh", at+".d")
		if got, err := cmd.Output(); err == nil && string(got) == string(want) {
			return
		}
	}
	t.Errorf("%s\nis lost: %s\nbranches %v", what, want, branches)
}

// TestDiskFull fails each run of git in turn, as a full disk does: what was to be made is not there, and what stood in a worktree is
// kept until it can be committed.
func TestDiskFull(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	dir, bin := repository(t), t.TempDir()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	count := filepath.Join(bin, "count")
	script := fmt.Sprintf("#!/bin/sh\nn=$(cat %[1]s); echo $((n-1)) > %[1]s\n[ $n != 1 ] || { echo 'fatal: No space left on device' >&2; exit 128; }\nexec %[2]s \"$@\"\n", count, git)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	fail := func(n int) {
		if err := os.WriteFile(count, fmt.Append(nil, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := room(t)
	for n := 1; ; n++ {
		fail(n)
		w, err := r.Make(t.Context(), dir, Spec{Kind: Agent, Dirty: true})
		fail(0)
		if err == nil {
			w.Discard(t.Context())
			break
		}
		if left, _ := filepath.Glob(filepath.Join(r.dir, "*-*")); len(left) > 0 ||
			sh(t, dir, "git for-each-ref | grep toolhost || true") != "" {
			t.Errorf("run %d: %v leaves %v", n, err, left)
		}
	}
	for n, failed := 1, true; failed; n++ {
		w := mustMake(t, r, dir, false)
		sh(t, w.Tree(), "echo c >> a; git commit -qam c; echo d >> a")
		fail(n)
		report, err := w.End(t.Context())
		fail(0)
		if failed = err != nil || len(report.Notes) > 0; failed {
			report = mustEnd(t, w)
		}
		if got := sh(t, dir, "git show "+report.Branch+":a"); got != "one\nc\nd" {
			t.Errorf("run %d: %s", n, got)
		}
	}
}
