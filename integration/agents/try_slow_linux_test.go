//go:build slow

package agents

import (
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestTryLeft: what applying does not bring home is kept, and said.
func TestTryLeft(t *testing.T) {
	for _, tt := range []struct{ name, flag, script, want, look, is string }{
		{"another branch", "--apply", "git checkout -qb other; git commit -q --allow-empty -m o; git checkout -q -; echo x >> b", "not applied, and kept: toolhost/try-",
			"tail -1 b; git branch --format='%(refname:short)' | grep -c '+other'", "x\n1"},
		{"ignored, applied", "--apply", "echo x >> b; echo s > local.db", "local.db", "tail -1 b; cat ../state/toolhost/worktrees/try-*/tree/local.db", "x\ns"},
		{"ignored, kept", "", "echo x >> b; echo s > local.db", "local.db", "tail -1 b; cat ../state/toolhost/worktrees/try-*/tree/local.db", "two\ns"},
		{"ignored alone", "", "echo s > local.db", "local.db", "cat ../state/toolhost/worktrees/try-*/tree/local.db", "s"},
		{"ignored, discarded", "--discard", "echo s > local.db", "local.db", "ls ../state/toolhost/worktrees", "locks"},
	} {
		home, work := tryHome(t)
		host.Shell(t, home, work, "echo '*.db' > .gitignore; git add .gitignore; git commit -qm ignore")
		args := slices.DeleteFunc([]string{"try", tt.flag, "--", "sh", "-c", tt.script},
			func(a string) bool { return a == "" })
		if out, code := host.RunCommand(t, home, args...); code != 0 || !strings.Contains(out, tt.want) {
			t.Errorf("%s: exit code %d\n%s", tt.name, code, out)
		}
		if got := host.Shell(t, home, work, tt.look); got != tt.is {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

// TestTryConsole: a person looks at the diff at the console, and decides there.
func TestTryConsole(t *testing.T) {
	home, work := tryHome(t)
	w := newTerminal(t, person{host.Person{Home: home, Project: work}}, nil, "sh", "-c", host.Binary+
		" try -- sh -c 'echo \"<x>\" >> b; seq 100000 > long'; echo ended with $?; exec cat")
	host.Eventually(t, func() string { return w.lacks([]string{"iscard?"}) })
	c := &host.Console{Host: &host.Host{Stderr: &host.LockedBuffer{}}, Home: home, Web: host.NewBrowser(t)}
	c.Link = c.OpenLink(t)
	c.Enter(t, c.Web)
	id := c.Question(t)
	_, page := c.Get(t, c.Web, "/part/questions", nil)
	for _, shown := range []string{`<span class="row add">+&lt;x&gt;`, ">+100000\n<", ">Apply<", ">Keep as branch<",
		">Discard<", "has changed a copy of " + work} {
		if !strings.Contains(page, shown) {
			t.Errorf("the page of %d bytes does not show %q", len(page), shown)
		}
	}
	if status, body := c.Post(t, "/answer", url.Values{"question": {id}, "decision": {"accept"}, "answer1": {"Remove"}}); status < 400 {
		t.Errorf("an answer that is not offered: %d %s", status, body)
	}
	if got := host.Shell(t, home, work, "cat b"); got != "two" {
		t.Errorf("before the answer: %s", got)
	}
	if status, body := c.Post(t, "/answer", url.Values{"question": {id}, "decision": {"accept"}, "answer1": {"Apply"}}); status >= 400 {
		t.Fatalf("answer: %d %s", status, body)
	}
	host.Eventually(t, func() string { return w.lacks([]string{"Apply, says the console", "ended with 0"}) })
	if got := host.Shell(t, home, work, "cat b; wc -l < long; git branch | grep -c toolhost/ || true"); got != "two\n<x>\n100000\n0" {
		t.Errorf("applied: %s", got)
	}
}

// TestTryKilled kills toolhost try at random moments: nothing of it runs on, and each file that its client made is in the user's work
// tree or on a branch.
func TestTryKilled(t *testing.T) {
	var home, work string
	killAtRandom(t, samples.Rounds(3), func(mark string) *exec.Cmd {
		home, work = tryHome(t)
		cmd := exec.Command(host.Binary, "try", "--apply", "--", "sh", "-c", ": "+mark+
			"; for i in $(seq 30); do echo $i > f$i; [ $i != 10 ] || { git add .; git commit -qm ten; }; done")
		cmd.Dir, cmd.Env = work, host.CleanEnv(home)
		return cmd
	}, func(run int, alarm time.Duration) {
		const list = "ls f* ../state/toolhost/worktrees/try-*/tree/f* 2>/dev/null | sed 's=.*/==' | sort -u || true"
		made := host.Shell(t, home, work, list)
		if out, code := host.RunCommand(t, home, "try", "--", "true"); code != 0 || strings.Contains(out, "worktree") {
			t.Errorf("killed after %v: the next one ended with %d\n%s", alarm, code, out)
		}
		kept := host.Shell(t, home, work, "{ ls f* 2>/dev/null || true; for b in $(git branch --format='%(refname:short)' | grep toolhost/); do git ls-tree --name-only $b; done; } | grep '^f' | sort -u || true")
		if run == 0 && strings.Count(kept, "f") != 30 || made != kept {
			t.Errorf("killed after %v: it had made\n%s\nand what is kept is\n%s", alarm, made, kept)
		}
	})
}
