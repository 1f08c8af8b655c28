package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// tryHome is a home with a repository in which something is not committed.
func tryHome(t *testing.T) (home, work string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	home = host.DoctorHome(t)
	host.WriteIn(t, home, ".gitconfig", "[user]\n\tname = t\n\temail = t@example.org\n")
	work = filepath.Join(home, "work")
	host.Shell(t, home, work, "git init -q -b main; echo one > a; echo two > b; git add .; git commit -qm first; echo mine >> a; echo u > u")
	return home, work
}

const tryLook = "cat a b u; git status --porcelain; git branch --format='%(refname:short)'"

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

func TestTry(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	before := host.Shell(t, home, work, tryLook)
	for _, tt := range []struct {
		name  string
		flags []string
		args  []string
		code  int
		want  string // in what is printed
		after string // of the work tree
	}{
		{"nothing changed", nil, []string{"sh", "-c", "cat a >&2; exit 3"}, 3, "nothing was changed", before},
		{"discarded", []string{"--discard"}, []string{"sh", "-c", "echo x >> a; exit 5"}, 5, "+x", before},
		{"no such program", nil, []string{"no-such-program"}, 127, "no-such-program", before},
		{"the user's checkout is closed", []string{"--discard"}, []string{"sh", "-c", "! echo x >> " + work + "/a && ! touch " + work + "/.git/x && ! git -C " + work + " checkout -qf main && git log --oneline && ! git push -q " + work + " HEAD:refs/heads/evil"}, 0, "nothing was changed", before},
		{"both", []string{"--apply", "--discard"}, []string{"true"}, 2, "exclude each other", before},
		{"no client", nil, nil, 2, "toolhost try", before},
	} {
		out, code := host.RunCommand(t, home, append(append(append([]string{"try"}, tt.flags...), "--"), tt.args...)...)
		if code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("%s: exit code %d, want %d\n%s", tt.name, code, tt.code, out)
		}
		if after := host.Shell(t, home, work, tryLook); after != tt.after {
			t.Errorf("%s: the work tree was\n%s\nand is\n%s", tt.name, before, after)
		}
		if left, _ := filepath.Glob(filepath.Join(home, "state/toolhost/worktrees/*-*")); len(left) > 0 {
			t.Errorf("%s: left: %v", tt.name, left)
		}
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

// TestTryApplied: what was applied is taken back by undo, with the modes of emptied directories and hard links.
func TestTryApplied(t *testing.T) {
	t.Parallel()
	home, work := tryHome(t)
	host.Shell(t, home, work, "mkdir -m 750 q; echo q > q/f; echo c > c; ln c c2; git add q c c2; git commit -qm 2 -- q c c2")
	const look = tryLook + "; find q c c2 -printf '%p %m %n\n'"
	before := host.Shell(t, home, work, look)
	out, code := host.RunCommand(t, home, "try", "--apply", "--", "sh", "-c",
		"echo x >> a; rm b q/f; echo x >> c; chmod +x c2; mkdir -p d/e; echo n > d/e/n; chmod +x d/e/n; ln -s a l")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if got := host.Shell(t, home, work, "cat a d/e/n u; readlink l; test -x d/e/n; git diff --cached --name-only; git branch | wc -l"); got != "one\nmine\nx\nn\nu\na\n1" {
		t.Errorf("applied:\n%s\n%s", got, out)
	}
	if out, code := host.RunCommand(t, home, "history"); code != 0 || !strings.Contains(out, "try") ||
		strings.Contains(out, "worktrees") {
		t.Errorf("the history:\n%s", out)
	}
	if out, code := host.RunCommand(t, home, "undo", "--yes"); code != 0 {
		t.Errorf("undo: exit code %d\n%s", code, out)
	}
	if after := host.Shell(t, home, work, look); after != before {
		t.Errorf("the work tree was\n%s\nand is\n%s", before, after)
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

// TestTryTerminal: a person decides at the end.
func TestTryTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range samples.Of([]struct{ key, want, branches string }{
		{"a", "one\nmine\nx", "0"}, {"k", "one\nmine", "1"}, {"d", "one\nmine", "0"},
	}, 1) {
		home, work := tryHome(t)
		w := newTerminal(t, person{host.Person{Home: home, Project: work}}, nil, "sh", "-c", host.Binary+
			" try -- sh -c 'echo x >> a; test -t 0 && echo there'; echo ended with $?; exec cat")
		host.Eventually(t, func() string { return w.lacks([]string{"there", "+x", "iscard?"}) })
		w.do("send-keys", c.key, "Enter")
		host.Eventually(t, func() string { return w.lacks([]string{"ended with 0"}) })
		if got := host.Shell(t, home, work, "cat a"); got != c.want {
			t.Errorf("%s: %s", c.key, got)
		}
		if kept := host.Shell(t, home, work, "git branch | grep -c toolhost/ || true"); kept != c.branches {
			t.Errorf("%s: %s branches", c.key, kept)
		}
	}
}
