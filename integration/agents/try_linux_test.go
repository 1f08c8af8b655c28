package agents

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
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
