//go:build slow

package worktree

import (
	"fmt"
	"runtime"
	"testing"
)

func TestOtherParents(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	for name, script := range map[string]string{
		"a linked worktree": "git worktree add -q ../linked-$$ -b side; cd ../linked-$$; echo s >> a; git commit -qam side; pwd",
		"detached":          "git checkout -q --detach; echo s >> a; git commit -qam side; pwd",
		"sha256":            "rm -rf .git; git init -q --object-format=sha256; git add .; git commit -qm side; pwd",
		"alternates":        "git clone -q -s . ../shared-$$; cd ../shared-$$; git commit -q --allow-empty -m side; pwd",
		"relative ones":     "git init -q ../rel-$$; echo ../../../$(basename $PWD)/.git/objects > ../rel-$$/.git/objects/info/alternates; cd ../rel-$$; git fetch -q ../$(basename $OLDPWD) main; git reset -q --hard FETCH_HEAD; git commit -q --allow-empty -m side; pwd",
		"shallow":           "git commit -q --allow-empty -m side; git clone -q --depth 1 file://$PWD ../shallow-$$; cd ../shallow-$$; pwd",
		"sparse":            "git sparse-checkout set --cone; git commit -q --allow-empty -m side; pwd",
	} {
		t.Run(name, func(t *testing.T) {
			dir, r := sh(t, repository(t), script), room(t)
			before := state(t, dir)
			w := mustMake(t, r, dir, true)
			sh(t, w.Tree(), "git log --oneline; git fsck; echo w > w; git add w; git commit -qm w; echo x > x")
			report := mustEnd(t, w)
			if got := sh(t, dir, "git log --format=%s -3 "+report.Branch); got != "toolhost: unfinished\nw\nside" {
				t.Error(got)
			}
			if after := state(t, dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// TestLargeCommit: the host does not hold what a child committed in its memory.
func TestLargeCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	const size = 32 << 20
	dir, r := repository(t), room(t)
	w := mustMake(t, r, dir, false)
	sh(t, w.Tree(), fmt.Sprintf("head -c %d /dev/urandom > large; git add large; git commit -qm large", size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mustEnd(t, w)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > size/2 {
		t.Errorf("%d bytes were allocated for a commit of %d", got, size)
	}
	if got, want := sh(t, dir, "git cat-file -s "+w.BranchName()+":large"), fmt.Sprint(size); got != want {
		t.Errorf("the branch has %s bytes of it, want %s", got, want)
	}
}
