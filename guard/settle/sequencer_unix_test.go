//go:build unix

package settle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestSequencer has a rebase stop halfway: what it would run when the person goes on is held, unless the person told git
// to run it, and the rebase can go on in commands all the same.
func TestSequencer(t *testing.T) {
	testenv.NotShort(t, "rebases for each row")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	const todo = ".git/rebase-merge/git-rebase-todo"
	const history = `git init -q -b main; echo 1 > a; git add a; git commit -qm base
git checkout -qb topic; for i in 1 2 3; do echo $i > t$i; git add .; git commit -qm t$i; done; git checkout -q main; echo 2 > b; git add .; git commit -qm main; git checkout -q topic`
	const stopped = "GIT_SEQUENCE_EDITOR=true git rebase -q -x 'test -e go && touch ran' main"
	plain := func(g *ground, script string) string {
		t.Helper()
		return (&gitGround{ground: g}).git(g.dir, script)
	}
	isThere := func(g *ground) bool {
		_, err := os.Lstat(filepath.Join(g.dir, todo))
		return err == nil
	}
	for name, c := range map[string]struct {
		person, command string
		stands          bool   // the list stands outside after the command
		then            string // a second command
		done            bool   // the rebase is over then
	}{
		"a command stops":                 {command: stopped, then: "touch go; git rebase --continue", done: true},
		"it is aborted":                   {command: stopped, then: "git rebase --abort", done: true},
		"the person has begun":            {person: stopped, command: "touch go; rm go; git rebase --continue", stands: true, then: "touch go; git rebase --continue", done: true},
		"another program in it":           {person: stopped, command: "echo 'exec touch planted' >> " + todo, then: "true"},
		"without git":                     {command: "mkdir -p .git/rebase-merge; echo x evil > " + todo, then: "true"},
		"one that runs no program":        {command: "echo c > t1; git add .; git commit -qm c; git checkout -q main; echo d > t1; git add .; git commit -qm d; git rebase -q topic", stands: true, then: "git rebase --abort", done: true},
		"a link":                          {command: "mkdir -p .git/rebase-merge; ln -s ../../steps " + todo, then: "true"},
		"steps that are made from others": {command: stopped + "; sed -i 's/^exec/x/' " + todo, then: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			plain(g, history)
			if c.person != "" {
				plain(g, c.person)
			}
			g.call(func() {})
			var before bool
			note := g.call(func() { plain(g, c.command); before = isThere(g) })
			if !before {
				t.Fatal("the command left no list of steps")
			}
			if isThere(g) != c.stands || strings.Contains(note, "held") == c.stands {
				t.Errorf("outside it stands: %v\n%s", isThere(g), note)
			}
			var out string
			g.call(func() {
				if !isThere(g) {
					t.Error("the second command does not see the list")
				}
				out = plain(g, c.then)
			})
			if _, err := os.Lstat(filepath.Join(g.dir, ".git/rebase-merge")); c.done && err == nil {
				t.Errorf("the rebase is not over:\n%s", out)
			}
			if held, err := g.k.Held(g.dir); err != nil || c.done && len(held) > 0 {
				t.Errorf("held at the end: %v, %v", held, err)
			}
		})
	}
	t.Run("aborted outside", func(t *testing.T) {
		g := newGround(t)
		plain(g, history)
		g.call(func() { plain(g, stopped) })
		if out := plain(g, "git rebase --abort"); !strings.HasSuffix(out, "<nil>") {
			t.Errorf("the person cannot abort: %s", out)
		}
		g.call(func() {
			if isThere(g) {
				t.Error("a rebase that is over is begun again")
			}
		})
	})
	t.Run("kept", func(t *testing.T) {
		g := newGround(t)
		plain(g, history)
		g.call(func() { plain(g, stopped) })
		if list, err := g.k.Keep(g.dir); err != nil || len(list) != 1 || !isThere(g) {
			t.Fatal(list, err)
		}
		g.call(func() {})
		if !isThere(g) {
			t.Error("it was kept, and is held")
		}
	})
}

// TestSequencerPlaces has commands leave what a later git runs, in repositories of each kind: only what names no program stands.
func TestSequencerPlaces(t *testing.T) {
	const todo, pick = "exec touch planted", "pick 1234567 t1"
	for _, dir := range []string{".git", ".git/worktrees/w", ".git/modules/m", "nested/.git", "nested/.git/worktrees/w",
		"nested/.GIT", "nested/.g\u200cit"} {
		for _, c := range []struct {
			file, text string
			stands     bool
		}{
			{"rebase-merge/git-rebase-todo", todo, false},
			{"rebase-merge/git-rebase-todo", pick, true},
			{"rebase-merge/strategy", "x/evil\n", false},
			{"rebase-merge/strategy", "ort\n", true},
			{"sequencer/opts", "[options]\n\tstrategy = ort\n\tstrategy-option = theirs\n", true},
			{"sequencer/opts", "[options]\n\tstrategy = x/evil\n", false},
			{"sequencer/opts", "[options] Strategy=\"x/evil\"\n", false},
			{"sequencer/opts", "[options]\n\tstrategy = ort\\\n/evil\n", false},
			{"sequencer/todo", pick, true},
		} {
			g := newGround(t)
			g.call(func() {})
			g.call(func() { g.write(dir+"/"+c.file, c.text) })
			if _, err := os.Lstat(filepath.Join(g.dir, dir, c.file)); (err == nil) != c.stands {
				t.Errorf("%s/%s with %q stands outside: %v", dir, c.file, c.text, err == nil)
			}
			g.call(func() {
				if text, _ := os.ReadFile(filepath.Join(g.dir, dir, c.file)); string(text) != c.text {
					t.Errorf("the next command sees %q in %s/%s", text, dir, c.file)
				}
			})
		}
	}
}
