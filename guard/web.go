package guard

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/internal/rules"
	"github.com/toolhost/toolhost/guard/settings"
)

// Web is the part of a policy on web access besides the rules.
type Web struct{ data *policyData }

// Web returns what the settings say of the web.
func (p *Policy) Web() Web { return Web{p.data} }

// webData is the settings web.* in compiled form.
type webData struct {
	private      []string // host:port
	ignoreRobots bool
	userAgent    string
	search       []string
}

func newWebData(c *rules.Compiler, set *settings.Settings) webData {
	w := webData{ignoreRobots: set.Web.IgnoreRobots, userAgent: set.Web.UserAgent, search: texts(set.Web.Search)}
	for _, e := range set.Web.AllowPrivate {
		pattern := asciiPattern(e.Text)
		_, port, err := net.SplitHostPort(pattern)
		if err == nil {
			err = proxy.Validate([]string{pattern})
		}
		if err != nil || port == "" {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: web.allowPrivate: %q opens nothing; write a host and a port, as "+
				"wiki.corp:443", e.Where(), e.Text))
			continue
		}
		w.private = append(w.private, pattern)
	}
	return w
}

func (w webData) opened(host, port string) bool { return proxy.MatchesAny(w.private, host, port) }

// Opened reports whether web.allowPrivate names the host and the port of a fetch.
func (w Web) Opened(f Fetch) bool { return w.data.web.opened(f.Host, f.Port) }

// IgnoresRobots reports whether the robots.txt of sites is ignored.
func (w Web) IgnoresRobots() bool { return w.data.web.ignoreRobots }

// UserAgent returns the name that is sent to servers, "" for the host's own.
func (w Web) UserAgent() string { return w.data.web.userAgent }

// Search returns the providers of searches in order, each a JSON object.
func (w Web) Search() []string { return w.data.web.search }

// localNames are names and suffixes of names that belong to the machine or to a private network.
var localNames = []string{"localhost", "local", "internal", "localdomain", "home.arpa", "lan"}

// IsLoopback reports whether a host, without a port, is the name localhost or a loopback address. Names are not
// resolved: no DNS server decides about the answer.
func IsLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// Reachable returns why the host of a fetch must not be connected to: because of its name, or of any of the addresses
// that it resolved to. The caller must connect to one of exactly these addresses.
func (w Web) Reachable(f Fetch, addresses ...netip.Addr) error {
	return w.ReachableFrom(nil, f, addresses...)
}

// ReachableFrom is [Web.Reachable] for a host that was named by a server with the addresses servers. Such a server may
// name hosts of the networks that it is in itself: a server on this machine those on this machine, one in a private
// network those in private networks. The zero Web opens no other host.
func (w Web) ReachableFrom(servers []netip.Addr, f Fetch, addresses ...netip.Addr) error {
	var denied []string
	if w.data != nil {
		denied = append(texts(w.data.sandbox.Network.DeniedDomains), w.data.deny.Domains...)
	}
	if a, err := netip.ParseAddr(f.Host); err == nil {
		addresses = append(addresses, a)
	}
	for _, a := range addresses {
		if proxy.MatchesAny(denied, a.Unmap().String(), f.Port) {
			return fmt.Errorf("refused by the rules of this host: the address %s of %s is denied. Only a person can change that",
				a, f.Host)
		}
	}
	if w.data != nil && w.Opened(f) {
		return nil
	}
	reached, why := reachedBy(servers), ""
	for _, name := range localNames {
		if reached == publicAddress && (f.Host == name || strings.HasSuffix(f.Host, "."+name)) {
			why = "the name " + f.Host + " belongs to this machine or its network"
		}
	}
	for _, a := range addresses {
		if classOf(a) > reached {
			why = fmt.Sprintf("the address %s of %s is not a public one", a, f.Host)
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("refused by the address guard of this host: %s. A person can open it: add %q to web.allowPrivate "+
		"of the user settings", why, net.JoinHostPort(f.Host, f.Port))
}

// An addressClass says who reaches an address. A program that reaches one class from its own address reaches those
// before it.
type addressClass int

const (
	publicAddress addressClass = iota
	privateAddress
	loopbackAddress
	specialAddress // such as link-local addresses, where clouds serve credentials
)

func classOf(a netip.Addr) addressClass {
	a = a.Unmap()
	switch {
	case proxy.Public(a):
		return publicAddress
	case proxy.Private(a):
		return privateAddress
	case a.IsLoopback() && a.Zone() == "":
		return loopbackAddress
	}
	return specialAddress
}

// reachedBy returns the last class that all addresses of a server reach, publicAddress for no address.
func reachedBy(servers []netip.Addr) addressClass {
	if len(servers) == 0 {
		return publicAddress
	}
	reached := loopbackAddress
	for _, a := range servers {
		reached = min(reached, classOf(a)%specialAddress)
	}
	return reached
}
