package attack

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestAttackSocket has commands connect to a program outside that listens on a Unix socket
// in the workspace. It is bound after the first command, by a name that no list tells.
func TestAttackSocket(t *testing.T) {
	testenv.NeedsNamespaces(t)
	t.Parallel()
	host.NeedsContained(t)
	users := []int{0}
	if os.Geteuid() == 0 {
		users = append(users, ordinaryUser)
	}
	for _, user := range samples.Of(users, 1) {
		t.Run(fmt.Sprint(user), func(t *testing.T) {
			w := newWorld(t)
			if user != 0 {
				w.giveTo(t, user)
			}
			attackSocket(t, w)
		})
	}
}

func attackSocket(t *testing.T, w *world) {
	h := w.host(t, host.StdioModern, "--root", w.ws)
	bash := func(command string) said {
		raw, err := json.Marshal(map[string]any{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return h.call(t, "Bash", string(raw), "socket")
	}
	bash("true")
	dir, err := os.Open(w.ws)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/agent.sock", dir.Fd())) // shorter than the name can be
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(filepath.Join(w.ws, "agent.sock"), 0o777); err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			fmt.Fprintln(c, canaryKey)
			c.Close()
		}
	}()
	const connect = `python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(99))' `
	for _, command := range []string{
		connect + "agent.sock",
		"ln agent.sock linked && " + connect + "linked; rm linked",
		"ln -s agent.sock link && " + connect + "link; rm link",
		"mv agent.sock moved && " + connect + "moved; mv moved agent.sock",
		"cd src && " + connect + "/proc/self/cwd/../agent.sock",
		"exec 7< . && " + connect + "/dev/fd/7/agent.sock",
		"curl -sm 9 --unix-socket agent.sock http://x/",
	} {
		if said := bash(command); reached.Load() != 0 || strings.Contains(said.raw, canaryKey) {
			t.Errorf("%s: %d connections, %s", command, reached.Swap(0), said.text)
		}
	}
	own := bash(`python3 -c 'import socket; l = socket.socket(socket.AF_UNIX); l.bind("own.sock"); l.listen(); s = socket.socket(socket.AF_UNIX); s.connect("own.sock"); l.accept()[0].send(b"reached"); print(s.recv(9))'; rm own.sock`)
	if !strings.Contains(own.text, "reached") {
		t.Errorf("a socket of the command's own is not reached: %s", own.text)
	}
	if err := os.Remove(filepath.Join(w.ws, "agent.sock")); err != nil {
		t.Error(err)
	}
	w.end(t, h)
}
