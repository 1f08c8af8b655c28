// Package netstack is the network that the programs of a sandbox find: a resolver for names, and TCP to hosts that
// are judged.
//
// It is the other side of a TUN device. A connection attempt (SYN) is kept until [Config].Connect has judged the host
// and connected to it. Then the handshake is completed, or the attempt is reset. To a program this is a slow network:
// its own time limits hold, and nothing else of it waits. There is no IPv6, and no UDP except for the resolver.
//
// Names are given addresses of 198.18.0.0/15, a range that leads nowhere (RFC 2544). A connection to such a stand-in
// is a connection to the name, wherever that leads outside: what a name resolves to inside cannot be changed after it
// was judged.
package netstack

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// MTU is the size of the largest packet.
const MTU = 65000

const (
	// maxHeld is how many connection attempts wait for their judgement at once. Others are ignored: the kernel of the
	// sandbox repeats them after a second.
	maxHeld = 1024
	// maxConns is how many connections a sandbox has at once. Others are reset.
	maxConns = 4096
	// keepAlive is how often a silent connection is checked for a program at its other end. A program that ended while
	// the host was silent is noticed by this alone.
	keepAlive = 30 * time.Second
	// abortPause is the pause between two attempts to end all connections.
	abortPause = 5 * time.Millisecond
	// nic is the number of the only network interface.
	nic = 1
	// dnsPort is the port of the resolver.
	dnsPort = 53
)

// Addresses in the network of a sandbox.
var (
	// Resolver is where programs find the resolver, on port 53 of UDP and TCP.
	Resolver = netip.MustParseAddr("198.18.0.1")
	// Inside is the address of the sandbox.
	Inside = netip.MustParseAddr("198.18.0.2")
	// Host stands for the loopback interface of the host.
	Host = netip.MustParseAddr("198.18.0.3")
)

// Config connects the network of a sandbox with the one outside. All functions are required, and may be called from
// several goroutines.
type Config struct {
	// Resolves reports whether a name, in lower case and without a final dot, may be looked up outside. Others get a
	// stand-in, and no query leaves this machine.
	Resolves func(name string) bool
	// Lookup looks up a name that Resolves has approved.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Records looks up the TXT, MX or SRV records of a name that Resolves has approved.
	Records func(ctx context.Context, name string, kind dnsmessage.Type) ([]dnsmessage.ResourceBody, error)
	// Connect judges a connection and opens it outside. from is the address of the program's socket, and to the one that
	// it connects to. host is the name that has this address, or the address itself if it was given to no name. It may
	// take as long as a person thinks; ctx ends with the network.
	Connect func(ctx context.Context, from, to netip.AddrPort, host string) (net.Conn, error)
}

// A Relayer is a connection of [Config].Connect that serves the program itself. It closes both connections.
type Relayer interface{ Relay(program net.Conn) }

// A Network serves one sandbox.
type Network struct {
	config  Config
	names   standIns
	lookups chan struct{} // a token for each lookup outside
	conns   chan struct{} // a token for each connection
	stack   *stack.Stack
	link    stack.LinkEndpoint
	ctx     context.Context
	cancel  context.CancelFunc
	serving sync.WaitGroup
}

// Start serves a link until Close.
func Start(link stack.LinkEndpoint, config Config) (*Network, error) {
	n := &Network{config: config, link: link, lookups: make(chan struct{}, maxLookups),
		conns: make(chan struct{}, maxConns)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	if err := n.setUp(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// setUp makes the stack accept packets to all addresses, and serves the resolver.
func (n *Network) setUp() error {
	sack := tcpip.TCPSACKEnabled(true)
	held := tcp.NewForwarder(n.stack, 0, maxHeld, n.connect)
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, held.HandlePacket)
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddrFrom4(Resolver.As4()).WithPrefix()}
	for _, step := range []func() tcpip.Error{
		func() tcpip.Error { return n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &sack) },
		func() tcpip.Error { return n.stack.CreateNIC(nic, n.link) },
		func() tcpip.Error { return n.stack.SetPromiscuousMode(nic, true) },
		func() tcpip.Error { return n.stack.SetSpoofing(nic, true) },
		func() tcpip.Error { return n.stack.AddProtocolAddress(nic, own, stack.AddressProperties{}) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("network stack: %s", err)
		}
	}
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	conn, err := gonet.DialUDP(n.stack, &tcpip.FullAddress{NIC: nic, Addr: own.AddressWithPrefix.Address, Port: dnsPort},
		nil, ipv4.ProtocolNumber)
	if err != nil {
		return fmt.Errorf("network stack: resolver: %w", err)
	}
	n.serving.Go(func() { n.serveUDP(conn) })
	return nil
}

