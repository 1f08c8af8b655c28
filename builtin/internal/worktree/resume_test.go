package worktree

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
)

// TestResume works in a worktree again: what is committed then follows what was left, and nothing of it shows as changed.
func TestResume(t *testing.T) {
	for i, tt := range []struct{ name, first, then, log string }{
		{"edits", "echo 1 >> a", "echo 2 >> a; git commit -qam second", "second\ntoolhost: unfinished\nfirst"},
		{"commits and edits", "echo 1 >> a; git commit -qam mine; echo n > n", "git add n; echo 2 >> a; git commit -qam second; echo 3 >> a", "toolhost: unfinished\nsecond\ntoolhost: unfinished\nmine\nfirst"},
		{"nothing more", "echo 1 >> a", "true", "toolhost: unfinished\nfirst"},
		{"edits again", "echo 1 >> a", "echo 2 >> a", "toolhost: unfinished\ntoolhost: unfinished\nfirst"},
		{"detached", "git checkout -q --detach; echo 1 >> a; git commit -qam loose", "echo 2 >> a; git commit -qam second", "second\nloose\nfirst"},
		{"another branch", "git checkout -qb other; echo 1 >> a; git commit -qam other", "echo 2 >> a; git commit -qam second", "second\nother\nfirst"},
		{"packed refs", "echo 1 >> a; git commit -qam mine; git pack-refs --all; git gc -q --prune=now", "echo 2 >> a; git commit -qam second", "second\nmine\nfirst"},
		{"staged", "echo 1 >> a; git add a; git rm -q sub/b", "echo 2 >> a; git commit -qam second", "second\ntoolhost: unfinished\nfirst"},
		{"no repository any more", "echo 1 >> a; rm -rf .git", "echo 2 >> a", "toolhost: unfinished\ntoolhost: unfinished\nfirst"},
	} {
		if i%samples.Step(1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			dir, r := repository(t), room(t)
			before := state(t, dir)
			w := mustMake(t, r, dir, false)
			sh(t, w.Tree(), tt.first)
			mustEnd(t, w)
			w.Close()
			w, err := r.Resume(t.Context(), w.Name, "")
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := os.Lstat(filepath.Join(w.Tree(), ".git")); err == nil {
				if got := sh(t, w.Tree(), "git status --porcelain; git symbolic-ref HEAD; git rev-parse HEAD"); got != "refs/heads/"+w.BranchName()+"\n"+w.Commit {
					t.Errorf("status: %s, expected %s", got, w.Commit)
				}
			}
			soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if again, err := r.Resume(soon, w.Name, ""); err == nil {
				again.Close()
				t.Error("a worktree in use was resumed")
			}
			sh(t, w.Tree(), tt.then)
			report := mustEnd(t, w)
			if report.Branch != w.BranchName() || len(report.Others)+len(report.Notes) > 0 && tt.name != "another branch" {
				t.Errorf("%+v", report)
			}
			if got := sh(t, dir, "git log --format=%s "+report.Branch); got != tt.log {
				t.Errorf("log:\n%s\nwant:\n%s", got, tt.log)
			}
			if after := state(t, dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
			sh(t, dir, "git fsck --strict")
		})
	}
}

