package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

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
