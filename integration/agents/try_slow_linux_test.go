//go:build slow

package agents

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
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

// TestTryNoRepository: the files of the directory are copied.
func TestTryNoRepository(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	host.Must(t, os.RemoveAll(filepath.Join(work, ".git")))
	if out, code := host.RunCommand(t, home, "try", "--apply", "--", "sh", "-c",
		"echo x >> a; rm b; test ! -e .git"); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if got := host.Shell(t, home, work, "cat a; ls"); got != "one\nmine\nx\na\nu" {
		t.Error(got)
	}
}

// TestTryRules: what the settings of the workspace deny is denied in the worktree, also where git ignores them, and what a rule denies by
// its place is not there.
func TestTryRules(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	host.WriteIn(t, home, "config/toolhost/toolhost.json", `{"permissions":{"deny":["Read(/`+work+`/placed)"]}}`)
	host.WriteIn(t, home, "work/placed", "told")
	host.Shell(t, home, work, "git add placed; git commit -qm placed; echo told >> placed")
	host.WriteIn(t, home, "work/.gitignore", "settings.local.json\n")
	host.WriteIn(t, home, "work/.claude/settings.local.json", `{"permissions":{"deny":["Read(./secret)"]}}`)
	host.WriteIn(t, home, "work/secret", "told")
	if out, code := host.RunCommand(t, home, "try", "--discard", "--", "sh", "-c",
		"cat a; ! cat secret; test ! -e placed"); code != 0 || strings.Contains(out, "told") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestTryLater: a file that rules deny is closed to the client also where it is made in the user's work tree after the start, and comes
// into no diff.
func TestTryLater(t *testing.T) {
	t.Parallel()
	testenv.NeedsNotifications(t)
	home, work := tryHome(t)
	host.WriteIn(t, home, "config/toolhost/toolhost.json", `{"permissions":{"deny":["Read(.env)","Read(//`+work+
		`/placed)"]}}`)
	host.WriteIn(t, home, "work/.claude/settings.json", `{"permissions":{"deny":["Read(/secret)"]}}`)
	host.WriteIn(t, home, "work/sub/kept", "seen\n")
	names := ".env sub/.env new/deep/.env placed secret"
	// The client waits until the person has made the files, and then tries for as long as a file may take to be covered.
	script := "touch begun; until grep -q seen " + work + "/over; do sleep .05; done 2>/dev/null; for f in " + names +
		"; do n=0; " +
		"while cat " + work + "/$f > got 2>/dev/null; do n=$((n+1)); [ $n -lt 200 ] || { echo BREACH $f; break; }; sleep .05; done; done; rm got begun; cat " + work + "/sub/kept; echo x >> a"
	cmd := exec.Command(host.Binary, "try", "--apply", "--", "sh", "-c", script)
	cmd.Dir, cmd.Env = work, host.CleanEnv(home)
	out := &host.LockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	host.Must(t, cmd.Start())
	host.Eventually(t, func() string {
		if begun, _ := filepath.Glob(filepath.Join(home,
			"state/toolhost/worktrees/try-*/tree/begun")); len(begun) == 0 {
			return "the client has not begun"
		}
		return ""
	})
	for _, name := range strings.Fields(names) {
		host.WriteIn(t, home, "work/"+name, "told\n")
	}
	host.WriteIn(t, home, "work/over", "seen\n")
	if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "BREACH") ||
		strings.Contains(out.String(), "told") || !strings.Contains(out.String(), "seen") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := host.Shell(t, home, work, "tail -1 a; cat "+names); got != "x\n"+
		strings.TrimSpace(strings.Repeat("told\n", 5)) {
		t.Error(got)
	}
}

// TestTryConflict: what both have changed is left to the person, and the branch is kept.
func TestTryConflict(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	cmd := exec.Command(host.Binary, "try", "--apply", "--", "sh", "-c",
		"echo x >> b; echo n > n; echo begun > begun; while [ ! -e "+work+"/go ]; do sleep 0.05; done; rm begun")
	cmd.Dir, cmd.Env = work, host.CleanEnv(home)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	host.Must(t, cmd.Start())
	host.Eventually(t, func() string {
		if begun, _ := filepath.Glob(filepath.Join(home,
			"state/toolhost/worktrees/try-*/tree/begun")); len(begun) == 0 {
			return "the client has not begun"
		}
		return ""
	})
	host.Shell(t, home, work, "echo y >> b; touch go")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 4 || !strings.Contains(out.String(), "conflict in b") {
		t.Errorf("%v\n%s", err, &out)
	}
	if got := host.Shell(t, home, work, "cat n; grep -c '<<<<<<< yours' b; git branch --format='%(refname:short)' | grep -c toolhost/try-"); got != "n\n1\n1" {
		t.Errorf("%s\n%s", got, &out)
	}
}

