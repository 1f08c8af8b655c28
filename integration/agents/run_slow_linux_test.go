//go:build slow

package agents

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// answersItself is a client in a cell, in Python, that says it can ask a person, and answers itself what it is asked. It calls for a command
// outside of the sandbox, and for one that a rule asks for.
const answersItself = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
def send(m): f.write(json.dumps(dict(m, jsonrpc="2.0")) + "\n"); f.flush()
send({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "x", "version": "1"}}})
f.readline(); send({"method": "notifications/initialized"})
for n, args in enumerate([{"command": "cat ~/.ssh/id_ed25519", "dangerouslyDisableSandbox": True}, {"command": "git push origin main; echo pushed=$?"}]):
    send({"id": 2 + n, "method": "tools/call", "params": {"name": "Bash", "arguments": args}})
    while True:
        m = json.loads(f.readline())
        if m.get("method") == "elicitation/create":
            print("BREACH: it was asked", m["params"]["message"]); send({"id": m["id"], "result": {"action": "accept", "content": {"decision": m["params"]["requestedSchema"]["properties"]["decision"]["enum"][0]}}})
        if m.get("id") == 2 + n: print("refused" if m["result"].get("isError") else "BREACH", json.dumps(m["result"])); break
`

// TestRunAttacks has a client try in its own shell what no tool may.
func TestRunAttacks(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	outside := filepath.Join(p.Home, "outside")
	for _, a := range []struct{ name, script, says string }{
		{"a denied file", "cat .env; cp .env copy; cat copy; ln .env link; cat link", "denied"},
		{"a secret of the home directory", "cat ~/.ssh/id_ed25519; ls -A ~/.ssh", "denied"},
		{"a file outside", "echo x > " + outside, "Read-only"},
		{"a denied program through make", "make wipe; sh -c 'r''m kept.txt'; ls kept.txt", "rule Bash(rm:*)"},
		{"a program that a rule asks for, and no one answers", "git push origin main", "rule Bash(git push:*)"},
		{"the rules", "echo '{}' > .toolhost/toolhost.json; mv .toolhost x; mkdir -p .toolhost", ".toolhost/toolhost.json"},
		{"the settings of another agent", "echo '{}' > ~/.claude/settings.json", "Read-only"},
		{"the state of the host", "ls -A ~/state/toolhost; mkdir -p ~/state/toolhost; echo x > ~/state/toolhost/x", "No such file"}, // it has a layer there
		{"a host", "curl -sS --max-time 5 http://example.com/", "example.com"},
		{"a service of the host", "exec 3<>/dev/tcp/127.0.0.1/" + port + " && echo BREACH", "refused"},
		{"a service of the host through the proxy", "curl -sS --noproxy '' --max-time 5 http://127.0.0.1:" + port + "/ http://localhost:" + port + "/", "refused"},
		{"our entry", "ls ~/.cache/toolhost/cell-*/ && echo x > $(ls -d ~/.cache/toolhost/cell-*)/mcp.json", "Read-only"},
		{"another run", host.Binary + " run -- true", "nested"},
		{"an answer of its own to a question", "python3 -c '" + answersItself + "' ~/.cache/toolhost/cell-*/mcp.sock", "refused"},
		{"rules by the command line", host.Binary + " allow 'Bash(rm:*)'", "is for a person"},
	} {
		t.Run(a.name, func(t *testing.T) {
			out, _ := p.Run(t, nil, host.Binary, "run", "--", "bash", "-c", a.script)
			if !strings.Contains(out, a.says) {
				t.Errorf("it does not say %q:\n%s", a.says, out)
			}
			if strings.Contains(out, "SECRET") || strings.Contains(out, "BREACH") {
				t.Errorf("it got through:\n%s", out)
			}
		})
	}
	for name, want := range map[string]string{
		filepath.Join(p.Project, "kept.txt"): "kept\n", filepath.Join(p.Project, ".env"): "SECRET=1\n",
		filepath.Join(p.Home, ".claude/settings.json"): "{}\n",
	} {
		if got, err := os.ReadFile(name); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	for _, name := range []string{outside, filepath.Join(p.Home, "state/toolhost/x")} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// TestRunUsage has programs that cannot be run.
func TestRunUsage(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	host.Must(t, os.WriteFile(filepath.Join(p.Project, "plain"), nil, 0o600))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--", "no-such-client"}, 127, `there is no program "no-such-client" in PATH`},
		{[]string{"--", "./plain"}, 126, "permission denied"},
		{[]string{"--", "sh", "-c", "kill -9 $$"}, 137, ""},
		{[]string{"--", "sh", "-c", "exit 3"}, 3, ""},
		{[]string{"--", "sh", "-c", "kill -TERM $$"}, 143, ""},
		{[]string{"--", "/tmp"}, 126, "is a directory"},
		{[]string{"--allow-host", "https://x/", "--", "true"}, 2, "without scheme and path"},
		{nil, 2, "CLIENT"},
	} {
		cmd := exec.Command(host.Binary, append([]string{"run"}, c.args...)...)
		cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%q ends with %d and says\n%s", c.args, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// callsSockets is a client that talks to each Unix socket it is told of.
const callsSockets = `
import socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'); s.settimeout(5); print("BREACH", path, s.recv(100))
    except OSError as e: print("held", path, e)