// TestOwned keeps the worktree of a conversation until it has left, and takes names and a base.
func TestOwned(t *testing.T) {
	dir, r := repository(t), room(t)
	sh(t, dir, "git branch old; echo more >> a; git commit -qam second; git branch toolhost/taken")
	for _, spec := range []Spec{{Kind: Agent, Base: "none"}, {Kind: Agent, Base: "--all"},
		{Kind: Agent, Base: "HEAD:a"}, {Kind: Agent, Branch: "taken"}, {Kind: Agent, Branch: "taken/below"}} {
		if _, err := r.Make(t.Context(), dir, spec); err == nil {
			t.Errorf("%+v was made", spec)
		}
	}
	if got := sh(t, dir, "git for-each-ref --format='%(refname)' refs/heads/toolhost"); got != "refs/heads/toolhost/taken" {
		t.Errorf("refusals changed the branches: %s", got)
	}
	w, err := r.Make(t.Context(), dir, Spec{Kind: Agent, Branch: "mine", Base: "old", Owner: "me", Dirty: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := sh(t, w.Tree(), "git log --format=%s; git symbolic-ref HEAD"); got != "first\nrefs/heads/toolhost/mine" {
		t.Errorf("it begins with %s", got)
	}
	if work, err := w.Work(t.Context()); work != "" || err != nil {
		t.Errorf("work: %q, %v", work, err)
	}
	mustEnd(t, w)
	w.Close()
	if name := r.Find(func(m Meta) bool { return m.Owner == "me" }); name != w.Name {
		t.Fatalf("found %q", name)
	}
	if w, err = r.Resume(t.Context(), w.Name, "me"); err != nil {
		t.Fatal(err)
	}
	sh(t, w.Tree(), "echo x >> a; echo y > y")
	if work, err := w.Work(t.Context()); !strings.Contains(work, "2 files changed") || err != nil {
		t.Errorf("work: %q, %v", work, err)
	}
	if report, err := w.Leave(t.Context()); err != nil || report.Branch != "toolhost/mine" ||
		!strings.Contains(w.Summary(), "git merge toolhost/mine") {
		t.Errorf("%+v, %v, %s", report, err, w.Summary())
	}
	if name := r.Find(func(m Meta) bool { return m.Owner == "me" }); name != "" {
		t.Errorf("%s is owned still", name)
	}
	w.Close()
}

// TestPlantedSource makes worktrees of repositories that a command has prepared to lead the host to what rules hide from it.
func TestPlantedSource(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const canary = "canary7391"
	prepare := func(t *testing.T) (dir, secret, key string) {
		secret = repository(t)
		sh(t, secret, "echo "+canary+" > key; git add key; git commit -qm secret; echo "+canary+" > plain")
		return repository(t), secret, sh(t, secret, "git rev-parse HEAD")
	}
	denied := func(secret string) Hidden {
		return func(path string, _ bool) bool { return path == secret || strings.HasPrefix(path, secret+"/") }
	}
	scripts := map[string]string{
		"alternates":             "echo $S/.git/objects > .git/objects/info/alternates",
		"alternates, relative":   "echo ../../../$(basename $(dirname $S))/$(basename $S)/.git/objects > .git/objects/info/alternates",
		"alternates, quoted":     "echo \"\\\"$S/.git/objects\\\"\" > .git/objects/info/alternates",
		"alternates, in a row":   "git init -q --bare $PWD/sub/other; echo $PWD/sub/other/objects > .git/objects/info/alternates; echo $S/.git/objects > sub/other/objects/info/alternates",
		"alternates by a link":   "ln -s $S/.git/objects sub/objects; echo $PWD/sub/objects > .git/objects/info/alternates",
		"alternates' packs":      "mkdir -p sub/o/info; ln -s $S/.git/objects/pack sub/o/pack; echo $PWD/sub/o > .git/objects/info/alternates",
		"a common directory":     "echo $S/.git > .git/commondir",
		"a git directory":        "mv .git away; echo gitdir: $S/.git > .git",
		"a linked git":           "mv .git away; ln -s $S/.git .git",
		"a ref of the alternate": "echo $S/.git/objects > .git/objects/info/alternates; echo $K > .git/refs/heads/evil",
		"objects":                "rm -rf .git/objects; ln -s $S/.git/objects .git/objects; echo $K > .git/refs/heads/main",
		"packs":                  "rm -rf .git/objects/pack; (cd $S; git gc -q); ln -s $S/.git/objects/pack .git/objects/pack; echo $K > .git/refs/heads/main",
		"fan-out":                "cd .git/objects; for d in $S/.git/objects/??; do b=$(basename $d); rm -rf $b; ln -s $d $b; done; echo $K > ../refs/heads/evil",
		"a loose object":         "cd .git/objects; for d in $S/.git/objects/??; do b=$(basename $d); mkdir -p $b; for f in $d/*; do ln -sf $f $b/; done; done; echo $K > ../refs/heads/evil",
		"a pack file":            "(cd $S; git gc -q); mkdir -p .git/objects/pack; ln -s $S/.git/objects/pack/* .git/objects/pack/; echo $K > .git/refs/heads/evil",
		"a ref by a link":        "cd .git/objects; for d in $S/.git/objects/??; do b=$(basename $d); rm -rf $b; ln -s $d $b; done; ln -s $S/.git/refs/heads/main ../refs/heads/evil",
		"refs by a link":         "echo $S/.git/objects > .git/objects/info/alternates; ln -s $S/.git/refs/heads .git/refs/heads/x; ln -s $S/.git/refs/heads/main .git/refs/heads/evil",
		"an alternate of links":  "mkdir -p sub/o; for d in $S/.git/objects/??; do ln -s $d sub/o/; done; echo $PWD/sub/o > .git/objects/info/alternates; echo $K > .git/refs/heads/evil",
		"refs":                   "rm -rf .git/refs; ln -s $S/.git/refs .git/refs",
	}
	for _, name := range []string{"info/exclude", "info/attributes", "shallow", "packed-refs", "index", "HEAD",
		"refs/heads/main"} {
		scripts["link "+name] = "mkdir -p .git/info; rm -rf .git/" + name + "; ln -s $S/plain .git/" + name
	}
	for _, name := range samples.Of(slices.Sorted(maps.Keys(scripts)), 1) {
		script := scripts[name]
		t.Run(name, func(t *testing.T) {
			dir, secret, key := prepare(t)
			sh(t, dir, "S="+secret+" K="+key+"\n"+script)
			r := room(t)
			for _, base := range []string{"", key, "evil"} {
				w, err := r.Make(t.Context(), dir, Spec{Kind: Agent, Base: base, Dirty: true, Hidden: denied(secret)})
				if err != nil {
					continue
				}
				if got := sh(t, w.Tree(), "grep -ral "+canary+
					" . || true; git show HEAD:key 2>/dev/null || true"); got != "" {
					t.Errorf("base %q: the worktree has %s", base, got)
				}
				w.Discard(t.Context())
			}
			if left, _ := filepath.Glob(filepath.Join(r.dir, "*-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	dir, _, _ := prepare(t)
	loose := sh(t, dir, "git commit-tree -m loose HEAD^{tree}")
	for _, base := range []string{loose, loose[:7]} {
		if _, err := room(t).Make(t.Context(), dir, Spec{Kind: Agent, Base: base}); err == nil {
			t.Errorf("a worktree of %s, which is on no branch", base)
		}
	}
}
