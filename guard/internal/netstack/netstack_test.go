package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/toolhost/toolhost/integration/samples"
)

// A program is the kernel of a sandbox, in the place of a real one.
type program struct {
	t     testing.TB
	stack *stack.Stack
	net   *Network
}

// newProgram starts a network, and a second stack as its sandbox.
func newProgram(t testing.TB, config Config) *program {
	t.Helper()
	before := goleak.IgnoreCurrent()
	inside, outside := pipe.New("", "", MTU)
	n, err := Start(outside, config)
	if err != nil {
		t.Fatal(err)
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	if err := s.CreateNIC(1, inside); err != nil {
		t.Fatal(err)
	}
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddrFrom4(Inside.As4()).WithPrefix()}
	if err := s.AddProtocolAddress(1, own, stack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	t.Cleanup(func() {
		// The library's pipe fails if one end sends while the other is taken off: each side has ended before.
		s.Close()
		s.Wait()
		n.Close()
		s.RemoveNIC(1)
		goleak.VerifyNone(t, before)
	})
	return &program{t, s, n}
}

// dial connects to an address.
func (p *program) dial(ctx context.Context, to string) (*gonet.TCPConn, error) {
	a := netip.MustParseAddrPort(to)
	return gonet.DialContextTCP(ctx, p.stack, tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFrom4(a.Addr().As4()), Port: a.Port()}, ipv4.ProtocolNumber)
}

// ask sends a query by UDP and returns the answer.
func (p *program) ask(name string, kind dnsmessage.Type) dnsmessage.Message {
	p.t.Helper()
	conn, err := gonet.DialUDP(p.stack, nil, &tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFrom4(Resolver.As4()), Port: dnsPort}, ipv4.ProtocolNumber)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(makeQuery(p.t, name, kind, 0)); err != nil {
		p.t.Fatal(err)
	}
	buf := make([]byte, streamSize)
	n, err := conn.Read(buf)
	if err != nil {
		p.t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(buf[:n]); err != nil {
		p.t.Fatal(err)
	}
	return m
}

// makeQuery returns a query. size is that of its OPT record, 0 for none.
func makeQuery(t testing.TB, name string, kind dnsmessage.Type, size int) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	if size > 0 {
		var head dnsmessage.ResourceHeader
		if err := head.SetEDNS0(size, 0, false); err != nil {
			t.Fatal(err)
		}
		m.Additionals = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.OPTResource{}}}
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// text is an answer in one line: its code and the records.
func text(m dnsmessage.Message) string {
	words := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	for _, a := range m.Answers {
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			words = append(words, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			words = append(words, netip.AddrFrom16(b.AAAA).String())
		case *dnsmessage.PTRResource:
			words = append(words, b.PTR.String())
		case *dnsmessage.TXTResource:
			words = append(words, fmt.Sprint(b.TXT))
		default:
			words = append(words, a.Header.Type.String())
		}
	}
	return strings.Join(words, " ")
}

// outside is a network with a few names, whose hosts send back what they get.
type outside struct {
	echo    string // address of a server
	mu      sync.Mutex
	asked   []string // hosts that programs connected to
	queries []string // names that were looked up
	refuse  func(ctx context.Context, host string) error
	flood   chan struct{} // holds lookups of slow.allowed.test
}

