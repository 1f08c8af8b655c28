package sandbox

import (
	"context"
)

// platformBackends are the backends to try, best first.
var platformBackends = []Backend{Namespaces, Bubblewrap, Landlock}

func platformWhy() []string { return nil }

// start starts a sandbox with one backend.
func start(ctx context.Context, b Backend, p Policy, o Options) (*Sandbox, error) {
	switch b {
	case Namespaces:
		n, listener, err := startNamespaces(ctx, p, o)
		if err != nil {
			return nil, err
		}
		s := &Sandbox{engine: n, report: Report{
			Backend:  Namespaces,
			Enforces: Enforcement{Writes: true, Denies: true, Network: !p.Network.Unrestricted, Processes: true},
		}}
		if listener != nil {
			s.proxy = newProxy(listener, p.Network, o)
			s.env = s.proxy.env()
		}
		return s, nil
	case Bubblewrap:
		w, err := startBubblewrap(ctx, p, o)
		if err != nil {
			return nil, err
		}
		s := &Sandbox{engine: w, report: Report{
			Backend:  Bubblewrap,
			Enforces: Enforcement{Writes: true, Denies: true, Network: !p.Network.Unrestricted, Processes: true},
		}}
		if len(p.Network.AllowedDomains) > 0 && !p.Network.Unrestricted {
			s.report.Why = []string{"bubblewrap: allowed hosts cannot be reached; the network is cut off as a whole."}
		}
		return s, nil
	case Landlock:
		l, report, err := startLandlock(ctx, p, o)
		if err != nil {
			return nil, err
		}
		return &Sandbox{engine: l, report: report}, nil
	default:
		return nil, &unavailableError{backend: b, cause: "is not a backend of this system"}
	}
}
