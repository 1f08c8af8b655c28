package listen

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg Config) *Listener {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// privateDir is a directory that only its owner may enter, with a short name.
func privateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "l")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// writePair writes a certificate for these names, the first of which is its subject, and its key.
func writePair(t *testing.T, certFile, keyFile string, names ...string) {
	t.Helper()
	writePairUntil(t, certFile, keyFile, time.Now().Add(time.Hour), names...)
}

// writePairUntil is writePair with the end of the certificate.
func writePairUntil(t *testing.T, certFile, keyFile string, end time.Time, names ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := privateDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cfg  Config
		says string
	}{
		{"all interfaces", Config{Address: ":0"}, "in the clear"},
		{"any address", Config{Address: "0.0.0.0:0"}, "in the clear"},
		{"any address, IPv6", Config{Address: "[::]:0"}, "in the clear"},
		{"an address of a network", Config{Address: "192.0.2.1:0"}, "in the clear"},
		{"no port", Config{Address: "127.0.0.1"}, "missing port"},
		{"a certificate without its key", Config{Address: "127.0.0.1:0", CertFile: file}, "both --tls-cert and --tls-key"},
		{"no certificate", Config{Address: "127.0.0.1:0", CertFile: file, KeyFile: file}, "--tls-cert"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Open(tt.cfg)
			if err == nil {
				l.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error does not say %q: %v", tt.says, err)
			}
		})
	}
}

func TestURL(t *testing.T) {
	dir := privateDir(t)
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	writePair(t, cert, key, "a.example")
	for _, tt := range []struct {
		name         string
		cfg          Config
		scheme, host string
	}{
		{"loopback", Config{Address: "127.0.0.1:0"}, "http", "127.0.0.1"},
		{"loopback with a name", Config{Address: "127.0.0.1:0", Hosts: []string{"a.example"}}, "http", "127.0.0.1"},
		{"TLS", Config{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key}, "https", "127.0.0.1"},
		{"TLS for others", Config{Address: "0.0.0.0:0", CertFile: cert, KeyFile: key, Hosts: []string{"a.example"}}, "https", "a.example"},
		{"in the clear, without a name", Config{Address: ":0", PlainHTTP: true}, "http", "localhost"},
		{"in the clear", Config{Address: "0.0.0.0:0", PlainHTTP: true, Hosts: []string{"a.example"}}, "http", "a.example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := open(t, tt.cfg)
			_, port, _ := net.SplitHostPort(l.Addr().String())
			if want := tt.scheme + "://" + tt.host + ":" + port; l.URL != want {
				t.Errorf("got %s, want %s", l.URL, want)
			}
		})
	}
}