// TestTryIgnoredAndDenied: a file that git ignores and a rule denies, the usual .env, is not copied and hinders nothing.
func TestTryIgnoredAndDenied(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	host.WriteIn(t, home, "work/.gitignore", ".env\nkeys/\n")
	host.WriteIn(t, home, "work/.env", "secret\n")
	host.WriteIn(t, home, "work/keys/k", "secret\n")
	host.WriteIn(t, home, "work/tracked.pem", "secret\n")
	host.WriteIn(t, home, "work/.claude/settings.json",
		`{"permissions":{"deny":["Read(.env)","Read(keys/**)","Read(*.pem)"]}}`)
	host.Shell(t, home, work, "git add . && git commit -qm 2; echo more >> tracked.pem")
	out, code := host.RunCommand(t, home, "try", "--apply", "--", "sh", "-c", "! cat .env keys/k && echo two >> b")
	if got := host.Shell(t, home, work, "cat b .env"); code != 0 || got != "two\ntwo\nsecret" {
		t.Errorf("exit code %d, %q\n%s", code, got, out)
	}
}

// TestTryKept: without a terminal the diff is printed, and the changes are on a branch.
func TestTryKept(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	before := host.Shell(t, home, work, "cat a b u; git status --porcelain")
	out, code := host.RunCommand(t, home, "try", "--", "sh", "-c",
		"echo x >> b; git commit -qam mine; echo y > new; rm u; exit 7")
	branch := regexp.MustCompile(`toolhost/try-[0-9a-f]{8}`).FindString(out)
	if code != 7 || branch == "" || !strings.Contains(out, "\n+x\n") || !strings.Contains(out, "\n+y\n") ||
		strings.Contains(out, "+mine") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if after := host.Shell(t, home, work, "cat a b u; git status --porcelain"); after != before {
		t.Errorf("the work tree was\n%s\nand is\n%s", before, after)
	}
	if got := host.Shell(t, home, work, "git show "+branch+":new; git log --format=%s "+
		branch); got != "y\ntoolhost: unfinished\nmine\nfirst" {
		t.Error(got)
	}
}

// TestTryNoGit: where git is not installed the files are copied too, also those of a repository, and the changes can be taken back.
func TestTryNoGit(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	before := host.Shell(t, home, work, tryLook)
	bin := t.TempDir()
	for _, name := range []string{"sh", "rm", "cat"} {
		path, err := exec.LookPath(name)
		host.Must(t, err)
		host.Must(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(host.Binary, args...)
		cmd.Dir, cmd.Env = work, append(host.CleanEnv(home), "PATH="+bin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("try", "--apply", "--", "sh", "-c", "echo x >> a; rm b; echo n > n"); !strings.Contains(out, "+x\n") {
		t.Errorf("the changes are not shown:\n%s", out)
	}
	if got := host.Shell(t, home, work, "cat a n; ls"); got != "one\nmine\nx\nn\na\nn\nu" {
		t.Error(got)
	}
	run("undo", "--yes")
	if after := host.Shell(t, home, work, tryLook); after != before {
		t.Errorf("the work tree was\n%s\nand is\n%s", before, after)
	}
}

// TestTryCheckout: what rules deny in the user's work tree is denied there too, and the rest works.
func TestTryCheckout(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	host.WriteIn(t, home, "config/toolhost/toolhost.json",
		`{"permissions":{"deny":["Read(.env)","Read(keys/)"]},"sandbox":{"filesystem":{"denyRead":["`+work+`/data"]}}}`)
	host.WriteIn(t, home, "work/.claude/settings.json", `{"permissions":{"deny":["Read(/secret)"]}}`)
	for _, name := range []string{".env", "sub/.env", "keys/k", "secret", "data", "sub/[odd] (one)/.env"} {
		host.WriteIn(t, home, "work/"+name, "told")
	}
	script := "for f in .env sub/.env keys/k secret data 'sub/[odd] (one)/.env'; do ! cat \"" + work +
		"/$f\" || exit 9; done; ! grep -r told " + work + " . || exit 8; " +
		"cat " + work + "/u && git log --oneline && git diff --stat && git status --short && git commit -qam x"
	if out, code := host.RunCommand(t, home, "try", "--discard", "--", "sh", "-c", script); code != 0 ||
		strings.Contains(out, "told") || !strings.Contains(out, "first") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
