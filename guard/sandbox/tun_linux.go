package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/toolhost/toolhost/guard/internal/netstack"
	"github.com/toolhost/toolhost/guard/sandbox/internal/namespaces"
)

// The network of commands is a TUN device. Process 1 makes it and hands it to the host, where package netstack
// answers. Commands cannot change it: they have no capability in the network namespace.

// network answers the TUN device of commands, if they have one.
func (s *Sandbox) network(n *insideProcess, o Options) error {
	if n.noTUN != nil {
		s.report.Why = append(s.report.Why, fmt.Sprintf("%s: programs that do not use the variables HTTP_PROXY and "+
			"HTTPS_PROXY reach no hosts: %v. They do where %s exists (modprobe tun; in a container, --device %s).",
			s.report.Backend, n.noTUN, namespaces.TUNDevice, namespaces.TUNDevice))
		return nil
	}
	link, err := netstack.Link(n.tun)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	records := netstack.Records
	if o.Resolve != nil { // which knows addresses only
		records = func(context.Context, string, dnsmessage.Type) ([]dnsmessage.ResourceBody, error) { return nil, nil }
	}
	network, err := netstack.Start(link, netstack.Config{
		Resolves: s.proxy.Resolves, Lookup: s.proxy.Lookup, Records: records,
		Connect: func(ctx context.Context, from, to netip.AddrPort, host string) (net.Conn, error) {
			if to.Addr() == netstack.Host {
				return s.proxy.ConnectLocal(ctx, from, to)
			}
			return s.proxy.Connect(ctx, from, to, net.JoinHostPort(host, strconv.Itoa(int(to.Port()))))
		},
	})
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	s.outside = network.Close
	return nil
}