// Close ends all connections, and returns when nothing is served any more.
func (n *Network) Close() {
	n.cancel()
	n.abort()
	n.serving.Wait()
	n.stack.RemoveNIC(nic)
	n.link.Wait()
	n.stack.Close()
	n.stack.Wait()
}

// abort ends all connections. A handshake may begin while it runs, and the other side may be gone: so it is repeated
// until every place is taken, and none can begin any more.
func (n *Network) abort() {
	taken := make(chan struct{})
	go func() {
		for range maxConns {
			n.conns <- struct{}{}
		}
		close(taken)
	}()
	for tick := time.NewTicker(abortPause); ; {
		for _, e := range n.stack.RegisteredEndpoints() {
			e.Abort()
		}
		select {
		case <-taken:
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// connect answers a connection attempt.
func (n *Network) connect(r *tcp.ForwarderRequest) {
	select {
	case n.conns <- struct{}{}:
	default:
		r.Complete(true)
		return
	}
	defer func() { <-n.conns }()
	if n.ctx.Err() != nil {
		r.Complete(true)
		return
	}
	id := r.ID()
	from, to := addrPort(id.RemoteAddress, id.RemotePort), addrPort(id.LocalAddress, id.LocalPort)
	if to == netip.AddrPortFrom(Resolver, dnsPort) {
		if in := n.accept(r, func() {}); in != nil {
			n.serveTCP(in)
		}
		return
	}
	host, ok := n.names.name(to.Addr())
	if !ok {
		host = to.Addr().String()
	}
	out, err := n.config.Connect(n.ctx, from, to, host)
	if err != nil {
		r.Complete(true)
		return
	}
	defer out.Close()
	in := n.accept(r, func() { out.Close() })
	if in == nil {
		return
	}
	if own, ok := out.(Relayer); ok {
		defer context.AfterFunc(n.ctx, in.endpoint.Abort)()
		own.Relay(in)
		return
	}
	n.relay(in, out)
}

// accept completes the handshake of a connection attempt. It returns nil if the program has given up. gone is called
// when the connection has ended.
func (n *Network) accept(r *tcp.ForwarderRequest, gone func()) *inner {
	in := &inner{}
	entry := waiter.NewFunctionEntry(waiter.EventErr|waiter.EventHUp, func(waiter.EventMask) { gone() })
	in.queue.EventRegister(&entry)
	endpoint, err := r.CreateEndpoint(&in.queue)
	if err != nil {
		r.Complete(true)
		return nil
	}
	r.Complete(false)
	idle, interval := tcpip.KeepaliveIdleOption(keepAlive), tcpip.KeepaliveIntervalOption(keepAlive)
	endpoint.SetSockOpt(&idle)
	endpoint.SetSockOpt(&interval)
	endpoint.SocketOptions().SetKeepAlive(true)
	in.endpoint, in.TCPConn = endpoint, gonet.NewTCPConn(&in.queue, endpoint)
	return in
}

// inner is a connection of a program.
type inner struct {
	*gonet.TCPConn
	queue    waiter.Queue
	endpoint tcpip.Endpoint
}

// relay copies bytes both ways until both sides have ended, or one has failed, or the network is closed.
func (n *Network) relay(in *inner, out net.Conn) {
	defer in.Close()
	abort := func() { in.endpoint.Abort(); out.Close() }
	defer context.AfterFunc(n.ctx, abort)()
	var both sync.WaitGroup
	both.Go(func() { carry(out, in, abort) })
	both.Go(func() { carry(in, out, abort) })
	both.Wait()
}

// addrPort converts an address of the stack.
func addrPort(a tcpip.Address, port uint16) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(a.AsSlice()) // 4 bytes always: there is no IPv6
	return netip.AddrPortFrom(addr, port)
}
