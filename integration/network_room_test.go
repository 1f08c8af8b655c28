//go:build linux

package integration

import (
	"net"
	"os/exec"
	"strings"
	"testing"
)

// TestNetworkSilentConnections: who opens connections and says nothing takes no place of who has something to say.
func TestNetworkSilentConnections(t *testing.T) {
	g := newGround(t)
	g.put("a.txt", "content\n")
	const descriptors = 128
	s := serve(g, nil, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `ulimit -n 128; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, "--listen", "127.0.0.1:0")
	address := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	for range descriptors {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		defer conn.Close()
	}
	if r := s.call("Read", args{"file_path": "a.txt"}, nil); !strings.Contains(r.Result.Text(), "content") {
		t.Errorf("with %d silent connections: %+v", descriptors, r)
	}
	s.end()
}