// dial makes a TLS connection and returns the name in the server's certificate.
func dial(t *testing.T, address string, most uint16) (string, error) {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: most})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestCertificateIsReadAgain(t *testing.T) {
	dir := privateDir(t)
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	writePair(t, cert, key, "first", "a.example")
	var log bytes.Buffer
	k, err := newCertReloader(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		t.Helper()
		k.checked = time.Time{} // as if time had passed
		pair, err := k.certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.Subject.CommonName
	}
	if got := name(); got != "first" {
		t.Errorf("at first: %q", got)
	}
	writePair(t, cert, filepath.Join(dir, "other"), "torn", "a.example") // the certificate without its key
	if got := name(); got != "first" || !strings.Contains(log.String(), "the old one is kept") {
		t.Errorf("with half a pair: %q; log %s", got, &log)
	}
	logged := log.Len()
	if name(); log.Len() != logged {
		t.Error("the same fault is logged twice")
	}
	if err := os.Rename(filepath.Join(dir, "other"), key); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "torn" {
		t.Errorf("with the whole pair: %q", got)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "torn" {
		t.Errorf("without a file: %q", got)
	}
	writePair(t, cert, key, "another", "b.example")
	if got := name(); got != "torn" || !strings.Contains(log.String(), "b.example") {
		t.Errorf("with other names: %q; log %s", got, &log)
	}
	writePairUntil(t, cert, key, time.Now().Add(-time.Hour), "expired", "a.example")
	if got := name(); got != "torn" || !strings.Contains(log.String(), "it is valid from") {
		t.Errorf("after its end: %q; log %s", got, &log)
	}
	for _, names := range [][]string{{"wide", "*.example"}, {"narrow", "c.example"}} {
		writePair(t, cert, key, names...)
		if got := name(); got != names[0] {
			t.Errorf("with %q: %q; log %s", names, got, &log)
		}
	}
}

func TestTLS(t *testing.T) {
	dir := privateDir(t)
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	writePair(t, cert, key, "served")
	l := open(t, Config{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key})
	web := &http.Server{Handler: http.NotFoundHandler(),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	go web.Serve(l)
	defer web.Close()
	if name, err := dial(t, l.Addr().String(), 0); err != nil || name != "served" {
		t.Errorf("got %q, %v", name, err)
	}
	if _, err := dial(t, l.Addr().String(), tls.VersionTLS12); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
	if _, err := dial(t, l.Addr().String(), tls.VersionTLS11); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	l := open(t, Config{Address: "127.0.0.1:0", maxConnections: 2})
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	connect := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	connect()
	connect()
	first, second := <-accepted, <-accepted
	defer second.Close()
	third := connect()
	if _, err := io.WriteString(third, "POST / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(third), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || err != nil ||
		int64(len(body)) != resp.ContentLength {
		t.Errorf("one too many is told %s %q %v", resp.Status, body, err)
	}
	third.Close()
	first.Close()
	first.Close() // twice frees one place only
	connect()
	fourth := <-accepted
	defer fourth.Close()
	if l.Close(); len(accepted) != 0 {
		t.Error("more were accepted than there is room for")
	}
}

func TestOneAddressDoesNotTakeAll(t *testing.T) {
	l := newLimiter(nil, 8, true, slog.New(slog.DiscardHandler))
	at := func(addr string) netip.Prefix { return network(netip.MustParseAddr(addr)) }
	greedy, other, here := at("192.0.2.1"), at("192.0.2.2"), at("127.0.0.1")
	for range 2 {
		if !l.enter(greedy) {
			t.Fatal("refused too early")
		}
	}
	if l.enter(greedy) {
		t.Error("one address has more than its part")
	}
	if !l.enter(other) {
		t.Error("another address is kept out")
	}
	for range 5 {
		if !l.enter(here) {
			t.Fatal("this machine is kept out")
		}
	}
	if l.enter(other) {
		t.Error("there are more connections than room")
	}
	l.leave(greedy)
	l.leave(greedy)
	if !l.enter(greedy) || len(l.perPeer) != 3 {
		t.Errorf("places are not given back: %v", l.perPeer)
	}
}

func TestPeers(t *testing.T) {
	for _, tt := range []struct {
		one, other string
		same       bool
	}{
		{"192.0.2.1", "192.0.2.1", true}, {"192.0.2.1", "192.0.2.2", false}, {"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::ffff:1", true}, {"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true}, {"::1", "::2", false},
	} {
		if got := network(netip.MustParseAddr(tt.one)) == network(netip.MustParseAddr(tt.other)); got != tt.same {
			t.Errorf("%s and %s count as one: %v", tt.one, tt.other, got)
		}
	}
	if !network(netip.MustParseAddr("::1")).Addr().IsLoopback() {
		t.Error("loopback is no longer known")
	}
}

// An answer reaches a client that goes on to send what no one reads.
func TestAnswerToWhoStillSends(t *testing.T) {
	l := open(t, Config{Address: "127.0.0.1:0"})
	answered := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			answered <- err
			return
		}
		defer conn.Close()
		if _, err = io.WriteString(conn, "no"); err == nil {
			err = conn.(interface{ CloseWrite() error }).CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn) // until the client has read it
		answered <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "more and more"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); string(text) != "no" || err != nil {
		t.Errorf("it reads %q, %v", text, err)
	}
	conn.Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestNotifier(t *testing.T) {
	socket := filepath.Join(privateDir(t), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Skipf("no datagram sockets here: %v", err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", "")
	n := NewNotifier(slog.New(slog.DiscardHandler))
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("%s=%s is left for commands", name, v)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := n.NotifyStopping(ctx)
	n.NotifyReady(ctx, func() bool { return true })
	for _, want := range []string{"READY=1", "WATCHDOG=1"} {
		if got := hear(t, conn); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	go func() { cancel(); told() }()
	for got := hear(t, conn); got != "STOPPING=1"; got = hear(t, conn) {
		if got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	none, cancelNone := context.WithCancel(t.Context())
	toldNobody := Notifier{}.NotifyStopping(none)
	Notifier{}.NotifyReady(none, nil)
	cancelNone()
	toldNobody()
}

// hear is the next that systemd is told.
func hear(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 100)
	k, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:k])
}

// A server whose end has been said may end at once, and one that ends otherwise says nothing of it.
func TestStoppingIsSaidBeforeTheEnd(t *testing.T) {
	socket := filepath.Join(privateDir(t), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Skipf("no datagram sockets here: %v", err)
	}
	defer conn.Close()
	n := Notifier{socket: socket, timeout: notifyTimeout, log: slog.New(slog.DiscardHandler)}
	n.NotifyStopping(t.Context())()
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		told := n.NotifyStopping(ctx)
		cancel()
		told()
		n.send("the process ends")
		for _, want := range []string{"STOPPING=1", "the process ends"} {
			if got := hear(t, conn); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

// Who does not listen holds no one.
func TestNotifierOfWhoDoesNotListen(t *testing.T) {
	socket := filepath.Join(privateDir(t), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Skipf("no datagram sockets here: %v", err)
	}
	defer conn.Close()
	var log bytes.Buffer
	n := Notifier{socket: socket, timeout: time.Millisecond, log: slog.New(slog.NewTextHandler(&log, nil))}
	for log.Len() == 0 { // it hangs if a full queue is waited for
		n.send("WATCHDOG=1")
	}
	if !strings.Contains(log.String(), "systemd could not be told") || !strings.Contains(log.String(), "timeout") {
		t.Errorf("the log says %s", &log)
	}
}

// The watchdog of a sick server is not fed, so that systemd starts it anew.
func TestWatchdogOfASickServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		ctx, cancel := context.WithCancel(t.Context())
		n := Notifier{socket: "/nonexistent", watchdog: time.Second, log: slog.New(slog.DiscardHandler)}
		n.NotifyReady(ctx, func() bool { asked++; return false })
		time.Sleep(2100 * time.Millisecond)
		cancel()
		synctest.Wait()
		if asked != 4 {
			t.Errorf("asked %d times in two periods", asked)
		}
	})
}
