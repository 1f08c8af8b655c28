package gateway

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/guard"
)

// maxRefusedHosts is how many hosts are remembered that were refused to a server: those that it asked for first.
const maxRefusedHosts = 20

// refusedHosts are the hosts that were refused to the processes of a server.
type refusedHosts struct {
	mu  sync.Mutex
	all []refusedHost
	n   int // how often one was refused
}

// A refusedHost is a host with its port, and the program that asked for it last.
type refusedHost struct {
	host, program string
	last          int // see refusedHosts.n
}

func (r *refusedHosts) note(host, program string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	now := refusedHost{host, program, r.n}
	switch i := slices.IndexFunc(r.all, func(h refusedHost) bool { return h.host == host }); {
	case i >= 0:
		r.all[i] = now
	case len(r.all) < maxRefusedHosts:
		r.all = append(r.all, now)
	}
}

// count returns how often a host was refused.
func (r *refusedHosts) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// since returns the hosts that were refused after the count was n.
func (r *refusedHosts) since(n int) []refusedHost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(h refusedHost) bool { return h.last <= n })
}

// allowHost returns the command by which a person lets the server of an entry reach a host with a port.
func (e *Entry) allowHost(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil && (port == "443" || port == "80") &&
		name != "localhost" {
		host = name
	}
	if e.Trust == Project || filepath.Base(e.File) != "toolhost.json" {
		return "toolhost mcp " + guard.Quote("--mcp-config", e.File, "allow-host", e.Name, host)
	}
	return "toolhost mcp " + guard.Quote("allow-host", e.Name, host)
}

// hostNotes returns notes on the hosts that were refused to a server after the count was n.
func (s *server) hostNotes(n int) (notes []string) {
	for _, h := range s.refused.since(n) {
		notes = append(notes, fmt.Sprintf("[The sandbox refused the host %s (%s) to the server %s: it is not in "+
			"network.allowedDomains of its entry. A person can add it: %s]",
			h.host, h.program, s.Name, s.allowHost(h.host)))
	}
	return notes
}
