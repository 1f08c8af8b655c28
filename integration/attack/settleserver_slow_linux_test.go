//go:build slow

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestSettleServerNpm has a server install a package whose script plants a protected file: the package is there, and what
// its script has planted is held.
func TestSettleServerNpm(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil || !host.Contained(t) {
		t.Skip("there is no npm, or nothing contains commands on this machine")
	}
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, `mkdir -p p .vscode; echo '{}' > .vscode/tasks.json; cd p
echo '{"name":"p","version":"1.0.0","scripts":{"postinstall":"echo ran > ran; echo pwned > $INIT_CWD/.vscode/tasks.json; mkdir -p $INIT_CWD/.claude; echo pwned > $INIT_CWD/.claude/settings.json; cat $INIT_CWD/.vscode/tasks.json >> ran"}}' > package.json
for i in $(seq 200); do echo $i > $i.js; done; cd ..; npm pack --silent ./p > /dev/null; rm -r p`)
	before := g.must(t, g.ws, plantsLook)
	s := g.startServed(t, "")
	const install = "npm install --offline --no-audit --no-fund --loglevel=error ./p-1.0.0.tgz && ls node_modules/p/*.js | wc -l && cat node_modules/p/ran" // what the script has seen
	if out := s.MustCall("mcp__s__sh", host.Args{"text": install + " .vscode/tasks.json"}); !strings.Contains(out, "\n200\nran\npwned\npwned\n.") {
		t.Errorf("npm says %s", out)
	}
	g.settled(t)
	if now := g.must(t, g.ws, plantsLook); now != before {
		t.Errorf("outside stands\n%s", now)
	}
	g.goAlone(t, "go.sh", "rm -rf node_modules; { "+install+"; } > out 2>&1")
	g.settled(t)
	if now := g.must(t, g.ws, plantsLook+"; cat out"); !strings.HasPrefix(now, before) || !strings.HasSuffix(now, "200\nran\npwned\n") {
		t.Errorf("after an install between calls, outside stands\n%s", now)
	}
	s.End()
}

// TestSettleServerHidden has a server plant a protected file by a process that hides from a host without rights what it
// is doing, and that goes on: the change is told, and does not stand once the server has ended.
func TestSettleServerHidden(t *testing.T) {
	t.Parallel()
	host.WithoutNamespaces(t)
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	g := newLeftoverGround(t, 0)
	g.as = func(cmd *exec.Cmd) {
		const script = `echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"`
		cmd.Args = append([]string{"unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", host.Binary}, cmd.Args[1:]...)
		cmd.Path, _ = exec.LookPath("unshare")
	}
	g.must(t, g.ws, "mkdir .vscode; echo '{}' > .vscode/tasks.json")
	before := g.must(t, g.ws, plantsLook)
	s := g.startServed(t, "")
	s.MustCall("mcp__s__sh", host.Args{"text": "true"}) // starts it
	g.goAlone(t, "go.sh", `python3 -c 'import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
open(".vscode/tasks.json", "w").write("pwned\n")
time.sleep(1000)' > /dev/null 2>&1 & until grep -q pwned .vscode/tasks.json; do sleep .01; done`)
	stands := g.must(t, g.ws, plantsLook)
	if stands != before {
		host.Eventually(t, func() string {
			if said := s.Stderr.String(); !strings.Contains(said, ".vscode/tasks.json") {
				return "what stands is not told: " + said
			}
			return ""
		})
	}
	if text := s.MustCall("Bash", host.Args{"command": "echo pwned > .mcp.json; cat /proc/sys/user/max_user_namespaces"}); !strings.HasPrefix(text, "0") {
		t.Errorf("a command says %s", text)
	}
	s.End()
	if now := g.must(t, g.ws, plantsLook); now != before {
		t.Errorf("in the end, outside stands\n%s\n%s", now, s.Stderr)
	}
	if locks, _ := filepath.Glob(filepath.Join(g.home, "state/*/settle/*/lock")); len(locks) == 0 {
		t.Error("nothing was settled")
	}
}