func (o *outside) config() Config {
	return Config{
		Resolves: func(name string) bool { return strings.HasSuffix(name, ".allowed.test") },
		Lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
			o.mu.Lock()
			o.queries = append(o.queries, name)
			o.mu.Unlock()
			switch name {
			case "none.allowed.test":
				return nil, &net.DNSError{IsNotFound: true}
			case "broken.allowed.test":
				return nil, errors.New("no answer")
			case "slow.allowed.test":
				select {
				case <-o.flood:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			case "lab.allowed.test":
				return []netip.Addr{netip.MustParseAddr("198.18.7.7")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		},
		Records: func(_ context.Context, name string, kind dnsmessage.Type) ([]dnsmessage.ResourceBody, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.queries = append(o.queries, name+" "+kind.String())
			return []dnsmessage.ResourceBody{textRecord(strings.Repeat("x", 300)),
				textRecord(strings.Repeat("y", 300))}, nil
		},
		Connect: func(ctx context.Context, from, to netip.AddrPort, host string) (net.Conn, error) {
			if from.Addr() != Inside || from.Port() == 0 {
				return nil, fmt.Errorf("connection from %s", from)
			}
			o.mu.Lock()
			o.asked = append(o.asked, fmt.Sprintf("%s:%d", host, to.Port()))
			o.mu.Unlock()
			if o.refuse != nil {
				if err := o.refuse(ctx, host); err != nil {
					return nil, err
				}
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", o.echo)
		},
	}
}

// newOutside starts the hosts.
func newOutside(t testing.TB) *outside {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return &outside{echo: l.Addr().String()}
}

func TestNames(t *testing.T) {
	o := newOutside(t)
	p := newProgram(t, o.config())
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"unknown.test.", dnsmessage.TypeA, "Success 198.18.1.0"},
		{"UNKNOWN.test.", dnsmessage.TypeA, "Success 198.18.1.0"},
		{"unknown.test.", dnsmessage.TypeAAAA, "Success"},
		{"unknown.test.", dnsmessage.TypeTXT, "Success"},
		{"secret-data.unknown.test.", dnsmessage.TypeMX, "Success"},
		{"_x._tcp.unknown.test.", dnsmessage.TypeSRV, "Success"},
		{"single.", dnsmessage.TypeA, "Success 198.18.1.1"},
		{"www.allowed.test.", dnsmessage.TypeA, "Success 198.18.1.2"},
		{"www.allowed.test.", dnsmessage.TypeAAAA, "Success"},
		{"www.allowed.test.", 65, "Success"},
		{"www.allowed.test.", 64, "Success"},
		{"www.allowed.test.", dnsmessage.TypeNS, "Success"},
		{"www.allowed.test.", dnsmessage.TypeTXT, "Success"},
		{"none.allowed.test.", dnsmessage.TypeA, "NameError"},
		{"broken.allowed.test.", dnsmessage.TypeA, "ServerFailure"},
		{"lab.allowed.test.", dnsmessage.TypeA, "Success 198.18.1.3"},
		{"localhost.", dnsmessage.TypeA, "Success 127.0.0.1"},
		{"a.localhost.", dnsmessage.TypeAAAA, "Success ::1"},
		{"0.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, "Success unknown.test."},
		{"9.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"8.8.8.8.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"a\\.b c.test.", dnsmessage.TypeA, "NameError"},
		{".", dnsmessage.TypeA, "NameError"},
	} {
		m := p.ask(c.name, c.kind)
		if got := text(m); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.name, c.kind, got, c.want)
		}
		if long := c.kind == dnsmessage.TypeTXT && strings.Contains(c.name, "allowed"); m.Truncated != long {
			t.Errorf("%s %s: truncated %v", c.name, c.kind, m.Truncated)
		}
		for _, a := range m.Answers {
			if a.Header.TTL != lifetime {
				t.Errorf("%s %s: may be kept for %d s", c.name, c.kind, a.Header.TTL)
			}
		}
	}
	for _, q := range o.queries {
		if !strings.Contains(q, "allowed.test") {
			t.Errorf("%s left the machine", q)
		}
	}
}

// A long answer comes by TCP, where many queries follow each other.
func TestNamesByTCP(t *testing.T) {
	p := newProgram(t, newOutside(t).config())
	conn, err := p.dial(t.Context(), "198.18.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		q := makeQuery(t, "www.allowed.test.", dnsmessage.TypeTXT, 0)
		if _, err := conn.Write(append([]byte{0, byte(len(q))}, q...)); err != nil {
			t.Fatal(err)
		}
		var head [2]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, int(head[0])<<8|int(head[1]))
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatal(err)
		}
		var m dnsmessage.Message
		if err := m.Unpack(b); err != nil || len(m.Answers) != 2 || m.Truncated {
			t.Fatalf("%v, %+v", err, m.Header)
		}
	}
}

