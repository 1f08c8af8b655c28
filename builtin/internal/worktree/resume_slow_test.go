//go:build slow

package worktree

import (
	"strings"
	"testing"
)

// TestResumeAttacks resumes worktrees in which a child has made links to lead the host elsewhere.
func TestResumeAttacks(t *testing.T) {
	for name, script := range map[string]string{
		"refs": "rm -rf .git/refs; ln -s $OUT .git/refs", "heads": "mkdir -p .git/refs; rm -rf .git/refs/heads; ln -s $OUT .git/refs/heads",
		"HEAD": "rm .git/HEAD; ln -s $OUT/HEAD .git/HEAD", "index": "rm -f .git/index; ln -s $OUT/index .git/index",
		"git": "mv .git $OUT/moved; ln -s $OUT/moved .git", "a file": "rm -rf .git; echo gitdir: $OUT > .git",
		"hooks":  "mkdir -p .git/hooks; for h in post-checkout reference-transaction post-index-change pre-commit; do printf '#!/bin/sh\\ntouch %s\\n' $OUT/ran > .git/hooks/$h; chmod +x .git/hooks/$h; done",
		"config": "git config core.fsmonitor 'touch '$OUT/ran; git config core.worktree $OUT; git config core.hooksPath $OUT",
	} {
		if testing.Short() && name != "hooks" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir, r, out := repository(t), room(t), t.TempDir()
			before := state(t, dir)
			w := mustMake(t, r, dir, false)
			sh(t, w.Tree(), "echo 1 >> a\nOUT="+out+"\n"+script)
			mustEnd(t, w)
			w.Close()
			list := func() string { return sh(t, out, "find . -type f | sort | xargs -r sha256sum") }
			outside := list()
			w, err := r.Resume(t.Context(), w.Name, "")
			if err != nil {
				t.Fatal(err)
			}
			mustEnd(t, w)
			w.Close()
			if now := list(); now != outside || strings.Contains(now, "ran") {
				t.Errorf("outside of the worktree:\n%s\nbefore:\n%s", now, outside)
			}
			if got := sh(t, dir, "git show "+w.BranchName()+":a"); got != "one\n1" {
				t.Errorf("the work is %q", got)
			}
			if after := state(t, dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}
