package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Connect connects to a host and its port for a program that does not use the proxy, and notes a refusal. from and to
// are the addresses of the program's connection.
func (p *Proxy) Connect(ctx context.Context, from, to netip.AddrPort, address string) (net.Conn, error) {
	ctx = context.WithValue(ctx, ends{}, [2]netip.AddrPort{from, to})
	conn, err := p.connect(ctx, address)
	var refusal *refusedError
	if errors.As(err, &refusal) {
		p.note(ctx, refusal)
	}
	return conn, err
}

// Resolves reports whether a name may be looked up: the rules allow it on a port, and deny it on none.
func (p *Proxy) Resolves(name string) bool {
	return namesAny(p.rules.AllowedDomains, name) && !namesAny(p.rules.DeniedDomains, name)
}

// namesAny reports whether a canonical host matches one of the patterns on some port.
func namesAny(patterns []string, host string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		_, port := splitPattern(pattern)
		return matches(pattern, host, port)
	})
}

// Lookup returns the addresses of a name that Resolves has approved.
func (p *Proxy) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	return p.addresses(ctx, name)
}

// connect is reach for the side of a program. If the host gets secrets, the connection is one whose requests are
// read.
func (p *Proxy) connect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := p.reach(ctx, address)
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(address) // it was reached
	return p.terminate(ctx, conn, CanonicalHost(host), port), nil
}

