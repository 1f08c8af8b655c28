package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
)

// asked is a judge that allows hosts below asked.test, or others, and notes what it is asked.
type asked struct {
	mu     sync.Mutex
	seen   []string // "PROGRAM → PROGRAM HOST:PORT"
	wait   func()
	allows func(connectgate.Connection) bool
}

func (a *asked) judge(_ context.Context, c connectgate.Connection) (bool, string) {
	a.mu.Lock()
	a.seen = append(a.seen, fmt.Sprintf("%s %s:%s", strings.Join(c.Chain, " → "), c.Host, c.Port))
	a.mu.Unlock()
	if a.wait != nil {
		a.wait()
	}
	if a.allows != nil {
		return a.allows(c), "a person refused it"
	}
	return strings.HasSuffix(c.Host, ".asked.test") || c.Host == "10.1.2.3", "a person refused it"
}

// runAsking runs a script whose connections a judge decides about.
func (a *asked) run(t testing.TB, f *fixture, s *Sandbox, script string) result {
	t.Helper()
	gate := connectgate.New()
	defer gate.Close()
	gate.Judge(a.judge)
	r, err := tryAsking(s, gate, f.ws, f.env, "timeout", "60", "bash", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An unknown host is asked about with the programs that lead to it, with and without the proxy. The answer decides.
func TestHostsAreAsked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"python3", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	proxy := strings.Join(s.proxy.Env(), " ")
	const connect = `python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], 80)).sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")' `
	for _, c := range []struct{ name, script, asks, says, refused string }{
		{"curl", "curl -sS http://a.asked.test/", "bash → curl a.asked.test:80", "the web: a.asked.test", ""},
		{"the proxy", "env " + proxy + " curl -sS http://b.asked.test/", "bash → curl b.asked.test:80", "the web: b.asked.test", ""},
		{"a tunnel", "env " + proxy + " curl -sSk https://c.asked.test/", "bash → curl c.asked.test:443", "the web: c.asked.test", ""},
		{"a shell", "exec 3<>/dev/tcp/d.asked.test/80; echo open", "bash d.asked.test:80", "open", ""},
		{"a daemon", "(setsid sh -c 'sleep 0.2; curl -sS http://e.asked.test/; echo end' &) | cat", "sh → curl e.asked.test:80", "the web: e.asked.test", ""},
		{"IPv6 sockets", `python3 -c '
import socket
s = socket.socket(socket.AF_INET6); s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.connect(("::ffff:" + socket.gethostbyname("f.asked.test"), 80)); print("open")'`, "bash → python3 f.asked.test:80", "open", ""},
		{"an address", connect + "9.9.9.9", "bash → python3 9.9.9.9:80", "", "9.9.9.9:80 bash → python3 a person refused it"},
		{"a private address", connect + "10.1.2.3 && echo open", "bash → python3 10.1.2.3:80", "open", ""},
		{"metadata", connect + "::ffff:169.254.169.254", "", "", "169.254.169.254:80 bash → python3 it is not in sandbox.network.allowedDomains"},
		{"refused", "curl -sS http://no.evil.test/", "bash → curl no.evil.test:80", "", "no.evil.test:80 bash → curl a person refused it"},
		{"refused by the proxy", "env " + proxy + " curl -sS http://np.evil.test/", "bash → curl np.evil.test:80", "", "np.evil.test:80 bash → curl a person refused it"},
		{"allowed", "curl -sS http://x.allowed.test/", "", "the web: x.allowed.test", ""},
		{"a private network", connect + "rebind.asked.test", "bash → python3 rebind.asked.test:80", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Refused()
			a := &asked{}
			r := a.run(t, f, s, c.script)
			if got := strings.Join(a.seen, ", "); got != c.asks && got != strings.TrimPrefix(c.asks, "bash → ") ||
				!strings.Contains(r.output, c.says) {
				t.Errorf("asked about %q, want %q; output\n%s", got, c.asks, r.output)
			}
			refused := []string{}
			for _, r := range s.Refused() {
				refused = append(refused, r.Host+" "+r.Program+" "+r.Why)
			}
			if got := strings.Join(refused, ", "); c.refused != "" && got != c.refused &&
				got != strings.Replace(c.refused, "bash → ", "", 1) {
				t.Errorf("refused %q, want %q", got, c.refused)
			}
		})
	}
}

