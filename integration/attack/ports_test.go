//go:build linux

package attack

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// freePort is a port of this machine that no one listens on, below those that the system picks, and not that of a service.
func freePort(t *testing.T, from int) int {
	t.Helper()
	for port := from; port < from+1000; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("every port is taken")
	return 0
}

// listening is a command that listens on ports, in this order, on all kinds of addresses in turn.
const listening = `
import socket, sys, time
kinds = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::")]
held = []
for i, port in enumerate(sys.argv[1:]):
    family, address = kinds[i % 4]
    held.append(socket.create_server((address, int(port)), family=family))
while True: time.sleep(60)
`

// TestAttackPorts listens in the sandbox on ports whose clients would send what they know to a command.
func TestAttackPorts(t *testing.T) {
	testenv.NeedsNamespaces(t)
	host.NeedsContained(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	g := host.NewGround(t)
	// A host that listened on a port of its choice, with metrics and a console, and has ended.
	ended, metrics, console := freePort(t, 21_000), freePort(t, 22_000), freePort(t, 23_000)
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	g.Serve(nil, nil, "--listen", at(ended), "--metrics", at(metrics), "--console-listen", at(console)).End()
	// A program of the machine that listens on another address only, and one that does so later.
	other, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	defer other.Close()
	taken := other.Addr().(*net.TCPAddr).Port
	held := []int{8377, 9464, 2375, 5432, 6443, ended, metrics, console, taken}
	open := freePort(t, 24_000)

	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.StdioModern, g.WS, host.CleanEnv(g.Home), "--state-dir", g.State)
	host.Must(t, err)
	defer h.Stop()
	var ports []string
	for _, port := range append(held, open) {
		ports = append(ports, fmt.Sprint(port))
	}
	args, err := json.Marshal(map[string]any{"command": "python3 -c '" + listening + "' " + strings.Join(ports, " "),
		"run_in_background": true})
	host.Must(t, err)
	task, err := h.Call(ctx, "Bash", string(args))
	host.Must(t, err)
	reached := func(port int) bool {
		c, err := net.Dial("tcp4", at(port))
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	host.Eventually(t, func() string {
		if !reached(open) {
			return "a server of the command cannot be reached"
		}
		return ""
	})
	for _, port := range held {
		if reached(port) {
			t.Errorf("port %d is published", port)
		}
	}
	said := ""
	host.Eventually(t, func() string { // ports are published in their order
		out, err := h.Call(ctx, "TaskOutput", `{"task_id":"`+taskID.FindString(task.Text())+`","block":false}`)
		host.Must(t, err)
		said += out.Text()
		for _, port := range held {
			if want := fmt.Sprintf("Port %d is not published", port); !strings.Contains(said, want) {
				return want + " is not said: " + said
			}
		}
		return ""
	})
	// A program of the machine comes to listen on a published port, on another address.
	later, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", open))
	host.Must(t, err)
	defer later.Close()
	host.Eventually(t, func() string {
		if reached(open) {
			return "a port that a program of the machine listens on stays published"
		}
		return ""
	})
}
