package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sshagent"
)

// platformBackends are the backends to try, best first.
var platformBackends = []Backend{Namespaces, backendLandlock}

// optionalBackends are those to try if the settings want them.
var optionalBackends []Backend

func platformReport() Report { return Report{} }

// start starts a sandbox with one backend.
func start(ctx context.Context, b Backend, p Policy, o Options) (*Sandbox, error) {
	switch b {
	case Namespaces:
		return withNamespaces(ctx, p, o)
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
	var trust []string
	var noMasks error
	if len(p.Network.Secrets) > 0 {
		var files []File
		if files, trust, noMasks = trustAuthority(); noMasks != nil {
			p.Network.Secrets = nil
		}
		p.Files = append(slices.Clip(p.Files), files...)
	}
	if p.SSH != nil {
		p.Sockets = append(slices.Clip(p.Sockets), p.SSH.Path())
	}
	k, cannot := connectgate.NewConnector(connectRules(p))
	n, listener, err := startNamespaces(ctx, p, o, k)
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	s := &Sandbox{engine: n, env: rootEnv(), report: namespaceReport(), noOverlay: n.noOverlay, cached: n.cached}
	s.connectBy(k, n.judged, cannot)
	if p.SSH != nil && k != nil {
		s.env = append(s.env, "SSH_AUTH_SOCK="+p.SSH.Path())
	}
	if noMasks != nil {
		s.report.Why = append(s.report.Why, fmt.Sprintf("%s: masked credentials are denied: %v.", s.report.Backend, noMasks))
	}
	rules := p.Network.rules()
	rules.Roots = o.Roots
	rules.Inside, rules.Caller = n.dial, s.caller
	rules.Local = func(port int) (bool, string) { return hostService(port, p.Network.PortRecords) }
	s.connecting = func(from, to netip.AddrPort) (*connectgate.Gate, []string, connectgate.Program, bool) {
		who := k.CallerOf(from, to)
		c := n.commandOf(who)
		if c == nil {
			return nil, nil, connectgate.Program{}, false
		}
		return c.hosts, who.Chain(c.number()), who.Program, true
	}
	s.proxy = proxy.Start(listener, rules, o.Dial, o.Resolve)
	s.env = append(append(s.env, s.proxy.Env()...), trust...)
	for _, secret := range p.Network.Secrets {
		if secret.Variable != "" {
			s.env = append(s.env, secret.Variable+"="+secret.Sentinel)
		}
	}
	if err := s.network(n, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if k != nil {
		k.LeadOutside(s.outside != nil)
	}
	if p.SSH != nil && k != nil { // once: nothing fails any more
		p.SSH.Serve(func(pid int, d sshagent.Destination, refused string) { s.loggedIn(n, k, pid, d, refused) })
	}
	return s, nil
}

// connectRules says which Unix sockets commands reach under a policy.
func connectRules(p Policy) connectgate.Config {
	c := connectgate.Config{Sockets: p.Sockets, Hidden: slices.Concat(p.Masked, p.Denied)}
	for _, d := range p.Private {
		c.Private = append(c.Private, d.Name)
	}
	return c
}

// connectBy notes which process makes the connections of commands, or why none does.
func (s *Sandbox) connectBy(k *connectgate.Connector, judged bool, cannot error) {
	if k != nil {
		s.sockets = k
	}
	switch {
	case judged:
		return
	case cannot == nil:
		cannot = errors.New("this program runs under a filter that has a listener already, as in some containers")
	}
	s.report.Why = append(s.report.Why, fmt.Sprintf("%s: commands have no Unix sockets but pairs, allowUnixSockets "+
		"included, for their connections cannot be judged: %v. Linux 5.9 or later is needed, with seccomp user "+
		"notification, pidfd_getfd, process_vm_readv and CONFIG_UNIX_DIAG.", s.report.Backend, cannot))
}

// namespaceReport is what a sandbox with namespaces holds.
func namespaceReport() Report {
	return Report{Backend: Namespaces,
		Enforces: enforcement{Writes: true, Denies: true, Network: true, Processes: true}}
}

// rootEnv helps programs that take user 0 for all-powerful: tar would try to
// give files to the owners in the archive.
func rootEnv() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"TAR_OPTIONS=--no-same-owner"}
}