`

// TestRunOthers has a client in one cell talk to the socket of another, and to the console of the host.
func TestRunOthers(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	cmd := exec.Command(host.Binary, "run", "--", "sh", "-c", "echo begun; until [ -e over ]; do sleep .1; done")
	cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
	begun := &host.LockedBuffer{}
	cmd.Stdout = begun
	host.Must(t, cmd.Start())
	defer func() {
		host.Must(t, os.WriteFile(filepath.Join(p.Project, "over"), nil, 0o600))
		host.Must(t, cmd.Wait())
	}()
	host.Eventually(t, func() string {
		if begun.String() == "" {
			return "the other client has not begun"
		}
		return ""
	})
	sockets, _ := filepath.Glob(filepath.Join(p.Home, ".cache/toolhost/cell-*/*.sock"))
	consoles, _ := filepath.Glob(filepath.Join(p.Home, "state/toolhost/console/*.sock"))
	if len(sockets) != 2 || len(consoles) != 1 {
		t.Fatalf("sockets %v, consoles %v", sockets, consoles)
	}
	args := append([]string{"run", "--", "python3", "-c", callsSockets}, append(sockets, consoles...)...)
	if out, ok := p.Run(t, nil, host.Binary, args...); !ok || strings.Count(out, "held ") != 3 ||
		strings.Contains(out, "BREACH") {
		t.Errorf("it says\n%s", out)
	}
}

// TestRunLogin: where ports are not published, that of a login is, once its page was opened.
func TestRunLogin(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	host.Must(t, os.MkdirAll(filepath.Join(p.Home, "config/toolhost"), 0o700))
	host.Must(t, os.WriteFile(filepath.Join(p.Home, "config/toolhost/toolhost.json"),
		[]byte(`{"sandbox":{"network":{"publishPorts":false}}}`), 0o600))
	bin := filepath.Join(p.Home, "bin") // of the person's own browser
	host.Must(t, os.Mkdir(bin, 0o700))
	host.Must(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" >> "+p.Home+"/opened\n"), 0o700))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	host.Must(t, l.Close())
	page := "https://login.example.com/?client=1&redirect_uri=http%3A%2F%2Flocalhost%3A" + port + "%2Fdone"
	cmd := exec.Command(host.Binary, "run", "--allow-host", "login.example.com", "--", "sh", "-c",
		"python3 -m http.server --bind 127.0.0.1 "+port+
			" & until [ -e go ]; do sleep .1; done; xdg-open 'https://other.example.com/'; xdg-open '"+page+"'; until [ -e over ]; do sleep .1; done")
	cmd.Dir, cmd.Env = p.Project, append(host.CleanEnv(p.Home), "PATH="+bin+":"+os.Getenv("PATH"))
	out := &host.LockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	host.Must(t, cmd.Start())
	fetch := func() error {
		resp, err := http.Get("http://127.0.0.1:" + port + "/kept.txt")
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if fetch() == nil {
		t.Error("the port is published before the login")
	}
	host.Must(t, os.WriteFile(filepath.Join(p.Project, "go"), nil, 0o600))
	host.Eventually(t, func() string {
		if err := fetch(); err != nil {
			return fmt.Sprintf("the page cannot lead back: %v\n%s", err, out)
		}
		return ""
	})
	host.Must(t, os.WriteFile(filepath.Join(p.Project, "over"), nil, 0o600))
	host.Must(t, cmd.Wait())
	if opened, _ := os.ReadFile(filepath.Join(p.Home, "opened")); string(opened) != page+"\n" ||
		!strings.Contains(out.String(), "other.example.com is not opened") {
		t.Errorf("opened: %q\n%s", opened, out)
	}
}

// newClientRunner is a person with a client, in a workspace of files for the model that played plays at url.
func newClientRunner(t *testing.T, c realClient) (p person, program string, env []string, played *host.Scripted,
	url string) {
	t.Helper()
	program, env = host.ClientProgram(t, c.program)
	p = newRunner(t)
	for _, name := range []string{".toolhost/toolhost.json", ".toolhost", ".env"} {
		host.Must(t, os.Remove(filepath.Join(p.Project, name)))
	}
	host.WriteModelFiles(t, p.Project)
	c.install = ""
	played, url = playModel(t)
	c.add(t, p, env, url)
	return p, program, env, played, url
}

// TestRunClients has real clients work for a model that this test plays, in a cell: by the tools of this host, which no entry of the
// user names.
func TestRunClients(t *testing.T) {
	for _, c := range realClients {
		if c.name != "claude" && c.name != "codex" && os.Getenv("TOOLHOST_RUN_ALL") == "" || c.install == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, program, env, played, url := newClientRunner(t, c)
			args, more := c.args(url)
			run := append([]string{"run", "--allow-host", strings.TrimPrefix(url, "http://"), "--", program}, args...)
			out, ok := p.Run(t, append(env, more...), host.Binary, run...)
			if !ok {
				t.Fatalf("%s failed:\n%s", c.program, out)
			}
			played.Check(t)
			if strings.Contains(out, "not published") {
				t.Errorf("it says of the model's port\n%s", out)
			}
		})
	}
}

// TestRunTerminal has a client in a terminal: colours, size, keys, suspension, a large paste, and the mode of the terminal afterwards.
func TestRunTerminal(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	w := newTerminal(t, p, nil, "bash", "--norc", "-i")
	press := func(keys ...string) { w.do(append([]string{"send-keys"}, keys...)...) }
	shows := func(words ...string) { host.Eventually(t, func() string { return w.lacks(words) }) }
	press("PS1='outer> '; before=$(stty -g); clear; "+host.Binary+" run -- bash --norc -i", "Enter")
	shows("the console is opened by")
	press(`printf '\033[31m%s-%s\033[0m %s\n' "$(stty size)" "$(tput colors)" "$(tty)"`, "Enter")
	shows("50 120-256 /dev/pts/0")
	if !strings.Contains(w.do("capture-pane", "-p", "-e"), "\x1b[31m50 120-256") {
		t.Error("colours are lost")
	}
	w.do("resize-window", "-x", "100", "-y", "40")
	press("clear; until stty size | grep '40.100'; do sleep .1; done", "Enter") // the change and the keys travel apart
	shows("40 100")
	press("sh -c 'echo sl''eeps; exec sleep 1000'; echo status-$?", "Enter")
	shows("sleeps")
	press("C-c")
	press("echo interrupted-$?", "Enter")
	shows("interrupted-130")
	host.Must(t, os.WriteFile(filepath.Join(p.Home, "paste"), []byte(strings.Repeat(strings.Repeat("x", 99)+"\n", 2000)+"\x04"), 0o600))
	// Without an echo, which the kernel may write after the count. The shell reads the terminal itself until it says so.
	press("clear; stty -echo; echo re''ady; cat | wc -c; stty echo", "Enter")
	shows("ready")
	w.do("load-buffer", filepath.Join(p.Home, "paste"))
	w.do("paste-buffer", "-r")
	shows("200000")
	press("clear; suspend -f; echo re''sumed", "Enter")
	shows("Stopped")
	press("fg", "Enter")
	press("", "Enter")
	shows("resumed")
	host.Must(t, os.MkdirAll(filepath.Join(p.Home, "config/toolhost"), 0o700))
	host.Must(t, os.WriteFile(filepath.Join(p.Home, "config/toolhost/toolhost.json"),
		[]byte(`{"permissions":{"denied":[]}}`), 0o600))
	press("ls; clear; exit 9", "Enter") // a message about the settings would be cleared with the rest, were it not held
	shows("outer>", "WARN", "unknown key")
	press(`echo sta''tus-$?; [ "$before" = "$(stty -g)" ] && echo sa''me-mode`, "Enter")
	shows("status-9", "same-mode")
}

// TestRunTerminalVanishes ends everything with the terminal.
func TestRunTerminalVanishes(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	mark := fmt.Sprintf("20%d", os.Getpid())
	w := newTerminal(t, p, nil, host.Binary, "run", "--", "bash", "--norc", "-c",
		"trap '' HUP TERM; echo re''ady; sleep "+mark)
	host.Eventually(t, func() string { return w.lacks([]string{"ready"}) })
	w.do("kill-window")
	host.Eventually(t, func() string {
		if found, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output(); len(found) > 0 {
			return fmt.Sprintf("the client is left: %s", found)
		}
		return ""
	})
	w.tmux = "true" // its server has ended with the window
}

// pastes is a person who pastes into the terminal of a program that reads it all, in Python. It prints how much memory toolhost run has
// taken meanwhile, in KiB.
const pastes = `
import os, pty, re, sys
size, argv = int(sys.argv[1]), sys.argv[2:]
reads = "import os, sys, tty; tty.setraw(0); print('re'+'ady', flush=True)\nn = %d\nwhile n > 0: n -= len(os.read(0, 65536))\nprint('do'+'ne', flush=True)" % size
pid, fd = pty.fork()
if pid == 0: os.execvp(argv[0], argv + ["--", "python3", "-c", reads])
peak = lambda: int(re.search(r"VmHWM:\s+(\d+)", open("/proc/%d/status" % pid).read()).group(1))
def until(word):
    said = b""
    while word not in said: said += os.read(fd, 65536)