// reach judges address and connects to it. The name is resolved once, and the connection goes to an address that was
// checked: a name that changes its address between two lookups gains nothing.
func (p *Proxy) reach(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &refusedError{host: address, why: "it is not a host and a port"}
	}
	host = CanonicalHost(host)
	if p.rules.Local != nil && loopback(host) {
		return p.loopback(ctx, host, port)
	}
	approved, err := p.judge(ctx, host, port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addresses, err := p.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	last := error(&refusedError{host: net.JoinHostPort(host, port), why: "it has no address"})
	for _, a := range addresses {
		if why := p.unreachable(a, port); why != "" && !(approved && a.String() == host) {
			last = &refusedError{host: net.JoinHostPort(host, port), why: why}
			continue
		}
		if MatchesAny(p.rules.DeniedDomains, a.String(), port) {
			last = &refusedError{host: net.JoinHostPort(host, port), why: fmt.Sprintf("its address %s is denied", a)}
			continue
		}
		conn, err := p.dial(ctx, "tcp", net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, last
}

// loopback reports whether a host is the loopback interface of the machine that asks.
func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	a = a.Unmap()
	return host == localhost || strings.HasSuffix(host, "."+localhost) || err == nil &&
		(a.IsLoopback() || a.IsUnspecified())
}

// localhost is the name of this machine's loopback interface in rules and questions.
const localhost = "localhost"

// localNames are the names of the loopback interface in rules.
var localNames = []string{localhost, "127.0.0.1", "::1"}

// matchesLocal reports whether one of the patterns names a port of the loopback interface.
func matchesLocal(patterns []string, port string) bool {
	return slices.ContainsFunc(localNames, func(name string) bool { return MatchesAny(patterns, name, port) })
}

// loopback connects to a port of the loopback interface: to the sandbox's own where a program listens there,
// otherwise to this machine's if the rules allow it.
func (p *Proxy) loopback(ctx context.Context, host, port string) (net.Conn, error) {
	if matchesLocal(p.rules.DeniedDomains, port) || MatchesAny(p.rules.DeniedDomains, host, port) {
		return nil, &refusedError{host: net.JoinHostPort(host, port), why: denied}
	}
	if p.rules.Inside != nil && !matchesLocal(literal(p.rules.AllowedDomains), port) {
		conn, err := p.inside(ctx, host, port)
		var refusal *refusedError
		if err == nil || errors.As(err, &refusal) {
			return conn, err
		}
	}
	return p.local(ctx, port)
}

// ConnectLocal connects to a port of this machine's loopback interface on which no program of the sandbox listens,
// and notes a refusal. from and to are the addresses of the program's connection.
func (p *Proxy) ConnectLocal(ctx context.Context, from, to netip.AddrPort) (net.Conn, error) {
	ctx = context.WithValue(ctx, ends{}, [2]netip.AddrPort{from, to})
	port := strconv.Itoa(int(to.Port()))
	conn, err := p.local(ctx, port)
	if err == nil {
		conn = p.terminate(ctx, conn, localhost, port)
	}
	var refusal *refusedError
	if errors.As(err, &refusal) {
		p.note(ctx, refusal)
	}
	return conn, err
}

// local judges a port of this machine's loopback interface and connects to it. A closed one is refused without a
// question: programs often look whether a server has started.
func (p *Proxy) local(ctx context.Context, port string) (net.Conn, error) {
	where := net.JoinHostPort(localhost, port)
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, &refusedError{host: where, why: "it is not a port"}
	}
	switch open, why := p.rules.Local(int(n)); {
	case !open:
		return nil, fmt.Errorf("nothing listens on %s", where)
	case why != "":
		return nil, &refusedError{host: where, why: why}
	case matchesLocal(p.rules.DeniedDomains, port):
		return nil, &refusedError{host: where, why: denied}
	case !matchesLocal(literal(p.rules.AllowedDomains), port):
		if err := p.ask(ctx, localhost, port); err != nil {
			return nil, err
		}
	}
	for _, address := range localNames[1:] {
		var conn net.Conn
		if conn, err = p.dial(ctx, "tcp", net.JoinHostPort(address, port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// inside connects to a port of the sandbox, except to that of the proxy: the proxy would ask itself.
func (p *Proxy) inside(ctx context.Context, host, port string) (net.Conn, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if _, own, _ := net.SplitHostPort(p.address); err != nil || port == own {
		return nil, &refusedError{host: net.JoinHostPort(host, port),
			why: "it is not a port of a program in the sandbox"}
	}
	return p.rules.Inside(ctx, int(n))
}

// unreachable says why an address of an allowed host is not connected to; "" if
// it is. A name must not lead to a private network by itself: its owner could
// point it there.
func (p *Proxy) unreachable(a netip.Addr, port string) string {
	listed := MatchesAny(literal(p.rules.AllowedDomains), a.String(), port)
	switch {
	case Public(a), listed, p.rules.AllowPrivate && Private(a):
		return ""
	case Private(a):
		return fmt.Sprintf("its address %s is private: a person can set sandbox.network.allowPrivate, or add that address "+
			"to sandbox.network.allowedDomains", a)
	}
	return fmt.Sprintf("its address %s is not a public one: a person can add that address to "+
		"sandbox.network.allowedDomains", a)
}

// judge decides by name. approved means that a person has allowed it.
func (p *Proxy) judge(ctx context.Context, host, port string) (approved bool, err error) {
	where := net.JoinHostPort(host, port)
	switch {
	case host == "":
		return false, &refusedError{host: where, why: "it is not a host name"}
	case MatchesAny(p.rules.DeniedDomains, host, port):
		return false, &refusedError{host: where, why: denied}
	case MatchesAny(p.rules.AllowedDomains, host, port):
		return false, nil
	}
	// Other addresses are of this machine and its link, which a person cannot judge by a number.
	if a, err := netip.ParseAddr(host); err == nil && !Public(a.Unmap()) && !Private(a.Unmap()) {
		return false, &refusedError{host: where, why: NotAllowed}
	}
	err = p.ask(ctx, host, port)
	return err == nil, err
}

// ask has a person decide about a host that no list names. The question outlives the connection: its answer is for
// the next one, too.
func (p *Proxy) ask(ctx context.Context, host, port string) error {
	c := p.caller(ctx)
	allowed, why := false, ""
	if c.Ask != nil {
		allowed, why = c.Ask(p.ctx, host, port)
	}
	if allowed {
		return nil
	}
	return &refusedError{host: net.JoinHostPort(host, port), why: cmp.Or(why, NotAllowed), program: c.Program}
}

// literal returns the patterns without a wildcard.
func literal(patterns []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(s string) bool { return strings.HasPrefix(s, "*") })
}

func (p *Proxy) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	list, err := p.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] = list[i].Unmap()
	}
	return list, nil
}

// special are ranges beyond those netip knows that do not lead to the public
// Internet, from the IANA special-purpose address registries. 64:ff9b::/96 and
// 2002::/16 carry IPv4 addresses, private ones too.
var special = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// shared are the addresses of carriers' and overlay networks (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// Private reports whether a is an address of a private network (RFC 1918, RFC
// 4193, RFC 6598). Addresses of this machine and of its link, where clouds serve
// credentials, are not.
func Private(a netip.Addr) bool { return a.Zone() == "" && (a.IsPrivate() || shared.Contains(a)) }

// unicast are the addresses of IPv6 that are given to networks of the Internet.
var unicast = netip.MustParsePrefix("2000::/3")

// Public reports whether a is an address of the public Internet.
func Public(a netip.Addr) bool {
	if a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !a.Is4In6() && !unicast.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(special[:], func(p netip.Prefix) bool { return p.Contains(a) })
}
