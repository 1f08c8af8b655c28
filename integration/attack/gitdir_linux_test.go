package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// gitElsewhere are the ways in which the directory of git lies outside of the workspace. A script makes the workspace and the
// rest in an empty directory.
var gitElsewhere = []struct{ name, script, workspace string }{
	{"linked worktree", `git init -q -b main repo; cd repo; echo x > f; git add f; git commit -q -m x; git worktree add -q ../work`, "work"},
	{"worktree with relative paths", `git init -q -b main repo; cd repo; echo x > f; git add f; git commit -q -m x; git worktree add -q ../work
		printf 'gitdir: ../repo/.git/worktrees/work\n' > ../work/.git; printf '../../../../work/.git\n' > .git/worktrees/work/gitdir`, "work"},
	{"package of a larger repository", `git init -q -b main repo; cd repo; mkdir pkg; echo x > pkg/f; git add pkg; git commit -q -m x`, "repo/pkg"},
	{"submodule", `git init -q -b main sub; (cd sub; echo x > f; git add f; git commit -q -m x); git init -q -b main repo; cd repo
		git -c protocol.file.allow=always submodule --quiet add ../sub work; git commit -q -m x`, "repo/work"},
	{"separate directory", `git init -q -b main --separate-git-dir=../ws.git work; cd work; echo x > f; git add f; git commit -q -m x`, "work"},
	{"link", `git init -q -b main work; cd work; echo x > f; git add f; git commit -q -m x; mv .git ../ws.git; ln -s ../ws.git .git`, "work"},
	{"worktree of a bare repository", `git init -q -b main tmp; (cd tmp; echo x > f; git add f; git commit -q -m x); git clone -q --bare tmp bare.git; git -C bare.git worktree add -q ../work`, "work"},
}

// TestGitElsewhere has commands commit where the directory of git lies outside of the workspace, and attack it.
func TestGitElsewhere(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	for _, c := range samples.Few(gitElsewhere) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newLeftoverGround(t, 0)
			base := filepath.Join(g.root, "base")
			host.Must(t, os.Mkdir(base, 0o755))
			g.must(t, base, "git config --global user.name t; git config --global user.email t@example.org; "+c.script)
			g.ws = filepath.Join(base, c.workspace)
			s := g.start(t)
			r := s.MustCall("Bash", host.Args{"command": "echo y > g; git add g && git commit -q -m y && git status --porcelain && git log --format=%s && git switch -q -c other && git stash list && git gc -q"})
			if !strings.HasPrefix(r, "y\nx") {
				t.Errorf("the command says %s", r)
			}
			if out := g.must(t, g.ws, "git log --format=%s; git status --porcelain; git branch --show-current"); out != "y\nx\nother\n" {
				t.Errorf("outside git says %s", out)
			}
			s.Try("Bash", host.Args{"command": "d=$(git rev-parse --git-common-dir); mkdir -p $d/hooks; printf '#!/bin/sh\ntouch " + g.pwned + "' > $d/hooks/pre-commit; chmod +x $d/hooks/pre-commit; git config core.fsmonitor 'touch " + g.pwned + "'"})
			g.must(t, g.ws, "git status; echo z > z; git add z; git commit -q -m z")
			if _, err := os.Lstat(g.pwned); err == nil {
				t.Error("what a command left ran outside")
			}
			s.End()
		})
	}
}

// TestGitElsewhereForged has a command name a repository of someone else as its own: it stays read-only, also for later hosts.
func TestGitElsewhereForged(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	for i, script := range samples.Of([]string{
		`rm -rf .git; printf 'gitdir: %s\n' $PWD/../other/.git > .git`,
		`rm -rf .git; ln -s ../other/.git .git`,
		`mv .git old; mkdir .git; printf '../../other/.git\n' > .git/commondir; cp ../other/.git/HEAD .git`,
		`rm -rf .git; printf 'gitdir: %s\n' $PWD/../other/.git/worktrees/w > .git`,
	}, 1) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			g := newLeftoverGround(t, 0)
			other := filepath.Join(g.root, "other")
			g.must(t, g.root, "mkdir other; cd other; git init -q; echo x > f; git add f; git commit -q -m x; git worktree add -q ../w; rm -rf ../ws/.git/hooks")
			s := g.start(t)
			call := func(command string) string {
				t.Helper()
				text, _ := s.Try("Bash", host.Args{"command": command})
				return text
			}
			call(script)
			said := call("echo pwned > ../other/.git/pwned; git update-ref refs/heads/pwned HEAD")
			s.Kill()
			s = g.start(t)
			said += call("echo pwned > ../other/.git/pwned; git update-ref refs/heads/pwned HEAD")
			for _, name := range []string{"pwned", "refs/heads/pwned"} {
				if _, err := os.Lstat(filepath.Join(other, ".git", name)); err == nil {
					t.Errorf("%s\nwrote %s of another repository:\n%s", script, name, said)
				}
			}
			s.End()
		})
	}
}
