package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// From inside, an allowed host is reached and a refused one is named.
func TestNetwork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		io.WriteString(w, "the web: "+r.Host)
	}))
	defer web.Close()
	f := newFixture(t)
	p := f.policy()
	p.Network.AllowedDomains = []string{"*.allowed.test"}
	s, err := Start(context.Background(), p, Options{
		Backends: []Backend{Namespaces},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, web.Listener.Addr().String())
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("1.2.3.4")}, nil
		},
	})
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	env := append(f.env, s.Env()...)
	r := runIn(t, s, f.ws, env, "/bin/bash", "-c", `
		curl -sS -m 60 http://www.allowed.test/; echo
		curl -sS -m 60 http://evil.test/
		curl -sS -m 60 https://evil2.test/
		curl -sS -m 60 --noproxy '*' http://www.allowed.test/
		curl -sS -m 60 --noproxy '*' http://1.1.1.1/`)
	wants, refusals := []string{"the web: www.allowed.test", "evil.test:80 is refused", "403", "Failed to connect"}, 3
	if s.outside == nil { // no TUN device
		wants, refusals = append(wants, "resolve host"), 2
	}
	for _, want := range wants {
		if !strings.Contains(r.output, want) {
			t.Errorf("%q is missing in\n%s", want, r.output)
		}
	}
	refused := s.Refused()
	if len(refused) != refusals || refused[0].Host != "evil.test:80" || refused[1].Host != "evil2.test:443" {
		t.Errorf("refused %+v", refused)
	}
}

// A server in the sandbox can be reached from the host, and only by Dial.
func TestDial(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here")
	}
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("no namespaces here")
	}
	if ports, err := s.Listening(); len(ports) != 0 || err != nil {
		t.Fatalf("Listening() = %v, %v before anything listens", ports, err)
	}
	p, err := s.Spawn(Spec{Argv: []string{"python3", "-c", `
import socket
four, six = socket.create_server(("127.0.0.1", 4567)), socket.create_server(("::1", 4568), family=socket.AF_INET6)
open("up", "w")
for s in four, six:
    c, _ = s.accept(); c.send(b"inside"); c.close()
`}, Dir: f.ws, Env: f.env})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	waitFor(t, "the server", func() bool { _, err := os.Stat(f.ws + "/up"); return err == nil })
	if ports, err := s.Listening(); !slices.Equal(ports, []int{4567, 4568}) || err != nil {
		t.Errorf("Listening() = %v, %v", ports, err)
	}
	for _, port := range []int{4567, 4568} {
		c, err := s.Dial(context.Background(), port)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(c)
		c.Close()
		if string(b) != "inside" {
			t.Errorf("got %q", b)
		}
	}
	for _, port := range []int{4569, 0, -1, 70000} {
		if _, err := s.Dial(context.Background(), port); err == nil {
			t.Errorf("Dial(%d) succeeded", port)
		}
	}
}

// A record is a buffer that is read while it is written.
type record struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// freePorts counts the ports that freeAddress has tried.
var freePorts atomic.Int32

// freeAddress is a port of this host that no one listens on, nor is given by chance: it is below those that the system hands out. No
// other test of this process gets it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 12_000 {
		port := 20_000 + (os.Getpid()+int(freePorts.Add(1)))%12_000
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		if reserved(port, "") == "" {
			return l.Addr().String()
		}
	}
	t.Fatal("every port is taken")
	return ""
}

// A port that a command listens on can be reached on the host while it is published, and no longer.
func TestPublish(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here")
	}
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("no namespaces here")
	}
	taken, err := net.Listen("tcp4", "127.0.0.1:0") // a port that the host uses
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := freeAddress(t)
	_, port, _ := net.SplitHostPort(addr)
	_, host, _ := net.SplitHostPort(taken.Addr().String())
	p, err := s.Spawn(Spec{Argv: []string{"python3", "-c", `
import socket, sys
other = socket.create_server(("127.0.0.1", int(sys.argv[2])))
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    c, _ = s.accept()
    asked = b""
    while part := c.recv(1 << 16): asked += part
    c.sendall(b"inside " + str(len(asked)).encode()); c.close()
`, port, host}, Dir: f.ws, Env: f.env})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := &record{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Publish(ctx, slog.New(slog.NewTextHandler(log, nil)))
	}()
	var c net.Conn
	waitFor(t, "the published port", func() bool { c, err = net.Dial("tcp4", addr); return err == nil })
	go func() {
		c.Write(make([]byte, 1<<20))
		c.(*net.TCPConn).CloseWrite()
	}()
	if b, err := io.ReadAll(c); err != nil || string(b) != "inside 1048576" {
		t.Errorf("got %q, %v", b, err)
	}
	c.Close()
	// The kernel lists ports part by part: one that came meanwhile is missed by that look.
	waitFor(t, "the log about the port that the host uses",
		func() bool { return strings.Contains(log.String(), "port="+host) })
	idle, err := net.Dial("tcp4", addr) // must not hold the end
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	cancel()
	<-done
	if c, err := net.Dial("tcp4", addr); err == nil {
		c.Close()
		t.Error("the port is open after the end of Publish")
	}
	if said := log.String(); strings.Count(said, "port="+host) != 1 {
		t.Errorf("the log about the port that the host uses: %q", said)
	}
}

// TestPublishLogins publishes few ports, and only those that a program of the sandbox listens on.
func TestPublishLogins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := start1(t, f.policy())
	if s.Report().Backend != Namespaces {
		t.Skip("no namespaces here")
	}
	var addresses, ports []string
	var numbers []int
	for range 4 {
		addr := freeAddress(t)
		_, port, _ := net.SplitHostPort(addr)
		n, _ := strconv.Atoi(port)
		addresses, ports, numbers = append(addresses, addr), append(ports, port), append(numbers, n)
	}
	p, err := s.Spawn(Spec{Argv: append([]string{"python3", "-c", `
import socket, sys, time
all = [socket.create_server(("127.0.0.1", int(port))) for port in sys.argv[1:]]
time.sleep(1000)
`}, ports[:3]...), Dir: f.ws, Env: f.env})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	waitFor(t, "the listeners", func() bool {
		listening, err := s.Listening()
		return err == nil && slices.Contains(listening, numbers[2])
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	logins := s.PublishLogins(ctx, slog.New(slog.DiscardHandler))
	reached := func(i int) bool {
		c, err := net.Dial("tcp4", addresses[i])
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if err := logins.Publish(numbers[3], time.Minute); err != nil {
		t.Errorf("a port before its listener: %v", err)
	}
	for i := range 2 {
		if err := logins.Publish(numbers[i], time.Minute); err != nil {
			t.Errorf("login %d: %v", i, err)
		}
		waitFor(t, "the login port", func() bool { return reached(i) })
	}
	if err := logins.Publish(numbers[2], time.Minute); err == nil || !strings.Contains(err.Error(), "2 login ports") {
		t.Errorf("a third login: %v", err)
	}
	if err := logins.Publish(numbers[0], time.Minute); err != nil {
		t.Errorf("the first login again: %v", err)
	}
	if reached(2) || reached(3) {
		t.Error("a port is published that is no login, or that no program listens on")
	}
	p.Kill()
	waitFor(t, "the end of the published ports", func() bool { return !reached(0) && !reached(1) })
}
