package sandbox

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
)

// loopbackServer starts a server of another program on the host's loopback interface, which says "the host".
func loopbackServer(t testing.TB) (port string) {
	t.Helper()
	cmd := exec.Command("python3", "-c", `
import socket
s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True)
while True: c, _ = s.accept(); c.sendall(b"the host\n"); c.close()`)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if _, err := fmt.Fscan(out, &port); err != nil {
		t.Fatal(err)
	}
	return port
}

// A service of the host's loopback interface is asked for by its port, and refused without an answer.
func TestLocalServices(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := newOuterNetwork(t)
	o := w.options()
	o.Dial = nil
	s := startWithTUN(t, f, o)
	port := loopbackServer(t)
	own := listen(t, "tcp", "127.0.0.1:0") // of this process
	_, closedPort, _ := net.SplitHostPort(freeAddress(t))
	_, ownPort, _ := net.SplitHostPort(own.Addr().String())
	const read = `python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET); s.settimeout(20)
s.connect((sys.argv[1], int(sys.argv[2]))); print(s.recv(99).decode())' `
	proxied := "curl -sS --http0.9 --noproxy '' -x " + s.proxy.Env()[0][len("HTTP_PROXY="):] + " telnet://"
	for _, c := range []struct {
		name, script string
		allow        bool
		asks, says   string
		refused      string
	}{
		{"allowed", read + "127.0.0.1 " + port, true, "localhost:" + port, "the host", ""},
		{"by name", "cat </dev/tcp/localhost/" + port, true, "localhost:" + port, "the host", ""},
		{"by another address", read + "127.1.2.3 " + port, true, "localhost:" + port, "the host", ""},
		{"by a mapped address", read + "::ffff:127.0.0.1 " + port, true, "localhost:" + port, "the host", ""},
		{"by IPv6", read + "::1 " + port, true, "localhost:" + port, "the host", ""},
		{"by IPv6 alone", `python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6); s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
s.connect(("::1", int(sys.argv[1]))); print(s.recv(99).decode())' ` + port, true, "localhost:" + port, "the host", ""},
		{"by no address", read + "0.0.0.0 " + port, true, "localhost:" + port, "the host", ""},
		{"by no address of IPv6", read + ":: " + port, true, "localhost:" + port, "the host", ""},
		{"by a number", read + "2130706433 " + port, true, "localhost:" + port, "the host", ""},
		{"by a subdomain", "cat </dev/tcp/app.LOCALHOST./" + port, true, "localhost:" + port, "the host", ""},
		{"by the proxy", proxied + "127.0.0.1:" + port, true, "localhost:" + port, "the host", ""},
		{"by a subdomain and the proxy", proxied + "app.localhost:" + port, true, "localhost:" + port, "the host", ""},
		{"by no address and the proxy", proxied + "0:" + port, true, "localhost:" + port, "the host", ""},
		{"of this process by IPv6", read + "::1 " + ownPort, true, "", "Connection refused", "localhost:" + ownPort + " it is a port of this toolhost, which commands never reach"},
		{"by the stand-in", read + "198.18.0.3 " + port, true, "localhost:" + port, "the host", ""},
		{"that does not block", `python3 -c '
import asyncio, sys
async def main(): print((await (await asyncio.open_connection("127.0.0.1", sys.argv[1]))[0].read()).decode())
asyncio.run(main())' ` + port, true, "localhost:" + port, "the host", ""},
		{"refused", read + "127.0.0.1 " + port, false, "localhost:" + port, "Connection refused", "localhost:" + port + " a person refused it"},
		{"closed", read + "127.0.0.1 " + closedPort, true, "", "Connection refused", ""},
		{"of this process", read + "127.0.0.1 " + ownPort, true, "", "Connection refused", "localhost:" + ownPort + " it is a port of this toolhost, which commands never reach"},
		{"another loopback address as the socket's own", `python3 -c '
import socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.connect(("127.0.0.1", int(sys.argv[1]))); print("BREACH")' ` + port, true, "", "Connection refused", ""},
		{"UDP", `python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("127.0.0.1", int(sys.argv[1]))); print(s.getpeername()[0])' ` + port, true, "", "127.0.0.1", ""},
		{"a port of the sandbox", `python3 -c '
import socket, sys
port = int(sys.argv[1]); l = socket.create_server(("127.0.0.1", port))
c = socket.create_connection(("127.0.0.1", port)); l.accept()[0].sendall(b"inside\n"); print(c.recv(9).decode()); l.close()
try: socket.create_connection(("127.0.0.1", port)); print("BREACH")
except ConnectionRefusedError: print("closed")' ` + port, true, "", "inside\n\nclosed\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Refused()
			a := &asked{allows: func(connectgate.Connection) bool { return c.allow }}
			r := a.run(t, f, s, c.script)
			got := strings.Join(a.seen, ", ")
			if i := strings.LastIndexByte(got, ' '); got[i+1:] != c.asks || !strings.Contains(r.output, c.says) ||
				strings.Contains(r.output, breach) {
				t.Errorf("asked about %q, want %q; output\n%s", got, c.asks, r.output)
			}
			refused := ""
			for _, r := range s.Refused() {
				refused += r.Host + " " + r.Why
			}
			if refused != c.refused {
				t.Errorf("refused %q, want %q", refused, c.refused)
			}
		})
	}
}
