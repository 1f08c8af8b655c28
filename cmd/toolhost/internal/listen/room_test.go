package listen

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// A new client gets the place of a connection that rests, the longest first, and none of one that has a request.
func TestRestingConnectionsGiveWay(t *testing.T) {
	l := open(t, Config{Address: "127.0.0.1:0", maxConnections: 2})
	states := make(chan http.ConnState, 100)
	held, release := make(chan struct{}), make(chan struct{})
	web := &http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/held" {
				held <- struct{}{}
				<-release
			}
		}),
		ConnState: func(conn net.Conn, state http.ConnState) { Watch(conn, state); states <- state },
	}
	go web.Serve(l)
	defer web.Close()
	until := func(want http.ConnState) {
		for state := range states {
			if state == want {
				return
			}
		}
	}
	ask := func(c *http.Client, path string) int {
		resp, err := c.Get("http://" + l.Addr().String() + path)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	client := func() *http.Client { return &http.Client{Transport: &http.Transport{}} }
	idle, silent, err := client(), net.Conn(nil), error(nil)
	defer idle.CloseIdleConnections()
	if got := ask(idle, "/"); got != 200 {
		t.Fatalf("the first: %d", got)
	}
	until(http.StateIdle)
	if silent, err = net.Dial("tcp", l.Addr().String()); err != nil { // it never says anything
		t.Fatal(err)
	}
	defer silent.Close()
	until(http.StateNew)
	busy := make(chan int, 2)
	for n := range 2 { // in the place of the idle one, then of the silent one
		c := client()
		defer c.CloseIdleConnections()
		go func() { busy <- ask(c, "/held") }()
		<-held
		if n == 0 {
			continue
		}
		if _, err := silent.Read(make([]byte, 1)); err == nil {
			t.Error("the silent one was told something")
		}
	}
	late, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if resp, err := http.ReadResponse(bufio.NewReader(late), nil); err != nil ||
		resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("with a request on each connection: %v, %v", resp, err)
	}
	close(release)
	for range 2 {
		if got := <-busy; got != 200 {
			t.Errorf("a request was cut off: %d", got)
		}
	}
}

// One address of a network that has its part gets no place of others.
func TestGreedyAddressTakesNoPlace(t *testing.T) {
	l := newLimiter(nil, 4, true, nil)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	peer := network(netip.MustParseAddr("192.0.2.1"))
	if !l.enter(peer) {
		t.Fatal("refused too early")
	}
	c := &trackedConn{Conn: ours, limiter: l, leave: func() {}}
	c.setIdle(true)
	if l.makeRoom(peer) {
		t.Error("a connection was closed for who has too many")
	}
	if !l.makeRoom(network(netip.MustParseAddr("192.0.2.2"))) {
		t.Error("no connection was closed for another")
	}
}
