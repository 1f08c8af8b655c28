//go:build unix

package settle

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
)

// describe is a script that prints what stands at protected names, without reading what does not end.
const describe = `find . -name .git -prune -o \( -not -type d \) -print | LC_ALL=C sort | while IFS= read -r f; do printf '%s ' "$f"; stat -c '%F %a %s' "$f"; [ ! -f "$f" ] || head -c 1000 "$f" | tr -d '\0'; [ ! -h "$f" ] || readlink "$f"; done`

// TestOdd has commands put odd things at protected names, and in the place of odd things. Outside stands what stood
// there before, the next command sees what the first one left, and once it is kept it stands outside too.
func TestOdd(t *testing.T) {
	all := map[string]struct{ before, command string }{
		"a pipe":                          {"", "mkfifo .envrc"},
		"a pipe in the place of a file":   {"echo x > .envrc", "rm .envrc; mkfifo .envrc"},
		"a pipe of a person":              {"mkdir .vscode; mkfifo .vscode/pipe", "echo x > .vscode/tasks.json"},
		"a socket":                        {"", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\".envrc\")'"},
		"a socket of a person":            {"mkdir .vscode; cd .vscode; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", "echo x > .vscode/tasks.json"},
		"a device":                        {"", "mknod .envrc c 1 3"},
		"a sparse file of 1 GB":           {"", "truncate -s 1G .envrc"},
		"a sparse file grows":             {"echo x > .envrc", "truncate -s 1G .envrc"},
		"a large file shrinks":            {"mkdir .idea; truncate -s 70M .idea/x", "echo x > .idea/x"},
		"mode 000":                        {"", "echo x > .envrc; chmod 000 .envrc"},
		"mode 000 of a person":            {"echo x > .envrc; chmod 000 .envrc", "rm .envrc; echo y > .envrc"},
		"a directory of mode 000":         {"mkdir .idea; echo x > .idea/x", "echo y > .idea/x; chmod 555 .idea"},
		"no UTF-8":                        {"", "mkdir .idea; echo x > .idea/$'\\xff'"},
		"no UTF-8 of a person":            {"mkdir .idea; echo x > .idea/$'\\xff'", "echo y > .idea/$'\\xff'; rm -r .idea"},
		"a line break":                    {"", "mkdir .idea; echo x > .idea/$'a\\nb'"},
		"a link to itself":                {"", "ln -s .envrc .envrc"},
		"a link in the place of a file":   {"echo x > .envrc", "ln -sf /etc/passwd .envrc"},
		"a file in the place of a link":   {"echo x > e; ln -s e .envrc", "rm .envrc; echo y > .envrc"},
		"a directory instead of a file":   {"echo x > .envrc", "rm .envrc; mkdir -p .envrc/d; echo y > .envrc/d/x"},
		"a file instead of a directory":   {"mkdir -p .idea/d; echo x > .idea/d/x", "rm -r .idea; echo y > .idea"},
		"a link instead of a directory":   {"mkdir .idea d; echo x > .idea/x; echo y > d/x", "rm -r .idea; ln -s d .idea"},
		"back and forth":                  {"echo x > .envrc", "for i in 1 2 3; do echo $i > .envrc; echo x > .envrc; done; echo y > .envrc"},
		"replaced by many renames":        {"echo x > .envrc", "for i in $(seq 100); do echo $i > e; mv e .envrc; done"},
		"there and gone":                  {"", "echo x > .envrc; rm .envrc"},
		"a name of 255 bytes":             {"", "mkdir .idea; echo x > .idea/$(printf 'a%.0s' $(seq 255))"},
		"deep":                            {"", "d=.idea; for i in $(seq 60); do d=$d/directory; done; mkdir -p $d; echo x > $d/x"},
		"an empty file":                   {"", ": > .envrc"},
		"an empty file instead of a file": {"echo x > .envrc", ": > .envrc"},
	}
	for _, name := range samples.Of(slices.Sorted(maps.Keys(all)), 1) {
		c := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			sh := func(script string) (string, error) {
				cmd := exec.Command("bash", "-c", script)
				cmd.Dir = g.dir
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := sh(c.before); err != nil {
				t.Fatal(err, out)
			}
			before, _ := sh(describe)
			var inside string
			g.call(func() {
				if out, err := sh(c.command); err != nil {
					t.Skip(err, out) // a device, for a user who is not root
				}
				inside, _ = sh(describe)
			})
			outside := func(when string) {
				t.Helper()
				if now, _ := sh(describe); now != before {
					t.Errorf("%s, outside stands\n%s\nbefore\n%s", when, now, before)
				}
			}
			outside("after the command")
			g.kill() // a person answers after a restart
			g.k.Recover([]string{g.dir})
			outside("after a restart")
			g.call(func() {
				if now, _ := sh(describe); now != inside {
					t.Errorf("the next command sees\n%s\nwant\n%s", now, inside)
				}
			})
			outside("after the next command")
			g.kill()
			if _, err := g.k.Keep(g.dir); err != nil {
				t.Fatal(err)
			}
			if now, _ := sh(describe); now != inside {
				t.Errorf("kept is\n%s\nwant\n%s", now, inside)
			}
		})
	}
}