// Lookups that get no answer leave those of other names alone, and are bounded.
func TestLookupsAreBounded(t *testing.T) {
	o := newOutside(t)
	o.flood = make(chan struct{})
	p := newProgram(t, o.config())
	slow := makeQuery(t, "slow.allowed.test.", dnsmessage.TypeA, 0)
	var answers sync.WaitGroup
	for range maxLookups {
		answers.Add(1)
		p.net.answer(slow, 0, func([]byte) { answers.Done() })
	}
	if got := text(p.ask("slow.allowed.test.", dnsmessage.TypeA)); got != "ServerFailure" {
		t.Errorf("one lookup too many: %s", got)
	}
	if got := text(p.ask("unknown.test.", dnsmessage.TypeA)); got != "Success 198.18.1.0" {
		t.Errorf("a name for which nothing is looked up: %s", got)
	}
	close(o.flood)
	answers.Wait()
}

// Stand-ins end, and none changes its name.
func TestStandInsAreBounded(t *testing.T) {
	var s standIns
	for i := range maxStandIns {
		name := fmt.Sprint("n", i)
		a, ok := s.address(name)
		if got, known := s.name(a); !ok || !known || got != name {
			t.Fatalf("%s: %s, %v, %s", name, a, ok, got)
		}
	}
	if a, ok := s.address("more"); ok {
		t.Errorf("one too many got %s", a)
	}
	if a, ok := s.address("n0"); !ok || a.String() != "198.18.1.0" {
		t.Errorf("n0 has become %s", a)
	}
	for _, a := range []string{"198.18.0.255", "198.19.1.0", "0.0.0.0", "255.255.255.255", "::1"} {
		if name, ok := s.name(netip.MustParseAddr(a)); ok {
			t.Errorf("%s is %s", a, name)
		}
	}
}

func TestConnect(t *testing.T) {
	o := newOutside(t)
	o.refuse = func(_ context.Context, host string) error {
		if host == "unknown.test" || host == "169.254.169.254" || host == "198.18.200.200" {
			return errors.New("refused")
		}
		return nil
	}
	p := newProgram(t, o.config())
	p.ask("www.allowed.test.", dnsmessage.TypeA)
	p.ask("unknown.test.", dnsmessage.TypeA)
	for _, c := range []struct {
		to string
		ok bool
	}{
		{"198.18.1.0:80", true}, {"198.18.1.1:80", false}, {"1.1.1.1:443", true}, {"169.254.169.254:80", false}, {"198.18.200.200:80", false},
	} {
		conn, err := p.dial(t.Context(), c.to)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.to, err)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s: %v, which is not a reset", c.to, err)
			}
			continue
		}
		if _, err := conn.Write([]byte("hello")); err != nil {
			t.Error(err)
		}
		b := make([]byte, 5)
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != "hello" {
			t.Errorf("%s: %q, %v", c.to, b, err)
		}
		conn.CloseWrite()
		if rest, err := io.ReadAll(conn); len(rest) > 0 || err != nil {
			t.Errorf("%s: then %q, %v", c.to, rest, err)
		}
		conn.Close()
	}
	want := "[www.allowed.test:80 unknown.test:80 1.1.1.1:443 169.254.169.254:80 198.18.200.200:80]"
	if got := fmt.Sprint(o.asked); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// A connection waits for its judgement, and others go on meanwhile. When the program has given up, the answer changes nothing.
func TestConnectWaits(t *testing.T) {
	waits, answer, judged := make(chan struct{}, 2), make(chan error), make(chan struct{}, 2)
	o := newOutside(t)
	o.refuse = func(ctx context.Context, host string) error {
		if host != "192.0.2.9" {
			return nil
		}
		defer func() { judged <- struct{}{} }()
		waits <- struct{}{}
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p := newProgram(t, o.config())
	type result struct {
		conn *gonet.TCPConn
		err  error
	}
	held := make(chan result, 1)
	go func() {
		conn, err := p.dial(t.Context(), "192.0.2.9:80")
		held <- result{conn, err}
	}()
	<-waits
	other, err := p.dial(t.Context(), "192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	select {
	case r := <-held:
		t.Fatalf("the connection has not waited: %v", r.err)
	default:
	}
	answer <- nil
	if r := <-held; r.err != nil {
		t.Fatal(r.err)
	} else {
		r.conn.Close()
	}
	<-judged
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := p.dial(ctx, "192.0.2.9:80")
		held <- result{nil, err}
	}()
	<-waits
	cancel()
	if r := <-held; r.err == nil {
		t.Fatal("given up, and connected")
	}
	answer <- nil
	<-judged
}

