package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/guard/internal/proxy"
)

// platformBackends are the backends to try, best first.
var platformBackends = []Backend{Namespaces, backendBubblewrap, backendLandlock}

func platformWhy() []string { return nil }

// start starts a sandbox with one backend.
func start(ctx context.Context, b Backend, p Policy, o Options) (*Sandbox, error) {
	switch b {
	case Namespaces:
		return withNamespaces(ctx, p, o)
	case backendBubblewrap:
		return withBubblewrap(ctx, p, o)
	case backendLandlock:
		l, report, err := startLandlock(ctx, p, o)
		if err != nil {
			return nil, err
		}
		return &Sandbox{engine: l, report: report}, nil
	default:
		return nil, &unavailableError{backend: b, cause: "is not a backend of this system"}
	}
}

func withNamespaces(ctx context.Context, p Policy, o Options) (*Sandbox, error) {
	k, cannot := newConnector(p)
	n, listener, err := startNamespaces(ctx, p, o, k)
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	s := &Sandbox{engine: n, env: rootEnv(), report: namespaceReport(Namespaces, p)}
	s.connectBy(k, n.judged, cannot)
	if listener != nil {
		rules := p.Network.rules()
		rules.Inside = n.dial
		s.proxy = proxy.Start(listener, rules, o.Dial, o.Resolve)
		s.env = append(s.env, s.proxy.Env()...)
	}
	return s, nil
}

func withBubblewrap(ctx context.Context, p Policy, o Options) (*Sandbox, error) {
	k, cannot := newConnector(p)
	w, err := startBubblewrap(ctx, p, o, k)
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	s := &Sandbox{engine: w, env: rootEnv(), report: namespaceReport(backendBubblewrap, p)}
	s.connectBy(k, k != nil && !w.unjudged, cannot)
	if len(p.Network.AllowedDomains) > 0 && !p.Network.Unrestricted {
		s.report.Why = append(s.report.Why, "bubblewrap: allowed hosts cannot be reached; the network is cut off as a whole.")
	}
	return s, nil
}

// connectBy notes which process makes the connections of commands, or why none does.
func (s *Sandbox) connectBy(k *connector, judged bool, cannot error) {
	if k != nil {
		s.sockets = k
	}
	switch {
	case judged:
		return
	case cannot == nil:
		cannot = errors.New("this program runs under a filter that has a listener already, as in some containers")
	}
	s.report.Why = append(s.report.Why, fmt.Sprintf("%s: commands have no Unix sockets but pairs, allowUnixSockets included, for their connections cannot be judged: %v. Linux 5.9 or later is needed, with seccomp user notification, pidfd_getfd, process_vm_readv and CONFIG_UNIX_DIAG.", s.report.Backend, cannot))
}

// namespaceReport is what a sandbox with namespaces holds.
func namespaceReport(b Backend, p Policy) Report {
	return Report{
		Backend:  b,
		Enforces: enforcement{Writes: true, Denies: true, Network: !p.Network.Unrestricted, Processes: true},
	}
}

// rootEnv helps programs that take user 0 for all-powerful: tar would try to
// give files to the owners in the archive.
func rootEnv() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"TAR_OPTIONS=--no-same-owner"}
}
