package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/toolhost/toolhost/guard"
)

// A reach is the transport of a login. The server and its authorization server name the hosts that it connects to, and
// they may not lead to networks that the server does not reach itself. The configured host itself is always permitted.
type reach struct {
	own   *url.URL // of the server
	trust Trust
	web   func() guard.Web // see [Config]
	tls   *tls.Config      // nil for the usual one

	mu      sync.Mutex
	servers []netip.Addr // that the configured host has had during this login
}

// newReach returns the reach of an expanded entry.
func newReach(e *Entry, web func() guard.Web) *reach {
	own, _ := url.Parse(e.URL) // expanded has checked it
	if web == nil {
		web = func() guard.Web { return guard.Web{} }
	}
	r := &reach{own: own, trust: e.Trust, web: web}
	if a, err := netip.ParseAddr(own.Hostname()); err == nil {
		r.add(a)
	}
	return r
}

// add records addresses of the configured host. A server with one public address counts as public, so a name whose
// address changes to a private one opens no private network.
func (r *reach) add(servers ...netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range servers {
		if a = a.Unmap(); !slices.Contains(r.servers, a) {
			r.servers = append(r.servers, a)
		}
	}
}

func (r *reach) addresses() []netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.servers)
}

// isOwn reports whether a host is the configured one, on any port.
func (r *reach) isOwn(host string) bool {
	return strings.EqualFold(strings.TrimSuffix(host, "."), strings.TrimSuffix(r.own.Hostname(), "."))
}

// permit returns why a host must not be connected to, by its name and the addresses.
func (r *reach) permit(f guard.Fetch, addresses ...netip.Addr) error {
	return r.web().ReachableFrom(r.addresses(), f, addresses...)
}

// plain reports whether http is permitted for a URL: on this machine, and in the network of a configured server with
// http.
func (r *reach) plain(u *url.URL) bool {
	private := func(a netip.Addr) bool { return guard.Web{}.Reachable(guard.Fetch{}, a) != nil }
	if r.isOwn(u.Hostname()) && r.own.Scheme == "http" {
		servers := r.addresses()
		return len(servers) > 0 && !slices.ContainsFunc(servers, func(a netip.Addr) bool { return !private(a) })
	}
	a, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && private(a)
}

// check checks the host of a URL, and its addresses unless a proxy resolves the name.
func (r *reach) check(ctx context.Context, u *url.URL) error {
	if r.isOwn(u.Hostname()) {
		return nil
	}
	f, err := guard.FetchOf(u)
	if err != nil {
		return err
	}
	if err := r.permit(f); err != nil {
		return err
	}
	via, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil || via != nil {
		return err
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", f.Host)
	if err != nil {
		return fmt.Errorf("the host %s of the authorization server could not be looked up: %w", f.Host, err)
	}
	return r.permit(f, addresses...)
}

// RoundTrip implements [http.RoundTripper]. It makes each request on a connection of its own, and requests an http URL
// of another host over https.
func (r *reach) RoundTrip(req *http.Request) (*http.Response, error) {
	if !r.isOwn(req.URL.Hostname()) {
		if req.URL.Scheme == "http" && !r.plain(req.URL) {
			req = req.Clone(req.Context())
			req.URL.Scheme = "https"
		}
		f, err := guard.FetchOf(req.URL)
		if err == nil {
			err = r.permit(f) // the name, before it is looked up
		}
		if err != nil {
			return nil, err
		}
	}
	via, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader, TLSHandshakeTimeout: connectTime,
		TLSClientConfig: r.tls, DialContext: r.dial,
	}
	if via != nil { // it resolves the name
		t.Proxy, t.DialContext = http.ProxyURL(via), (&net.Dialer{Timeout: connectTime}).DialContext
	}
	return t.RoundTrip(req)
}

// dial connects to a permitted address of a host.
func (r *reach) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: connectTime, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		if !r.isOwn(host) {
			return r.permit(guard.Fetch{Host: host, Port: port}, to.Addr())
		}
		if err := permittedAddress(resolved, r.own.Hostname(), r.trust); err != nil {
			return err
		}
		r.add(to.Addr())
		return nil
	}}
	return d.DialContext(ctx, network, address)
}