// A network is closed while connections wait and others are open.
func TestCloseEndsAll(t *testing.T) {
	var held atomic.Int32
	o := newOutside(t)
	o.refuse = func(ctx context.Context, host string) error {
		if host == "192.0.2.9" {
			held.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	p := newProgram(t, o.config())
	conn, err := p.dial(t.Context(), "192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var dials sync.WaitGroup
	for range 10 {
		dials.Go(func() {
			if conn, err := p.dial(t.Context(), "192.0.2.9:80"); err == nil {
				conn.Close()
				t.Error("connected")
			}
		})
	}
	for held.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	p.net.cancel()
	dials.Wait()
	if _, err := io.ReadAll(conn); err == nil {
		t.Error("an open connection ended as if its host had")
	}
}

// UDP to other ports and hosts is answered at once.
func TestOtherUDP(t *testing.T) {
	p := newProgram(t, newOutside(t).config())
	for _, to := range []tcpip.FullAddress{
		{NIC: 1, Addr: tcpip.AddrFrom4([4]byte{8, 8, 8, 8}), Port: 53}, {NIC: 1, Addr: tcpip.AddrFrom4(Resolver.As4()), Port: 123},
		{NIC: 1, Addr: tcpip.AddrFrom4([4]byte{192, 0, 2, 1}), Port: 443},
	} {
		conn, err := gonet.DialUDP(p.stack, nil, &to, ipv4.ProtocolNumber)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte("hello"))
		if _, err := conn.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%v: %v", to, err)
		}
		conn.Close()
	}
}

// A thousand connections at once, but for fewer with the race detector: a program gives up after two minutes.
func TestManyConnections(t *testing.T) {
	p := newProgram(t, newOutside(t).config())
	var conns sync.WaitGroup
	for i := range min(1000, samples.Rounds(1000)) {
		conns.Go(func() {
			conn, err := p.dial(t.Context(), fmt.Sprintf("192.0.2.%d:80", i%250+1))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%04d", i)
			b := make([]byte, 4)
			if _, err := io.ReadFull(conn, b); err != nil || string(b) != fmt.Sprintf("%04d", i) {
				t.Errorf("%d: %q, %v", i, b, err)
			}
		})
	}
	conns.Wait()
}

// FuzzAnswer: no query makes the resolver fail, look up a name that is not allowed, or answer more than fits.
func FuzzAnswer(f *testing.F) {
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeTXT, dnsmessage.TypePTR, 65} {
		f.Add(makeQuery(f, "www.allowed.test.", kind, 0))
		f.Add(makeQuery(f, "unknown.test.", kind, 4096))
	}
	f.Add([]byte("\x00\x01\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00\x01a\xc0\x0c\x00\x01\x00\x01"))
	o := &outside{}
	config := o.config()
	n := &Network{config: config, lookups: make(chan struct{}, maxLookups), ctx: context.Background()}
	n.config.Lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
		if !config.Resolves(name) {
			f.Errorf("%s left the machine", name)
		}
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		answers := make(chan []byte, 2)
		n.answer(query, 0, func(b []byte) { answers <- b })
		n.serving.Wait()
		if len(answers) != 1 {
			t.Fatalf("%d answers", len(answers))
		}
		b := <-answers
		if b == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(b); err != nil || !m.Response || len(b) > ednsSize {
			t.Errorf("%d bytes, %v: %v", len(b), err, m.Header)
		}
	})
}

func BenchmarkConnect(b *testing.B) {
	p := newProgram(b, newOutside(b).config())
	for b.Loop() {
		conn, err := p.dial(b.Context(), "192.0.2.1:80")
		if err != nil {
			b.Fatal(err)
		}
		conn.Close()
	}
}

func BenchmarkLookup(b *testing.B) {
	p := newProgram(b, newOutside(b).config())
	for b.Loop() {
		p.ask("unknown.test.", dnsmessage.TypeA)
	}
}
