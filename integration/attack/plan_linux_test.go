package attack

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestPlanCloses opens services of the host to commands by settings, which plan mode closes, and lets commands try to
// reach them.
func TestPlanCloses(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	var reached atomic.Int32
	serve := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		host.Must(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				reached.Add(1)
				fmt.Fprintln(c, "HTTP/1.0 200 OK\r\n\r\nreached")
				c.Close()
			}
		}()
		return l
	}
	w := newWorld(t)
	short, err := os.MkdirTemp("", "s") // the name of a socket is short
	host.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	port := serve("tcp", "127.0.0.1:0").Addr().(*net.TCPAddr).Port
	socket := serve("unix", filepath.Join(short, "bus")).Addr().String()
	inside := serve("unix", filepath.Join(short, "ws")).Addr().String()
	host.Must(t, os.Rename(inside, filepath.Join(w.ws, "daemon")))
	settings := func(mode string) string {
		path := filepath.Join(w.root, mode+"-open.json")
		host.Must(t, os.WriteFile(path, fmt.Appendf(nil, `{"permissions":{"defaultMode":%q},"sandbox":{"network":{"allowedDomains":["localhost:%d","127.0.0.1:%d"],
			"allowUnixSockets":[%q,%q]}}}`, mode, port, port, socket, filepath.Join(w.ws, "daemon")), 0o600))
		return path
	}
	commands := []string{
		fmt.Sprintf("curl -sS http://localhost:%d/", port),
		fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && cat <&3", port),
		fmt.Sprintf("curl -sS --noproxy '*' --unix-socket %s http://x/", socket),
		"cd $PWD; curl -sS --noproxy '*' --unix-socket daemon http://x/",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=" + socket + " python3 -c 'import socket, os; s = socket.socket(socket.AF_UNIX); s.connect(\"" + socket + "\"); print(s.recv(99))'",
	}
	for mode, want := range map[string]bool{"acceptEdits": true, "plan": false} {
		h := w.host(t, host.StdioModern, "--root", w.ws, "--settings", settings(mode))
		for _, command := range commands {
			before := reached.Load()
			said := h.call(t, "Bash", fmt.Sprintf(`{"command":%q}`, command), mode)
			got := reached.Load() > before
			if mode == "plan" && (got || strings.Contains(said.text, "allow-host")) || want && !got &&
				strings.Contains(command, "daemon") {
				t.Errorf("%s: %s: reached %v\n%s", mode, command, got, said.text)
			}
		}
		if want == (reached.Load() == 0) {
			t.Errorf("%s: %d commands reached a service of the host", mode, reached.Load())
		}
		w.end(t, h)
		reached.Store(0)
	}
}
