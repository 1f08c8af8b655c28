//go:build slow

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A leftover is what a command leaves behind so that git executes something outside of the sandbox. The script runs in the
// workspace; $ADD and $OPEN are other directories that commands may write, $EVIL a program's text. The look is where git is
// used afterwards.
type leftover struct{ name, script, look string }

var leftoverScripts = []leftover{
	{"setting", `git config core.fsmonitor "$EVIL"`, "."},
	{"setting by a rename", `cp .git/config x; git config -f x core.fsmonitor "$EVIL"; mv x .git/config`, "."},
	{"hook", `echo "$EVIL" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, "."},
	{"hook in a new directory", `mkdir -p bare/.git/hooks; git init -q bare; echo "$EVIL" > bare/.git/hooks/pre-commit; chmod +x bare/.git/hooks/pre-commit`, "bare"},
	{"hook that is a link", `git init -q n; echo "$EVIL" > evil; chmod +x evil; ln -s ../../../evil n/.git/hooks/pre-commit`, "n"},
	{"hooks that are a link", `git init -q n; rm -r n/.git/hooks; mkdir h; ln -s ../../h n/.git/hooks; echo "$EVIL" > h/pre-commit; chmod +x h/pre-commit`, "n"},
	{"hook that only its owner may run", `git init -q n; echo "$EVIL" > n/.git/hooks/pre-commit; chmod 100 n/.git/hooks/pre-commit; chmod 500 n/.git/hooks/pre-commit; chmod 300 n/.git/hooks`, "n"},
	{"nested", `git init -q a/b/c/d; git -C a/b/c/d config core.fsmonitor "$EVIL"`, "a/b/c/d"},
	{"nested, moved", `git init -q x; git -C x config core.fsmonitor "$EVIL"; mkdir -p y; mv x y/z`, "y/z"},
	{"nested, moved in parts", `git init -q x; mv x/.git g; mv g/config c; mkdir z; mv g z/.git; git config -f c core.fsmonitor "$EVIL"; mv c z/.git/config`, "z"},
	{"another directory", `git init -q "$ADD/n"; git -C "$ADD/n" config core.fsmonitor "$EVIL"`, "$ADD/n"},
	{"another directory itself", `git init -q "$ADD"; git -C "$ADD" config core.fsmonitor "$EVIL"`, "$ADD"},
	{"an opened directory", `git init -q "$OPEN/n"; git -C "$OPEN/n" config core.fsmonitor "$EVIL"`, "$OPEN/n"},
	{"hook in an opened directory", `git init -q "$OPEN/n"; echo "$EVIL" > "$OPEN/n/.git/hooks/pre-commit"; chmod +x "$OPEN/n/.git/hooks/pre-commit"`, "$OPEN/n"},
	{"bare", `git init -q --bare n; git -C n config core.bare false; git -C n config core.worktree .; git -C n config core.fsmonitor "$EVIL"`, "n"},
	{"bare with an empty .git", `git init -q --bare n; mkdir n/.git; git -C n config core.bare false; git -C n config core.worktree .; git -C n config core.fsmonitor "$EVIL"`, "n"},
	{"common directory", `git init -q x; git -C x config core.fsmonitor "$EVIL"; mkdir -p n/.git; cp x/.git/HEAD n/.git; echo ../../x/.git > n/.git/commondir`, "n"},
	{"common directory without HEAD", `git init -q x; git -C x config core.fsmonitor "$EVIL"; mv x/.git y; mv y/HEAD h; mkdir -p y/worktrees/n n; mv h y/worktrees/n/HEAD; echo ../.. > y/worktrees/n/commondir; echo "gitdir: ../y/worktrees/n" > n/.git`, "n"},
	{"bare with a common directory", `git init -q x; git -C x config extensions.worktreeConfig true; git -C x config core.repositoryFormatVersion 1; mkdir n; cp x/.git/HEAD n; echo ../x/.git > n/commondir; git config -f n/config.worktree core.bare false; git config -f n/config.worktree core.worktree "$PWD"; git config -f n/config.worktree core.fsmonitor "$EVIL"`, "n"},
	{"settings of a work tree", `git init -q n; git -C n config extensions.worktreeConfig true; git -C n config --worktree core.fsmonitor "$EVIL"`, "n"},
	{".git file", `mkdir n; git init -q --separate-git-dir=store n; git config -f store/config core.fsmonitor "$EVIL"`, "n"},
	{".git file into .git", `git init -q n; mv n/.git .git/hidden; echo "gitdir: ../.git/hidden" > n/.git; git -C n config core.fsmonitor "$EVIL"`, "n"},
	{".git file to the temporary files", `git init -q n; git -C n config core.fsmonitor "$EVIL"; mv n/.git "$TMPDIR/g"; echo "gitdir: $TMPDIR/g" > n/.git`, "n"},
	{".git link to the temporary files", `git init -q n; git -C n config core.fsmonitor "$EVIL"; mv n/.git "$TMPDIR/g2"; ln -s "$TMPDIR/g2" n/.git`, "n"},
	{".git file through a link", `git init -q n; git -C n config core.fsmonitor "$EVIL"; mv n/.git "$TMPDIR/g3"; ln -s "$TMPDIR" t; echo "gitdir: ../t/g3" > n/.git`, "n"},
	{"submodule", `git init -q .git/modules/m; mv .git/modules/m/.git/* .git/modules/m; mkdir m; echo "gitdir: ../.git/modules/m" > m/.git; git config -f .git/modules/m/config core.fsmonitor "$EVIL"`, "m"},
	{"hook of a submodule", `git init -q .git/modules/m; mv .git/modules/m/.git/* .git/modules/m; mkdir m; echo "gitdir: ../.git/modules/m" > m/.git; echo "$EVIL" > .git/modules/m/hooks/pre-commit; chmod +x .git/modules/m/hooks/pre-commit`, "m"},
	{"submodule called refs", `git init -q .git/modules/refs; mv .git/modules/refs/.git/* .git/modules/refs; mkdir m; echo "gitdir: ../.git/modules/refs" > m/.git; git config -f .git/modules/refs/config core.fsmonitor "$EVIL"`, "m"},
	{"work tree", `git worktree add -q wt; git -C wt config core.fsmonitor "$EVIL"`, "wt"},
	{"unreadable", `git init -q n; git -C n config core.fsmonitor "$EVIL"; chmod 111 n`, "n"},
	{"unreadable, deep", `git init -q n; git -C n config core.fsmonitor "$EVIL"; chmod 100 n/.git; chmod 100 n`, "n"},
	{"by an include", `git config -f inc core.fsmonitor "$EVIL"; git config include.path ../inc`, "."},
	{"by an alias of the old form", `git init -q n; printf '[CORE]\n\tFsMonitor = "%s"\n' "$EVIL" >> n/.git/config`, "n"},
	{"hooks path", `mkdir hh; echo "$EVIL" > hh/pre-commit; chmod +x hh/pre-commit; git config core.hooksPath "$PWD/hh"`, "."},
	{"filter", `echo '* filter=x' > .gitattributes; git config filter.x.clean "$EVIL"; echo new >> f`, "."},
	{"many directories", `mkdir -p d/{1..50}/{1..50}; git init -q d/50/50; git -C d/50/50 config core.fsmonitor "$EVIL"`, "d/50/50"},
}

// runs uses git outside of the sandbox, and reports whether that ran the evil program.
func (g *leftoverGround) runs(look string) bool {
	look = strings.NewReplacer("$ADD", g.add, "$OPEN", g.open).Replace(look)
	if !filepath.IsAbs(look) {
		look = filepath.Join(g.ws, look)
	}
	os.Remove(g.pwned)
	_, _ = g.outside(g.ws, "chmod u+rwx "+shellWord(look)+" "+shellWord(look+"/.git")+" "+shellWord(look+"/.git/hooks")+
		" 2>/dev/null; true")
	_, _ = g.outside(look, "git status; git diff; git add -A; git commit -q --allow-empty -m x")
	_, err := os.Lstat(g.pwned)
	return err == nil
}

// script returns a command that runs a script in the sandbox, whose text the guard does not see.
func (g *leftoverGround) script(t *testing.T, script string) string {
	t.Helper()
	text := fmt.Sprintf("export ADD=%s OPEN=%s EVIL='touch %s'\n%s", g.add, g.open, g.pwned, script)
	host.Must(t, os.WriteFile(filepath.Join(g.root, "plant.txt"), []byte(text), 0o644))
	program := filepath.Join(g.root, "plant.py")
	host.Must(t, os.WriteFile(program, fmt.Appendf(nil, "import subprocess\nsubprocess.call(['bash', %q])\n", filepath.Join(g.root, "plant.txt")), 0o644))
	return "python3 " + program
}

// plantLeftovers runs f for every so many leftovers, on a ground of its own each.
func plantLeftovers(t *testing.T, user, step int, f func(t *testing.T, g *leftoverGround, l leftover)) {
	for _, l := range samples.Of(leftoverScripts, step) {
		t.Run(strings.ReplaceAll(l.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			f(t, newLeftoverGround(t, user), l)
		})
	}
}

// TestAttackLeftover leaves behind what makes git execute something, and uses git afterwards.
func TestAttackLeftover(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	t.Run("control", func(t *testing.T) {
		plantLeftovers(t, 0, 3, func(t *testing.T, g *leftoverGround, l leftover) {
			if out, err := g.outside(g.ws, "mkdir -p .git/hooks; export TMPDIR="+shellWord(g.root)+"; "+
				l.script); err != nil || !g.runs(l.look) {
				t.Errorf("git does not execute it: %v\n%s", err, out)
			}
		})
	})
	t.Run("root", func(t *testing.T) { attackLeftover(t, 0, 2) })
	if os.Geteuid() == 0 {
		t.Run("user", func(t *testing.T) { attackLeftover(t, ordinaryUser, 6) })
	}
}

// attackLeftover tries leftovers after a command, and some while a task runs, in commands that overlap, and with a kill of the host.
func attackLeftover(t *testing.T, user, step int) {
	t.Run("after", func(t *testing.T) { plantLeftovers(t, user, step, leaveAfter) })
	t.Run("task", func(t *testing.T) { plantLeftovers(t, user, 4*step, leaveInTask) })
	t.Run("overlap", func(t *testing.T) { plantLeftovers(t, user, 5*step, leaveOverlapping) })
	t.Run("killed", func(t *testing.T) { plantLeftovers(t, user, 4*step, leaveKilled) })
}

func leaveAfter(t *testing.T, g *leftoverGround, l leftover) {
	s := g.start(t)
	said, _ := s.Try("Bash", host.Args{"command": g.script(t, l.script+"\n: > ran")})
	if !exists(filepath.Join(g.ws, "ran")) {
		t.Errorf("the command did not run: %s", said)
	}
	if g.runs(l.look) {
		t.Errorf("git executes it: %s", said)
	}
	s.End()
}

func leaveInTask(t *testing.T, g *leftoverGround, l leftover) {
	s := g.start(t)
	s.MustCall("Bash", host.Args{"command": g.script(t, l.script+"\n: > planted; sleep 1000"), "run_in_background": true})
	host.Eventually(t, func() string {
		if !exists(filepath.Join(g.ws, "planted")) {
			return "nothing is planted"
		}
		return ""
	})
	host.Eventually(t, func() string {
		if g.runs(l.look) {
			return "git executes it"
		}
		return ""
	})
	s.End()
}

func leaveOverlapping(t *testing.T, g *leftoverGround, l leftover) {
	s := g.start(t)
	s.MustCall("Bash", host.Args{"command": g.script(t, l.script+"\n: > planted; until [ -e stop ]; do sleep .01; done; "+l.script), "run_in_background": true})
	host.Eventually(t, func() string {
		said, failed := s.Try("Bash", host.Args{"command": "ls planted"})
		if failed {
			return said
		}
		return ""
	})
	s.MustCall("Bash", host.Args{"command": ": > stop"})
	s.End()
	if g.runs(l.look) {
		t.Error("git executes it")
	}
}

func leaveKilled(t *testing.T, g *leftoverGround, l leftover) {
	s := g.start(t)
	loop := "until [ -e stop ]; do\n" + l.script +
		"\n: > planted; rm -rf n x y z m store wt hh inc evil h t; done 2>/dev/null"
	if slices.Contains([]string{".", "$ADD", "$ADD/n", "$OPEN/n", "d/50/50"}, l.look) {
		loop = l.script + "\n: > planted; sleep 1000"
	}
	s.MustCall("Bash", host.Args{"command": g.script(t, loop), "run_in_background": true})
	host.Eventually(t, func() string {
		if !exists(filepath.Join(g.ws, "planted")) {
			return "nothing is planted"
		}
		return ""
	})
	s.Kill()
	next := g.start(t)
	next.MustCall("Bash", host.Args{"command": "true"})
	if g.runs(l.look) {
		t.Error("git executes it")
	}
	next.End()
}

// TestLeftoverHonest runs in commands what people do with git every day, and looks at what is left of it outside.
func TestLeftoverHonest(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.root, `git init -q --bare remote.git; git clone -q ws up; mv remote.git add`)
	s := g.start(t)
	const id = "-c user.name=t -c user.email=t@example.org "
	for _, c := range []struct{ name, script, outside string }{
		{"settings", "git config user.name x; git config core.autocrlf input; git config alias.st status; git config color.ui false; git config core.fsmonitor true; git config --unset core.fsmonitor",
			`test "$(git config user.name) $(git config core.autocrlf) $(git config alias.st)" = "x input status"`},
		{"remote", "git remote add origin " + g.add + "/remote.git; git push -q -u origin HEAD; git branch --set-upstream-to=origin/master; git fetch -q",
			`test "$(git rev-parse origin/master)" = "$(git rev-parse HEAD)" && test "$(git config branch.master.merge)" = refs/heads/master`},
		{"repository", "git init -q new; cd new; echo x > f; git add f; git " + id + "commit -q -m x; git branch b; git config extensions.worktreeConfig true; git config --worktree user.name y",
			`cd new && test "$(git log --format=%s) $(git config user.name)" = "x y" && test -e .git/hooks/pre-commit.sample`},
		{"bare repository", "git init -q --bare new.git; git push -q new.git HEAD", `git -C new.git rev-parse HEAD`},
		{"clone", "git clone -q . copy; git -C copy " + id + "commit -q --allow-empty -m y; git -C copy pull -q", `git -C copy status && git -C copy log --format=%s | grep y`},
		{"work tree", "git worktree add -q wt; cd wt; git " + id + "commit -q --allow-empty -m z; cd ..; git worktree list | grep wt; git worktree add -q " + g.add + "/wt2", `git -C wt log --format=%s | grep z && git -C $ADD/wt2 status`},
		{"work tree moved", "git worktree move wt wt3; git worktree remove " + g.add + "/wt2", `git -C wt3 status && ! test -e $ADD/wt2`},
		{"submodule", "git " + id + "-c protocol.file.allow=always submodule add -q \"$PWD/copy\" sub; git " + id + "commit -q -m sub; git submodule status", `git -C sub status && git submodule status | grep sub`},
		{"submodule in a clone", "git clone -q . again; cd again; git " + id + "-c protocol.file.allow=always submodule update -q --init", `git -C again/sub status`},
		{"sparse", "git sparse-checkout set --cone src", `test "$(git config core.sparseCheckout)" = true`},
		{"not sparse", "git sparse-checkout disable", `test -e f`},
		{"separate directory", "git init -q --separate-git-dir=store apart; git -C apart " + id + "commit -q --allow-empty -m x", `git -C apart log --format=%s | grep x`},
		{"stash and rebase", "echo y >> f; git " + id + "stash -q; git " + id + "stash pop -q; git " + id + "commit -q -am y; git " + id + "rebase -q HEAD~1", `git log --format=%s | grep y`},
	} {
		said, failed := s.Try("Bash", host.Args{"command": g.script(t, "set -e\n"+c.script)})
		if out, err := g.outside(g.ws, "set -e; "+c.outside); err != nil || failed || strings.Contains(said, "rror:") ||
			strings.Contains(said, "fatal:") || strings.Contains(said, "was taken out") ||
			strings.Contains(said, "was moved to") {
			t.Errorf("%s: %v\n%s\n%s", c.name, err, out, said)
		}
	}
	s.End()
}

// TestAttackLeftoverSettings has a task leave settings of the host behind, with a hook, which a host that trusts the workspace must
// not obey: while the task runs, and after a kill of the first host.
func TestAttackLeftoverSettings(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	for _, name := range []string{".claude/settings.json", ".claude/settings.local.json", ".toolhost/toolhost.json"} {
		for _, linked := range []bool{false, true} {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s linked %v killed %v", strings.ReplaceAll(name, "/", ":"), linked, killed), func(t *testing.T) {
					g := newLeftoverGround(t, 0)
					s := g.start(t, "--trust-workspace")
					dir := filepath.Dir(name)
					make := "mkdir -p " + dir
					if linked {
						make = `mkdir -p "$TMPDIR/c"; ln -sfn "$TMPDIR/c" ` + dir
					}
					text := fmt.Sprintf(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch %s"}]}]}}`, g.pwned)
					s.MustCall("Bash", host.Args{"command": g.script(t, "while :; do "+make+"; echo "+shellWord(text)+" > "+name+"; : > planted; done 2>/dev/null"), "run_in_background": true})
					host.Eventually(t, func() string {
						if !exists(filepath.Join(g.ws, "planted")) {
							return "nothing is planted"
						}
						return ""
					})
					for range 20 {
						s.MustCall("Glob", host.Args{"pattern": "*"})
					}
					if killed {
						s.Kill()
						s = g.start(t, "--trust-workspace")
						for range 5 {
							s.MustCall("Glob", host.Args{"pattern": "*"})
						}
						s.MustCall("Bash", host.Args{"command": "true"})
					}
					s.MustCall("Glob", host.Args{"pattern": "*"})
					s.End()
					if exists(g.pwned) {
						t.Error("the hook ran")
					}
					if exists(filepath.Join(g.ws, name)) {
						t.Error("the settings are still there")
					}
				})
			}
		}
	}
}

// TestLeftoverByUser changes what git obeys outside of the sandbox while no command runs: it stays, also after a kill of the host
// while no command runs.
func TestLeftoverByUser(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	s := g.start(t)
	for i, c := range []struct{ change, kept string }{
		{"git config core.pager mine", `test "$(git config core.pager)" = mine`},
		{"git init -q n; git -C n config core.fsmonitor 'true #'", `test "$(git -C n config core.fsmonitor)" = "true #"`},
		{"printf '#!/bin/sh\\n: > ran' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", `rm -f ran; git commit -q --allow-empty -m x; test -e ran`},
		{"mkdir -p .claude; echo '{}' > .claude/settings.local.json", `test -e .claude/settings.local.json`},
		{"git config --unset core.pager", `! git config core.pager`},
		{"mkdir -p m; git init -q m; mv m/.git gitdir; echo 'gitdir: ../gitdir' > m/.git; git -C m config core.editor mine", `test "$(git -C m config core.editor)" = mine`},
	} {
		s.MustCall("Bash", host.Args{"command": fmt.Sprintf("echo %d > out.txt", i)})
		g.must(t, g.ws, c.change)
		switch i % 3 {
		case 1:
			s.End()
			s = g.start(t)
		case 2:
			s.Kill()
			s = g.start(t)
		}
		s.MustCall("Bash", host.Args{"command": "echo again > out.txt"})
		s.MustCall("Bash", host.Args{"command": "git config user.name x; sleep .1; true"})
		if out, err := g.outside(g.ws, c.kept); err != nil {
			t.Errorf("%s was undone: %v\n%s\n%s", c.change, err, out, s.Stderr)
		}
	}
	s.End()
}
