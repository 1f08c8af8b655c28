//go:build slow

package attack

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// A canary is a service of this machine that no command may reach, on the same port of both loopback addresses.
type canary struct {
	port    string
	reached atomic.Int32
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{}
	first, err := net.Listen("tcp4", "127.0.0.1:0")
	host.Must(t, err)
	_, c.port, _ = net.SplitHostPort(first.Addr().String())
	all := []net.Listener{first}
	if second, err := net.Listen("tcp6", "[::1]:"+c.port); err == nil {
		all = append(all, second)
	}
	for _, l := range all {
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.reached.Add(1)
				fmt.Fprint(conn, "HTTP/1.0 200 OK\r\n\r\nreached\n")
				conn.Close()
			}
		}()
	}
	return c
}

// connecting is a program that connects to its first argument.
const connecting = `python3 -c "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10); print(s.recv(99))" `

// TestAttackNetwork has commands reach services of this machine, by all names of it and as a program that may.
func TestAttackNetwork(t *testing.T) {
	testenv.NeedsNamespaces(t)
	t.Parallel()
	host.NeedsContained(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"python3", "curl", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	g := host.NewGround(t)
	closed, open := newCanary(t), newCanary(t)
	metrics := fmt.Sprint(freePort(t, 25_000))
	settings := filepath.Join(g.Home, "programs.json")
	host.Must(t, os.WriteFile(settings, fmt.Appendf(nil, `{"sandbox":{"network":{"programs":{"curl":["localhost:%s"],"npm":["localhost:%s"]}}}}`, open.port, open.port), 0o600))
	host.Must(t, os.WriteFile(filepath.Join(g.WS, "package.json"), fmt.Appendf(nil, `{"name":"x","version":"1.0.0","scripts":{
		"curl":"curl -sS http://localhost:%[1]s/","python":"python3 here.py localhost %[1]s","node":"node here.js %[1]s"}}`, open.port), 0o644))
	host.Must(t, os.WriteFile(filepath.Join(g.WS, "here.py"), []byte("import socket, sys\nprint(socket.create_connection((sys.argv[1], int(sys.argv[2])), 10).recv(99))\n"), 0o644))
	host.Must(t, os.WriteFile(filepath.Join(g.WS, "here.js"), []byte("require('net').connect(+process.argv[2], 'localhost').on('data', d => console.log(String(d))).on('error', console.log)\n"), 0o644))
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.StdioModern, g.WS, host.CleanEnv(g.Home), "--state-dir", g.State, "--settings",
		settings, "--metrics", "127.0.0.1:"+metrics)
	host.Must(t, err)
	defer h.Stop()
	bash := func(command string) string {
		t.Helper()
		ctx, cancel := host.Patient()
		defer cancel()
		raw, err := json.Marshal(map[string]string{"command": command})
		host.Must(t, err)
		answer, err := h.Call(ctx, "Bash", string(raw))
		host.Must(t, err)
		return answer.Text()
	}
	const byProxy = "curl -sS --noproxy '' -x $HTTP_PROXY "
	for _, command := range []string{
		connecting + "127.0.0.1 PORT", connecting + "localhost PORT", connecting + "::1 PORT", connecting + ":: PORT",
		connecting + "0.0.0.0 PORT", connecting + "127.1 PORT",
		connecting + "2130706433 PORT", connecting + "0x7f000001 PORT", connecting + "::ffff:127.0.0.1 PORT",
		connecting + "::ffff:7f00:1 PORT", connecting + "app.localhost PORT",
		connecting + "LOCALHOST. PORT", connecting + "$(hostname) PORT", connecting + "198.18.0.3 PORT",
		"cat </dev/tcp/localhost/PORT", "curl -sS http://[::1]:PORT/",
		byProxy + "http://127.0.0.1:PORT/", byProxy + "http://[::1]:PORT/", byProxy + "http://0.0.0.0:PORT/", byProxy +
			"http://app.localhost:PORT/", byProxy + "http://127.0.0.2:PORT/",
		byProxy + "-H 'Host: localhost:" + open.port + "' http://localhost:PORT/", byProxy +
			"--proxytunnel http://localhost:PORT/",
	} {
		for _, port := range []string{closed.port, metrics} {
			if said := bash(strings.ReplaceAll(command, "PORT", port)); strings.Contains(said, "reached\n") ||
				strings.Contains(said, "# HELP") || closed.reached.Load() > 0 {
				t.Fatalf("%s reaches port %s: %s", command, port, said)
			}
		}
	}
	// A program reaches its hosts, and lends them to no other one.
	for _, command := range []string{"curl -sS http://localhost:PORT/",
		"npm view x --registry http://localhost:PORT/ --fetch-retries=0; true"} {
		was := open.reached.Load()
		if said := bash(strings.ReplaceAll(command, "PORT", open.port)); open.reached.Load() == was {
			t.Errorf("%s does not reach what settings give it: %s", command, said)
		}
	}
	was := open.reached.Load()
	const python = `$(python3 -c "import os; print(os.readlink('/proc/self/exe'))")`
	for _, command := range []string{
		connecting + "localhost PORT", "cat </dev/tcp/localhost/PORT", "cp " + python +
			" curl; ./curl here.py localhost PORT", "cp $(which curl) curl && ./curl -sS http://localhost:PORT/",
		"cp $(which curl) $TMPDIR/curl && $TMPDIR/curl -sS http://localhost:PORT/",
		"PYTHONHOME=$(python3 -c 'import sys; print(sys.base_prefix)') bash -c 'exec -a curl python3 here.py localhost PORT'", "npm run -s python", "npm run -s node",
		"ln -s " + python + " npm; ./npm here.py localhost PORT",
		`python3 -c "
import os, socket
s = socket.socket(); s.setblocking(False); os.set_inheritable(s.fileno(), True)
try: s.connect(('127.0.0.1', PORT))
except BlockingIOError: pass
os.execvp('curl', ['curl', '-sS', '-m', '2', 'http://10.0.0.1/'])"`,
		`printf '#!/bin/sh\nexec python3 here.py localhost PORT\n' >curl; chmod +x curl; PATH=.:$PATH curl`,
		`python3 -c "import ctypes; ctypes.CDLL(None).prctl(15, b'curl'); exec(open('here.py').read())" localhost PORT`,
	} {
		said := bash(strings.ReplaceAll(command, "PORT", open.port))
		if open.reached.Load() > was {
			t.Fatalf("%s reaches the host of another program: %s", command, said)
		}
		if !strings.Contains(said, "refused the host localhost:"+open.port) {
			t.Errorf("%s: the refusal is not told: %s", command, said)
		}
	}
	if said := bash("npm run -s curl"); open.reached.Load() == was { // curl has hosts of its own
		t.Errorf("what npm starts does not reach its own hosts: %s", said)
	}
}