// TestReplacedMeanwhile has a program of a person replace a file all the time, also while it is settled, or while an
// agent wakes and falls asleep: no content of the person gets lost, and what a program put there does not stand.
func TestReplacedMeanwhile(t *testing.T) {
	t.Run("a command", func(t *testing.T) {
		testReplacedMeanwhile(t, func(g *ground, write func()) {
			for range 50 {
				g.call(write)
				if _, err := os.Lstat(g.dir + "/.mcp.json"); err == nil {
					t.Error("what a command wrote stands")
				}
			}
		})
	})
	t.Run("an agent", func(t *testing.T) {
		testReplacedMeanwhile(t, func(g *ground, write func()) {
			var agent program
			s, err := g.k.Session([]string{g.dir}, Program{IsAgent: true, Quiet: agent.quiet, Log: func([]string) {}})
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				agent.writes(s, write)
				agent.sleeps(s)
			}
			s.End()
		})
	})
}

func testReplacedMeanwhile(t *testing.T, run func(g *ground, write func())) {
	g := newGround(t)
	g.write(".envrc", "0")
	g.call(func() {})
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		for i := 1; ; i++ {
			text := fmt.Appendf(nil, "%d", i)
			_ = os.WriteFile(g.dir+"/.envrc~", text, 0o644)
			_ = os.Rename(g.dir+"/.envrc~", g.dir+"/.envrc")
			select {
			case <-stop:
				stopped <- i
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	run(g, func() { g.write(".mcp.json", "by a program") })
	if _, err := os.Lstat(g.dir + "/.mcp.json"); err == nil {
		t.Error("what a program wrote stands")
	}
	close(stop)
	last := fmt.Sprint(<-stopped)
	found := strings.Contains(g.tree(), ".envrc="+last)
	_ = filepath.Walk(g.state, func(path string, _ os.FileInfo, _ error) error {
		text, err := os.ReadFile(path)
		found = found || err == nil && string(text) == last
		return nil
	})
	if !found {
		t.Errorf("what the person wrote last, %s, is lost", last)
	}
}

// TestTwoRoots settles two directories, one of them in the other's repository.
func TestTwoRoots(t *testing.T) {
	g := newGround(t)
	other := newGround(t)
	g.write(".envrc", "old")
	c, _, err := g.k.Begin([]string{g.dir, other.dir}, false)
	if err != nil {
		t.Fatal(err)
	}
	g.write(".envrc", "new")
	other.write(".envrc", "new")
	if err := syscall.Rename(g.dir+"/.envrc", other.dir+"/.vimrc"); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(c.End(), "\n"); strings.Count(notes, "are held until") != 2 {
		t.Errorf("notes: %s", notes)
	}
	g.want("the first root", ".envrc=old")
	other.want("the second root", "")
}

// TestGitKinds runs git in repositories of several kinds: commands see what plain git makes, and what is kept is that.
func TestGitKinds(t *testing.T) {
	const files = "mkdir -p .vscode; echo 1 | tee .mcp.json > .vscode/tasks.json; git add -A; "
	const upstream = "git init -q -b main up; (cd up; " + files + "git commit -qm 1; echo 2 | tee .mcp.json > .vscode/tasks.json; git commit -qam 2; git checkout -qb old HEAD~; git checkout -q main); "
	all := map[string]struct{ begin, command string }{
		"without commits": {"git init -q -b main .", files + "git status --porcelain; git rm -q --cached .mcp.json; git add .mcp.json; git commit -qm 1"},
		"a submodule": {upstream + "git init -q -b main .; git -c protocol.file.allow=always submodule --quiet add ./up sub; git commit -qm s",
			"cd sub; git checkout -q origin/old; cd ..; git commit -qam old; git submodule --quiet update; git submodule status | cut -c1-9"},
		"sparse":  {upstream + "git clone -q up r", "cd r; git sparse-checkout set --no-cone '/*' '!.vscode'; git status --porcelain; git checkout -q old; git sparse-checkout disable; git status --porcelain"},
		"shallow": {upstream + "git clone -q --depth 1 file://$PWD/up r", "cd r; git fetch -q --unshallow; git checkout -q HEAD~; git status --porcelain"},
		"partial": {upstream + "git -C up config uploadpack.allowFilter true; git clone -q --filter=blob:none file://$PWD/up r",
			"cd r; git checkout -q origin/old; git status --porcelain; git log --oneline -p -- .mcp.json | wc -l"},
		"bare and worktree": {upstream + "git clone -q --bare up b.git; git -C b.git worktree add -q ../w main", "cd w; git checkout -q old; git status --porcelain"},
		"in a rebase": {"git init -q -b main .; " + files + "git commit -qm 1; git checkout -qb b; echo b > .mcp.json; git commit -qam b; git checkout -q main; echo c > .mcp.json; git commit -qam c; git rebase b > /dev/null 2>&1; true",
			"echo d > .mcp.json; git add -A; git rebase --continue > /dev/null; git status --porcelain; git log --oneline | wc -l"},
		"in a merge": {"git init -q -b main .; " + files + "git commit -qm 1; git checkout -qb b; echo b > .mcp.json; git commit -qam b; git checkout -q main; echo c > .mcp.json; git commit -qam c; git merge b > /dev/null; true",
			"git merge --abort; git merge -q -X theirs b > /dev/null; git status --porcelain"},
	}
	for _, name := range samples.Of(slices.Sorted(maps.Keys(all)), 1) {
		c := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			g := &gitGround{ground: newGround(t), plain: plain}
			for _, dir := range []string{g.dir, g.plain} {
				g.git(dir, c.begin)
			}
			const state = `find . -name .git -prune -o -type f -print | LC_ALL=C sort | grep -v -E '/(hooks|objects|logs)/|index$' | while read f; do echo "$f" "$(cat "$f")"; done | sed "s|$PWD||"`
			var got, saw string
			g.call(func() {
				got = g.git(g.dir, GitPrelude+c.command)
				saw = g.git(g.dir, state)
			})
			if want := g.git(g.plain, c.command); got != want {
				t.Errorf("git says\n%s\nplainly\n%s", got, want)
			}
			if want := g.git(g.plain, state); saw != want {
				t.Errorf("the command sees\n%s\nplainly\n%s", saw, want)
			}
			g.call(func() {
				if now := g.git(g.dir, state); now != saw {
					t.Errorf("the next command sees\n%s\nwant\n%s", now, saw)
				}
			})
			if _, err := g.k.Keep(g.dir); err != nil {
				t.Fatal(err)
			}
			if now := g.git(g.dir, state); now != saw {
				t.Errorf("kept is\n%s\nwant\n%s", now, saw)
			}
		})
	}
}