// The program of a connection is the one that has called connect(2), whatever its process runs when the question comes,
// and whoever holds the socket then.
func TestHostsKnowTheProgram(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	const begin = `python3 -c '
import os, socket, sys, time
s = socket.socket(); s.setblocking(False); os.set_inheritable(s.fileno(), True)
try: s.connect((sys.argv[1], 80))
except BlockingIOError: pass
`
	for _, c := range []struct{ name, script, program string }{
		{"itself", begin + `time.sleep(1)' a.asked.test`, "python3"},
		{"another program afterwards", begin + `os.execvp("sleep", ["sleep", "1"])' b.asked.test`, "python3"},
		{"a child that has the socket", begin + `os.spawnvp(os.P_WAIT, "sleep", ["sleep", "1"])' c.asked.test`, "python3"},
		{"a copy", `cp "$(readlink -f /bin/bash)" here; ./here -c 'exec 3<>/dev/tcp/d.asked.test/80'`, "here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []connectgate.Program
			a := &asked{allows: func(c connectgate.Connection) bool { got = append(got, c.Program); return false }}
			r := a.run(t, f, s, c.script)
			if len(got) == 0 || !strings.HasPrefix(filepath.Base(got[0].Path), c.program) {
				t.Errorf("programs %+v, want %s; output\n%s", got, c.program, r.output)
			}
		})
	}
}

// Commands at the same time: each is asked about its own hosts. What an ended one has left asks no other.
func TestHostsOfCommands(t *testing.T) {
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			a := &asked{}
			r := a.run(t, f, s, fmt.Sprintf("for n in 1 2 3; do exec 3<>/dev/tcp/c%d-$n.asked.test/80 && echo open; done", i))
			slices.Sort(a.seen)
			for n, seen := range a.seen {
				if want := fmt.Sprintf("c%d-%d.asked.test:80", i, n+1); !strings.HasSuffix(seen, want) {
					t.Errorf("command %d was asked about %q, want %q", i, seen, want)
				}
			}
			if len(a.seen) != 3 || r.output != "open\nopen\nopen\n" {
				t.Errorf("command %d: asked %q, output %q", i, a.seen, r.output)
			}
		})
	}
	all.Wait()
	if r := runIn(t, s, f.ws, f.env, "bash", "-c", "exec 3<>/dev/tcp/x.asked.test/80"); r.status.ExitCode == 0 {
		t.Error("a command without a judge reaches a host")
	}
}

// Event loops run while a person thinks, and the time limits of programs hold.
func TestHostsWaitAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	for _, c := range []struct{ name, script string }{
		{"python3", `python3 -c '
import asyncio, sys
async def main():
    task = asyncio.ensure_future(asyncio.open_connection("a.asked.test", 80))
    for _ in range(20): await asyncio.sleep(0.01)
    try: await asyncio.wait_for(asyncio.open_connection("b.asked.test", 80), 0.2)
    except asyncio.TimeoutError: print("its own limit")
    print("done" if task.done() else "waits")
    open(sys.argv[1], "w").close()
    await task
    print("open")
asyncio.run(main())'`},
		{"node", `node -e '
const net = require("net"), fs = require("fs")
let ticks = 0
const timer = setInterval(() => { if (++ticks == 20) { console.log("its own limit\nwaits"); fs.closeSync(fs.openSync(process.argv[1], "w")) } }, 10)
net.connect(80, "a.asked.test", () => { clearInterval(timer); console.log("open"); process.exit() })'`},
		{"curl", `curl -sS -m 0.3 http://a.asked.test/; [ $? = 28 ] && printf 'its own limit\nwaits\n'; f() { : >"$1"; curl -sS http://a.asked.test/ >/dev/null && echo open; }; f`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.name); err != nil {
				t.Skip(err)
			}
			thinks := filepath.Join(f.ws, "thinks-"+c.name)
			if err := unix.Mkfifo(thinks, 0o600); err != nil {
				t.Fatal(err)
			}
			a := &asked{wait: sync.OnceFunc(func() { _, _ = os.ReadFile(thinks) })} // until the program closes it
			r := a.run(t, f, s, c.script+" "+thinks)
			if !strings.HasSuffix(r.output, "its own limit\nwaits\nopen\n") {
				t.Errorf("output\n%s", r.output)
			}
		})
	}
}