// TestSettleServerOpened has a server keep a protected file open, in several ways, and write it when nothing looks.
func TestSettleServerOpened(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "mkdir .vscode; echo '{}' > .vscode/tasks.json")
	before := g.must(t, g.ws, plantsLook)
	s := g.startServed(t, "")
	for name, way := range map[string]struct{ keep, write string }{
		"a descriptor": {`kept["f"] = os.open(".vscode/tasks.json", os.O_RDWR)`, `os.pwrite(kept["f"], b"pwned", 0)`},
		"a mapping": {`f = os.open(".vscode/tasks.json", os.O_RDWR); kept["f"] = mmap.mmap(f, 3); os.close(f)`,
			`kept["f"][0:3] = b"pwn"`},
		"a descriptor in a socket": {`kept["s"] = a, b = socket.socketpair()
f = os.open(".vscode/tasks.json", os.O_RDWR)
a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]).tobytes())])
os.close(f)`, `m, c, _, _ = kept["s"][1].recvmsg(1, 64)
os.pwrite(array.array("i", c[0][2])[0], b"pwned", 0)`},
		"another name": {`os.link(".vscode/tasks.json", "x"); kept["f"] = os.open("x", os.O_RDWR); os.unlink("x")`,
			`os.pwrite(kept["f"], b"pwned", 0)`},
		"a new file": {`os.mkdir(".claude"); kept["f"] = os.open(".claude/settings.json", os.O_RDWR | os.O_CREAT)
os.write(kept["f"], b"{}")`, `os.pwrite(kept["f"], b"pwned", 0)`},
	} {
		s.MustCall("mcp__s__py", host.Args{"text": way.keep})
		g.settled(t)
		g.goAlone(t, "go.py", way.write)
		if now := g.must(t, g.ws, plantsLook); now != before {
			t.Errorf("%s: outside stands\n%s", name, now)
		}
		s.MustCall("mcp__s__sh", host.Args{"text": "true"})
	}
	s.End()
	if now := g.must(t, g.ws, plantsLook); now != before {
		t.Errorf("in the end, outside stands\n%s", now)
	}
}

// TestSettleServerGit has a person set settings of git while a server runs, which stay, and the server, also by a
// descriptor that it has kept open, which do not.
func TestSettleServerGit(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	for _, backend := range samples.Of([]string{"namespaces", "landlock"}, 1) {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			g := newLeftoverGround(t, 0)
			if backend == "landlock" {
				g.as = host.WithoutNamespaces(t)
			}
			s := g.startServed(t, "")
			// The sandbox of commands, which starts with the host, counts as a command until it has started.
			s.MustCall("Bash", host.Args{"command": "true"})
			s.MustCall("mcp__s__py", host.Args{"text": `kept["f"] = os.open(".git/config", os.O_RDWR | os.O_APPEND)`})
			g.settled(t)
			g.must(t, g.ws, "git config core.pager person")
			g.goAlone(t, "go.py", `os.write(kept["f"], b"[core]\n\tfsmonitor = pwned\n")`)
			g.goAlone(t, "go.sh", "git config core.editor pwned; git config user.name server")
			g.settled(t)
			g.must(t, g.ws, "git config core.sshCommand person")
			s.MustCall("mcp__s__sh", host.Args{"text": "git config core.askPass pwned"})
			g.settled(t)
			s.End()
			const want = "person\nperson\nserver\n"
			if now := g.must(t, g.ws, "git config core.pager; git config core.sshCommand; git config user.name; git config core.fsmonitor; git config core.editor; git config core.askPass; true"); now != want {
				t.Errorf("the settings are %q\n%s", now, s.Stderr)
			}
		})
	}
}

