//go:build slow && linux

package scripts

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestNetworkSilentConnections: who opens connections and says nothing takes no place of who has something to say.
func TestNetworkSilentConnections(t *testing.T) {
	g := host.NewGround(t)
	g.Put("a.txt", "content\n")
	const descriptors = 128
	s := g.Serve(nil, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `ulimit -n 128; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, "--listen", "127.0.0.1:0")
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/mcp")
	for range descriptors {
		conn, err := net.Dial("tcp", address)
		host.Must(t, err)
		defer conn.Close()
	}
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt"}, nil); !strings.Contains(r.Result.Text(), "content") {
		t.Errorf("with %d silent connections: %+v", descriptors, r)
	}
	s.End()
}
