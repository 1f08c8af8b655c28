// Package proxy is the way out of a sandbox's network: it connects commands to the hosts that are allowed, and notes
// which others were wanted.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Rules say which hosts are reached, as [github.com/toolhost/toolhost/guard/sandbox.Network] describes them.
type Rules struct {
	AllowedDomains, DeniedDomains []string
	AllowPrivate                  bool
	// Caller returns who has a connection: from is the address of its socket, and to the one that it is connected to.
	// Nil: that is not known.
	Caller func(from, to netip.AddrPort) Caller
	// Local reports whether a program of this machine listens on a port of its loopback interface, and why commands
	// never reach it; "" if they may. Nil: they reach none.
	Local func(port int) (open bool, why string)
	// Inside connects to a port of the loopback interface that commands have of their own. Programs that know no
	// exceptions send requests for it here. Nil: they have none.
	Inside func(ctx context.Context, port int) (net.Conn, error)
	// Secrets are put into requests to their hosts, which are verified by Roots; nil: those of the system.
	Secrets []Secret
	Roots   *x509.CertPool
}

// A Caller is the command whose program has a connection.
type Caller struct {
	// Program is the program, after those that have started it: "npm → node". It is "" if that is not known.
	Program string
	// Ask reports whether a host that no list names may be reached. It may take as long as a person thinks. why is the
	// reason of a refusal; "" if nothing but the lists is. Nil: it may not.
	Ask func(ctx context.Context, host, port string) (allowed bool, why string)
	// Used is called when a secret is put into a request to a host, or when the request is refused because of it, with
	// the reason. It may be nil.
	Used func(secret, host, port, refused string)
}

// DialFunc opens a connection to an address that has been judged already.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// ResolveFunc returns the addresses of a host.
type ResolveFunc func(ctx context.Context, host string) ([]netip.Addr, error)

// A Refusal is a host that commands asked for and did not get.
type Refusal struct {
	Host    string // with the port, as it was asked for
	Program string // that asked for it first, see [Caller]
	Why     string // one sentence
	Count   int    // how often
}

// NotAllowed is the reason of a refusal if no list names the host.
const NotAllowed = "it is not in sandbox.network.allowedDomains"

// denied is the reason of a refusal if the rules deny the host.
const denied = "it is denied by sandbox.network.deniedDomains"

const (
	// dialTimeout is how long the proxy tries to reach a host.
	dialTimeout = 30 * time.Second
	// halfOpenTime is how long a host may be silent after a command that says nothing more. Whether that waits for the
	// rest or has ended cannot be told apart, and a host beyond a partition says nothing ever.
	halfOpenTime = 20 * time.Second
	// maxRefusals bounds how many hosts are remembered between two looks.
	maxRefusals = 100
	// maxConns bounds connections of one sandbox. A program may take as long as it likes for what it says: on a busy
	// machine that is long, and it delays its own sandbox only.
	maxConns = 1024
)

// A Proxy is the only way out of a network namespace: an HTTP proxy that knows
// plain requests and CONNECT. It listens inside and runs outside. It runs where
// nothing is allowed too, to know which host was wanted.
type Proxy struct {
	rules   Rules
	address string
	conns   *limited
	server  *http.Server
	forward *httputil.ReverseProxy
	dial    DialFunc
	resolve ResolveFunc
	ctx     context.Context // ends tunnels with the sandbox
	cancel  context.CancelFunc
	serving sync.WaitGroup

	secrets  secrets
	reader   *http.Server  // of requests to hosts that get secrets
	sessions chan net.Conn // with such requests
	resumed  tls.ClientSessionCache
	signing  chan struct{} // has an element for each body that is held

	mu      sync.Mutex
	refused []Refusal
}

// Start serves the connections of a listener, which is closed with the proxy. A nil dial is a net.Dialer, a nil
// resolve net.DefaultResolver.
func Start(l net.Listener, rules Rules, dial DialFunc, resolve ResolveFunc) *Proxy {
	p := &Proxy{rules: rules, address: l.Addr().String(), conns: limitListener(l, maxConns), dial: dial, resolve: resolve,
		secrets: secrets{all: rules.Secrets}}
	if p.dial == nil {
		p.dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if p.resolve == nil {
		p.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if len(rules.Secrets) > 0 {
		p.readRequests()
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.In.URL.Host // what was judged, not what the Host header says
			r.Out.Header.Del("Proxy-Connection")
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn,
				error) {
				return p.reach(ctx, address)
			},
			DisableKeepAlives:      true,
			ResponseHeaderTimeout:  0, // the command's own limits apply
			MaxResponseHeaderBytes: 1 << 20,
		},
		ErrorHandler: p.fail,
	}
	p.server = &http.Server{
		Handler:     http.HandlerFunc(p.serve),
		ErrorLog:    discardLog,
		ConnState:   p.conns.note,
		BaseContext: func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return between(ctx, c.RemoteAddr(), c.LocalAddr())
		},
	}
	p.serving.Go(func() { p.server.Serve(p.conns) })
	return p
}