until(b"ready")
before, left = peak(), size
while left > 0: left -= os.write(fd, b"x" * min(left, 65536))
until(b"done")
print("took", peak() - before)
`

// TestRunPaste: a paste of any size takes no memory of toolhost run.
func TestRunPaste(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	size := 32 << 20
	if samples.Whole() {
		size = 1 << 30
	}
	out, ok := p.Run(t, nil, "python3", "-c", pastes, fmt.Sprint(size), host.Binary, "run")
	took := 0
	if _, err := fmt.Sscanf(out, "took %d\n", &took); !ok || err != nil || took > 8<<10 {
		t.Errorf("%d KiB, %v\n%s", took, err, out)
	}
}

// killAtRandom starts a program again and again and kills it at a random moment of the time that the first one takes, which is not
// killed. Nothing whose command line holds the mark may run on. Then it calls ended with that moment.
func killAtRandom(t *testing.T, runs int, start func(mark string) *exec.Cmd, ended func(run int, alarm time.Duration)) {
	t.Helper()
	var whole time.Duration // of a run that is not killed
	for run := range runs {
		mark := fmt.Sprintf("30%d", rand.Int32()) // as the time of a sleep
		cmd := start(mark)
		began, alarm := time.Now(), time.Hour
		if run > 0 {
			alarm = rand.N(whole)
		}
		host.Must(t, cmd.Start())
		kill := time.AfterFunc(alarm, func() { cmd.Process.Kill() })
		_ = cmd.Wait() // it is killed, or not
		if kill.Stop() && run == 0 {
			whole = time.Since(began)
		}
		host.Eventually(t, func() string {
			if found, _ := exec.Command("pgrep", "-f", mark).Output(); len(found) > 0 {
				return fmt.Sprintf("killed after %v: it runs on: %s", alarm, found)
			}
			return ""
		})
		ended(run, alarm)
	}
}

// TestRunKilled kills toolhost run at random moments: nothing of it runs on, and the next one removes what it has left.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	killAtRandom(t, samples.Rounds(6), func(mark string) *exec.Cmd {
		cmd := exec.Command(host.Binary, "run", "--", "sh", "-c", ": "+mark+"; (setsid sleep "+mark+
			" &); for i in $(seq 30); do echo $i > f$i; ls > /dev/null; done")
		cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
		return cmd
	}, func(int, time.Duration) {})
	old := time.Now().Add(-2 * time.Minute) // so that no host is about to begin there
	for _, pattern := range []string{".cache/toolhost/cell-*", "state/toolhost/console/*"} {
		left, _ := filepath.Glob(filepath.Join(p.Home, pattern))
		for _, path := range left {
			host.Must(t, os.Chtimes(path, old, old))
		}
	}
	if out, ok := p.Run(t, nil, host.Binary, "run", "--", "sh", "-c", "echo again; cat f1"); !ok ||
		!strings.Contains(out, "again\n1\n") {
		t.Errorf("the next one says\n%s", out)
	}
	for _, pattern := range []string{".cache/toolhost/cell-*", "state/toolhost/private/host-*",
		"state/toolhost/console/*"} {
		if left, _ := filepath.Glob(filepath.Join(p.Home, pattern)); len(left) > 0 {
			t.Errorf("left: %s", left)
		}
	}
}

// TestRunFull has a client that cannot be started because the disk is full: the error says so, and nothing is left. Once there is room,
// it starts.
func TestRunFull(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"state", ".cache"} {
		t.Run(place, func(t *testing.T) {
			p := newRunner(t)
			full := filepath.Join(p.Home, place)
			host.Tmpfs(t, full, "size=4m")
			run := func() (string, int) {
				cmd := exec.Command(host.Binary, "run", "--", "sh", "-c", "echo ran > ran; exit 6")
				cmd.Dir, cmd.Env = p.Project, host.CleanEnv(p.Home)
				out, _ := cmd.CombinedOutput()
				return string(out), cmd.ProcessState.ExitCode()
			}
			filler := host.Fill(t, full, 0)
			out, code := run()
			if _, err := os.Stat(filepath.Join(p.Project, "ran")); code != 1 || err == nil ||
				!strings.Contains(out, "\ntoolhost: ") || !strings.Contains(out, "no space left on device") {
				t.Errorf("it ended with %d, the client has run: %t\n%s", code, err == nil, out)
			}
			for _, pattern := range []string{".cache/toolhost/cell-*", "state/toolhost/private/host-*",
				"state/toolhost/console/*"} {
				if left, _ := filepath.Glob(filepath.Join(p.Home, pattern)); len(left) > 0 {
					t.Errorf("left: %s", left)
				}
			}
			host.Must(t, os.Remove(filler))
			if out, code := run(); code != 6 {
				t.Errorf("with room it ended with %d\n%s", code, out)
			}
		})
	}
}

// TestRunUnknown has a client that is in no table change its configuration: it works on copies, which the next run finds, and the person's
// files stay.
func TestRunUnknown(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	bin := host.TempDir(t)
	client := filepath.Join(bin, "otherclient")
	host.MustWrite(t, client, "#!/bin/sh\nfor f in .otherclient config/otherclient .local/share/otherclient; do echo new >> ~/$f/file && cat ~/$f/file; done\n")
	host.Must(t, os.Chmod(client, 0o755))
	files := []string{".otherclient/file", "config/otherclient/file", ".local/share/otherclient/file"}
	for _, name := range files {
		host.MustWrite(t, filepath.Join(p.Home, name), "old\n")
	}
	for _, want := range []string{"old\nnew\n", "old\nnew\nnew\n"} {
		if out, ok := p.Run(t, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, host.Binary, "run", "--",
			"otherclient"); !ok || !strings.Contains(out, strings.Repeat(want, len(files))) {
			t.Errorf("it says\n%s\nnot %q", out, want)
		}
	}
	for _, name := range files {
		if text, err := os.ReadFile(filepath.Join(p.Home, name)); err != nil || string(text) != "old\n" {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
}

// TestRunNoSize has a client in a terminal that tells no size, as some programs that run others give them.
func TestRunNoSize(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	out, _ := p.Run(t, nil, "python3", "-c", `import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)`, host.Binary,
		"run", "--", "sh", "-c", "stty size; test -t 0 && echo terminal; exit 5")
	if !strings.Contains(out, "0 0\r\n") || !strings.Contains(out, "terminal") {
		t.Errorf("it says %q", out)
	}
}
