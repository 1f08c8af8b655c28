package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestInjectUpgrade: after an upgrade, as of WebSocket, bytes flow both ways, and values are taken out.
func TestInjectUpgrade(t *testing.T) {
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+value || r.Header.Get("Upgrade") != "websocket" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		io.WriteString(conn, "echo "+value+" "+line)
	})
	raw, err := net.Dial("tcp", f.address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	fmt.Fprintf(raw, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(io.LimitReader(raw,
		int64(len("HTTP/1.1 200 Connection established\r\n\r\n")))), nil); err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{RootCAs: f.roots, ServerName: "example.com", NextProtos: []string{"http/1.1"}})
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer %s\r\n\r\n", sentinel)
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	fmt.Fprintf(conn, "hello\n")
	hidden := sentinel + strings.Repeat("*", len(value)-len(sentinel))
	if line, err := in.ReadString('\n'); line != "echo "+hidden+" hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// TestServerEnds: a program that has said nothing yet is told that the host has closed.
func TestServerEnds(t *testing.T) {
	p := &Proxy{}
	p.ctx, p.cancel = context.WithCancel(t.Context())
	defer p.cancel()
	p.secrets.all = []Secret{{Hosts: []string{"example.com"}}}
	program, inner := tcpPair(t)
	outer, server := tcpPair(t)
	go p.terminate(p.ctx, outer, "example.com", "443").(*Terminated).Relay(inner)
	io.WriteString(server, "busy")
	server.Close()
	if said, err := io.ReadAll(program); string(said) != "busy" || err != nil {
		t.Errorf("the program got %q, %v", said, err)
	}
}

// TestServerFirst: a protocol in which the server speaks first works at a host with secrets, and so does one that is not TLS.
func TestServerFirst(t *testing.T) {
	for _, c := range []struct{ greeting, command string }{{"220 ready\n", "EHLO x\n"}, {"", "binary\x00\n"},
		{"", "G\n"}} {
		p := &Proxy{}
		p.ctx, p.cancel = context.WithCancel(t.Context())
		p.secrets.all = []Secret{{Hosts: []string{"example.com"}}}
		program, inner := tcpPair(t)
		outer, server := tcpPair(t)
		go p.terminate(p.ctx, outer, "example.com", "443").(*Terminated).Relay(inner)
		io.WriteString(server, c.greeting)
		got := make([]byte, len(c.greeting))
		if _, err := io.ReadFull(program, got); err != nil || string(got) != c.greeting {
			t.Errorf("%+v: greeting %q, %v", c, got, err)
		}
		io.WriteString(program, c.command)
		program.CloseWrite()
		if sent, err := io.ReadAll(server); string(sent) != c.command || err != nil {
			t.Errorf("%+v: the server got %q, %v", c, sent, err)
		}
		io.WriteString(server, "bye")
		server.Close()
		if said, err := io.ReadAll(program); string(said) != "bye" || err != nil {
			t.Errorf("%+v: the program got %q, %v", c, said, err)
		}
		p.cancel()
	}
}

func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// TestIdleGivesWay: connections that programs keep for later do not hold the slots that others wait for.
func TestIdleGivesWay(t *testing.T) {
	for _, url := range []string{"https://example.com/", "http://example.com/"} {
		f := newSecretFixture(t, func(http.ResponseWriter, *http.Request) {})
		if strings.HasPrefix(url, "http:") { // which leads to a server that knows no TLS
			plain := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(plain.Close)
			f.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, plain.Listener.Addr().String())
			}
		}
		f.conns.mu.Lock()
		f.conns.free = 1
		f.conns.mu.Unlock()
		one, other := f.client(false), f.client(false)
		for range 3 {
			for _, client := range []*http.Client{one, other} {
				answer, err := client.Get(url)
				if err != nil {
					t.Fatal(url, err)
				}
				answer.Body.Close()
			}
		}
	}
}