// Env tells programs where the proxy is. Addresses inside the sandbox are
// reached without it.
func (p *Proxy) Env() []string {
	url := "http://" + p.address
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+url, strings.ToLower(name)+"="+url)
	}
	const direct = "localhost,127.0.0.1,::1"
	return append(env, "NO_PROXY="+direct, "no_proxy="+direct, "NODE_USE_ENV_PROXY=1")
}

// Refused returns and forgets what was refused.
func (p *Proxy) Refused() []Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.refused
	p.refused = nil
	return list
}

// note notes a refusal. ctx is that of the connection.
func (p *Proxy) note(ctx context.Context, e *refusedError) {
	if e.program == "" || e.secret != "" {
		c := p.caller(ctx)
		e.program = c.Program
		if host, port, err := net.SplitHostPort(e.host); err == nil && e.secret != "" && c.Used != nil {
			c.Used(e.secret, host, port, e.why)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.refused, func(r Refusal) bool { return r.Host == e.host })
	switch {
	case i >= 0:
		p.refused[i].Count++
	case len(p.refused) < maxRefusals:
		p.refused = append(p.refused, Refusal{Host: e.host, Program: e.program, Why: e.why, Count: 1})
	}
}

// ends is the key of the addresses of a connection in its context.
type ends struct{}

// between returns the context of a connection from one address to another.
func between(ctx context.Context, from, to net.Addr) context.Context {
	a, _ := netip.ParseAddrPort(from.String())
	b, _ := netip.ParseAddrPort(to.String())
	return context.WithValue(ctx, ends{}, [2]netip.AddrPort{a, b})
}

// caller returns who has the connection of a context.
func (p *Proxy) caller(ctx context.Context) (c Caller) {
	if at, ok := ctx.Value(ends{}).([2]netip.AddrPort); ok && p.rules.Caller != nil {
		c = p.rules.Caller(at[0], at[1])
	}
	return c
}

// Close ends every connection and returns when none is served any more.
func (p *Proxy) Close() {
	p.cancel()
	p.server.Close()
	if p.reader != nil {
		p.reader.Close()
	}
	p.serving.Wait()
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		if secret := (&request{Request: r, secrets: &p.secrets, may: func(*Secret) bool { return false }}).stray(); secret != nil {
			refusal := straying(secret, net.JoinHostPort(CanonicalHost(r.URL.Hostname()), cmp.Or(r.URL.Port(), "80")),
				false)
			p.note(r.Context(), refusal)
			misdirected(w, refusal)
			return
		}
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is the proxy of a sandbox; it takes http URLs and CONNECT", http.StatusBadRequest)
	}
}

// tunnel connects a command to a host and copies bytes both ways.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	host, err := p.connect(r.Context(), r.Host)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer host.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	stop := context.AfterFunc(p.ctx, func() { client.Close(); host.Close() })
	defer stop()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if t, ok := host.(*Terminated); ok {
		t.Relay(&begun{client, buffered})
		return
	}
	relay(&begun{client, buffered}, host)
}

// relay copies bytes both ways until both sides have ended.
func relay(client, host net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(host, client)
		closeWrite(host)
		host.SetReadDeadline(time.Now()) // wakes the copy below, which then waits no longer than it may
	}()
	if _, err := io.Copy(client, host); errors.Is(err, os.ErrDeadlineExceeded) {
		io.Copy(client, bufferedConn{host})
	}
	closeWrite(client)
	<-done
}

// bufferedConn reads from a host for as long as that is never silent for halfOpenTime.
type bufferedConn struct{ net.Conn }

func (s bufferedConn) Read(p []byte) (int, error) {
	s.SetReadDeadline(time.Now().Add(halfOpenTime))
	return s.Conn.Read(p)
}

// closeWrite passes the end of one direction on.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}

// refusedError is a verdict, as opposed to a failure of the network.
type refusedError struct {
	host, why string
	program   string // "": not known, or not looked for
	secret    string // because of which it is refused; or ""
}

func (e *refusedError) Error() string { return e.host + " is refused: " + e.why }

// fail answers a command whose request could not be served.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *refusedError
	if errors.As(err, &refusal) {
		p.note(r.Context(), refusal)
		http.Error(w, "sandbox: "+refusal.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "sandbox: "+err.Error(), http.StatusBadGateway)
}

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

// connect is reach for a program's side, which reads the requests to hosts that get secrets.
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

// loopback reports whether a host is that on which it is asked for.
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

// loopback connects to a port of the loopback interface: that of the sandbox where a program listens there, unless the
// rules allow the one of this machine.
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

// inside connects to a port of the sandbox, but to its proxy: that would ask itself.
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
		return fmt.Sprintf("its address %s is private: a person can set sandbox.network.allowPrivate, or add that address to sandbox.network.allowedDomains", a)
	}
	return fmt.Sprintf("its address %s is not a public one: a person can add that address to sandbox.network.allowedDomains", a)
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