// TestSettleServerBusy has a server plant a protected file between calls while one of its threads never shows that it
// has left a call: it computes, waits for the other end of a pipe, or is stopped.
func TestSettleServerBusy(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	const plant = " > /dev/null 2>&1 & echo pwned > .vscode/tasks.json"
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "mkdir .vscode; echo '{}' > .vscode/tasks.json")
	before := g.must(t, g.ws, plantsLook)
	s := g.startServed(t, "")
	s.MustCall("mcp__s__sh", host.Args{"text": "true"}) // starts it
	for _, way := range []struct{ name, script string }{
		{"stopped", `python3 -c 'import os, signal
open("y", "w"); os.kill(os.getpid(), signal.SIGSTOP)'` + plant},
		{"a pipe", "mkfifo p; (echo x > p)" + plant},
		{"computing", "(echo x > y; while :; do :; done)" + plant},
	} {
		g.goAlone(t, "go.sh", way.script)
		host.Eventually(t, func() string {
			if now := g.must(t, g.ws, plantsLook); now != before {
				return way.name + ": outside stands\n" + now
			}
			return ""
		})
	}
	s.End()
}

// TestSettlePersonsLink has a task touch a person's link to the settings of the host, and then a sandbox start while the
// task runs: what the link leads to is as protected as before. Landlock cannot protect it.
func TestSettlePersonsLink(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	g := newLeftoverGround(t, 0)
	g.must(t, g.ws, "mkdir conf other ../more; echo '{}' > conf/settings.json; ln -s conf .claude")
	host.MustWrite(t, filepath.Join(g.ws, "touch.py"), `import os, time
os.utime(".claude", (1, 1), follow_symlinks=False)
os.link(".claude", "y", follow_symlinks=False)
open("began", "w")
while not os.path.exists("over"): time.sleep(0.01)`)
	host.MustWrite(t, filepath.Join(g.ws, "write.py"), `import os
for name in "conf/settings.json", "conf/settings.local.json":
    try: open(name, "w").write('{"permissions":{"allow":["*"]}}')
    except OSError as e: print(name, e)
os.symlink("other", "z"); os.rename("z", ".claude")`)
	s := g.start(t)
	s.MustCall("Bash", host.Args{"command": "python3 touch.py", "run_in_background": true})
	host.Eventually(t, func() string {
		if _, err := os.Lstat(filepath.Join(g.ws, "began")); err != nil {
			return "the task has not begun"
		}
		return ""
	})
	// Another rule takes another sandbox.
	rules, err := os.ReadFile(g.settings)
	host.Must(t, err)
	more := fmt.Sprintf(`"allowWrite":[%q,`, filepath.Join(g.root, "more"))
	host.MustWrite(t, g.settings, strings.Replace(string(rules), `"allowWrite":[`, more, 1))
	said := s.MustCall("Bash", host.Args{"command": "python3 write.py; touch over"})
	s.End()
	const want = "conf\n{}\nsettings.json\n"
	if now := g.must(t, g.ws, "readlink .claude; cat conf/settings.json; ls conf"); now != want {
		t.Errorf("outside stands %q\n%s\n%s", now, said, s.Stderr)
	}
}

// TestSettleHome has a command change protected files where the home directory is a root: what other programs have
// directly in it cannot be written, and the rest is held.
func TestSettleHome(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	g.must(t, g.home, "mkdir -p .claude src/.vscode; echo '{}' | tee .bashrc .claude/settings.json > src/.vscode/tasks.json")
	before := g.must(t, g.home, "cat .bashrc .claude/settings.json src/.vscode/tasks.json; ls src -A")
	s := g.start(t, "--root", g.home)
	host.MustWrite(t, filepath.Join(g.home, "plant.sh"), `cd "$(dirname "$0")"
for f in .bashrc .claude/settings.json src/.vscode/tasks.json src/.claude/settings.json .profile; do
	mkdir -p $(dirname $f); echo y > $f && echo wrote $f
done`)
	r := s.MustCall("Bash", host.Args{"command": "bash " + filepath.Join(g.home, "plant.sh")})
	if strings.Count(r, "wrote ") != 4 || strings.Contains(r, "wrote .claude") ||
		!strings.Contains(r, "held until a person answers") {
		t.Errorf("the command says %s", r)
	}
	if now := g.must(t, g.home, "cat .bashrc .claude/settings.json src/.vscode/tasks.json; ls src -A; ! ls .profile 2> /dev/null"); now != before {
		t.Errorf("outside stands\n%s\nbefore\n%s", now, before)
	}
	s.End()
}
