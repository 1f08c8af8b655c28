//go:build slow && linux

package fault

import (
	"bufio"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// far is the address of a host beyond the partition: one of this machine that is not of its loopback interface, which
// the sandbox takes for its own. It is "" if there is none.
var far = func() string {
	all, _ := net.InterfaceAddrs() // without them there is no such address
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}()

// A partition cuts a request through the sandbox's proxy off from the host it wants.
type partition struct {
	name   string
	tunnel bool   // the request is a CONNECT
	sent   string // what came through before; "" for a connection that is never made
}

var partitions = []partition{
	{name: "before the connection"},
	{name: "before the answer", sent: " "},
	{name: "within the answer", sent: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf"},
	{name: "within a tunnel", tunnel: true, sent: "half"},
}

// TestFaultPartition cuts the network off beyond the proxy, at every stage of a request. A command that waits for it is ended like any
// other, nothing of its connection stays, other conversations are served meanwhile, and the next request comes through.
func TestFaultPartition(t *testing.T) {
	t.Parallel() // it waits for half a minute
	if !host.Contained(t) {
		t.Skip("no sandbox here, and so no proxy")
	}
	if far == "" {
		t.Skip("this machine has no address but the loopback")
	}
	for _, p := range partitions {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			g, tag := newGround(t), host.NewTag()
			rules := filepath.Join(g.Home, "rules.json")
			host.Must(t, os.WriteFile(rules, []byte(`{"sandbox":{"network":{"allowedDomains":["`+far+`"]}}}`), 0o600))
			s := g.start(host.StdioModern, "--settings", rules)
			at, came := p.cut(t)
			before := held(t, at)
			call := s.ask(p, at, tag)
			if p.sent != "" {
				came.wait(t)
			}
			s.MustCall("Bash", host.Args{"command": "echo served"}) // in another conversation
			host.Must(t, s.Cancel(s.Ctx, call))
			host.Survivors(t, tag)
			host.Eventually(t, func() string {
				if n := held(t, at); n > before {
					return fmt.Sprintf("%d connections of a command that was ended are held", n-before)
				}
				return ""
			})
			healed := answering(t)
			if text := s.MustCall("Bash", host.Args{"command": partition{}.request(healed) + "cat <&3"}); !strings.Contains(text, "healed") {
				t.Errorf("the next request: %s", text)
			}
			host.Must(t, os.Remove(g.Path("begun")))
			asked := time.Now()
			s.ask(p, at, tag)
			begun := time.Now()
			s.End()
			if took := time.Since(begun); took > quick(begun.Sub(asked)) {
				t.Errorf("the host took %v to end", took)
			}
			host.Survivors(t, tag)
			if _, err := os.Stat(g.Path("ended")); err == nil {
				t.Error("the request came through the partition")
			}
		})
	}
}

// ask sends a request to an address, by a command that has begun when this returns and waits for the answer.
func (s *session) ask(p partition, address, tag string) *client.Pending {
	s.T.Helper()
	command := "export TAG=" + tag + "; " + p.request(address) + "touch begun; cat <&3; touch ended"
	call, err := s.Start(s.Ctx, "Bash", host.Args{"command": command}.String(), host.Conversation("cut off"))
	host.Must(s.T, err)
	host.Eventually(s.T, func() string {
		if _, err := os.Stat(filepath.Join(s.Cmd.Dir, "begun")); err != nil {
			return "the command has not begun"
		}
		return ""
	})
	return call
}

// request is a command that sends a request to the proxy and leaves the connection as descriptor 3. It needs nothing but bash.
func (p partition) request(address string) string {
	line := fmt.Sprintf(`GET http://%s/ HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\n\r\n`, address)
	if p.tunnel {
		line = fmt.Sprintf(`CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n`, address)
	}
	return fmt.Sprintf(`at=${HTTP_PROXY#http://}; exec 3<>/dev/tcp/${at%%:*}/${at##*:}; printf '%s' >&3; `, line)
}

// cut listens where nothing comes through, or no more than was sent. It closes no connection: a partition does not tell of an end.
func (p partition) cut(t *testing.T) (address string, came arrivals) {
	t.Helper()
	if p.sent == "" {
		return unreachable(t), nil
	}
	listener, err := net.Listen("tcp", far+":0")
	host.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	came = make(arrivals, 8)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			if !p.tunnel {
				_, _ = bufio.NewReader(conn).ReadString('\n') // the request has come
			}
			_, _ = io.WriteString(conn, strings.TrimSpace(p.sent))
			came <- struct{}{}
		}
	}()
	return listener.Addr().String(), came
}

// arrivals tells of connections.
type arrivals chan struct{}

func (a arrivals) wait(t *testing.T) {
	t.Helper()
	select {
	case <-a:
	case <-time.After(host.Patience):
		t.Fatal("no connection came")
	}
}

// held counts the connections to an address that a process of this machine holds.
func held(t *testing.T, address string) (n int) {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	host.Must(t, err)
	ip := at.Addr().As4()
	remote := fmt.Sprintf("%08X:%04X", endian.NativeEndian.Uint32(ip[:]), at.Port()) // as the kernel prints it
	raw, err := os.ReadFile("/proc/net/tcp")
	host.Must(t, err)
	for line := range strings.Lines(string(raw)) {
		// Number, local and remote address, state, two queues, timer, retransmissions, user, timeout, inode: 0 if no one holds it.
		if f := strings.Fields(line); len(f) > 9 && f[2] == remote && f[9] != "0" {
			n++
		}
	}
	return n
}

// unreachable is an address whose packets get lost: the queue of connections that no one accepts is full.
func unreachable(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	host.Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	at := &unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(far).To4())}
	host.Must(t, unix.Bind(fd, at))
	host.Must(t, unix.Listen(fd, 0))
	bound, err := unix.Getsockname(fd)
	host.Must(t, err)
	at.Port = bound.(*unix.SockaddrInet4).Port
	for range 8 {
		filler, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		host.Must(t, err)
		t.Cleanup(func() { unix.Close(filler) })
		if err := unix.Connect(filler, at); err != nil && !errors.Is(err, unix.EINPROGRESS) {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%s:%d", far, at.Port)
}

// answering is an address from which answers come.
func answering(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", far+":0")
	host.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhealed")
			conn.Close()
		}
	}()
	return listener.Addr().String()
}
