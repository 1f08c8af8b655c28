package sandbox

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// Options says how to start a sandbox.
type Options struct {
	// Backends are tried in this order; empty means every one, best first.
	Backends []Backend
	// Ahead takes the process that [Options.Prepare] started, if there is one.
	Ahead bool
	// Dial opens the proxy's connections to allowed hosts, after the address
	// has been judged; nil is a net.Dialer. Tests replace it.
	Dial proxy.DialFunc
	// Resolve looks up allowed hosts; nil is net.DefaultResolver.
	Resolve proxy.ResolveFunc
	// Writes, unless it is nil, is told of changes. The sandbox is not started where it cannot be, see
	// [WriteGateWorks].
	Writes *WriteGate
	// Roots verify hosts that get secrets; nil: those of the system.
	Roots *x509.CertPool
}

// A Spec describes one command.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked
	// up in the PATH of Env, inside the sandbox.
	Argv []string
	// Dir is the working directory; empty is the root.
	Dir string
	// Env is the whole environment; see also Sandbox.Env.
	Env []string
	// Files become descriptors 0, 1, 2, … of the command; nil ones are
	// /dev/null. Spawn makes them block. They remain the caller's to close. The command can do with a
	// descriptor what its open mode allows, whatever the policy says about the
	// file, so pass pipes.
	Files []*os.File
	// Terminal, unless it is nil, is the controlling terminal of the command, and those of its first three Files that
	// are nil. It can be given to one command.
	Terminal *Terminal
	// Execs judges the programs that the command and its descendants start; nil: none is
	// judged. With [Namespaces] the sandbox must have [Policy].Execs.
	Execs *execgate.Gate
	// Hosts judges the connections of the command and its descendants to hosts that no list of [Network] names; nil:
	// they are refused. The caller closes it once the command is over.
	Hosts *connectgate.Gate
}

// Status is how a command ended.
type Status struct {
	// ExitCode is as the shell counts: 128 + the signal's number after a signal.
	ExitCode int
	// Signal is the name of the signal that ended the command ("SIGKILL"), or "".
	Signal string
}

// A Process is a command that was started, and everything that descends from it.
type Process interface {
	// Done is closed when the command itself has ended, even if descendants are still running.
	Done() <-chan struct{}
	// Wait waits for the command itself, not for its remaining descendants. An error means that the end is unknown,
	// because the sandbox has died.
	Wait() (Status, error)
	// Signal sends sig to the command's process group. It is no error if nothing
	// is left to receive it.
	Signal(sig os.Signal) error
	// Kill ends the command and all its descendants, daemons included, and returns when none is left, with the number of
	// processes it ended. Call it for every command once it is over: until then its descendants continue to run.
	Kill() (ended int, err error)
	// TryFinish ends a command that has announced its end, if the command has no descendants. It reports whether the
	// command has ended without descendants; Kill need not be called then. If it reports false, the caller must call
	// Kill, although the command itself may have ended. files is the number of descriptors that the command had open,
	// or 0 if it is unknown.
	TryFinish() (files int, ok bool)
}

// engine is the part of a Sandbox that a backend implements.
type engine interface {
	spawn(Spec) (Process, error)
	deny(paths []string) error
	// hold is for backends whose view of files is made before the command.
	hold(paths []string) error
	// show mounts more entries of the host in a private directory, of which d lists all.
	show(d Private, fresh []string) error
	// refresh makes changes of the host visible in overlays.
	refresh() error
	// try does from inside what the policy of a probe forbids.
	try(contract.Canary) (contract.Attempt, error)
	close() error
}

// socketJudge decides which Unix sockets commands reach.
type socketJudge interface {
	Refusals() []proxy.Refusal
	Close() error
}

// A Sandbox contains commands. Its methods may be called from several
// goroutines.
type Sandbox struct {
	report  Report
	guarded []Guarded
	engine  engine
	proxy   *proxy.Proxy
	outside func() // ends the network of commands; or nil
	hosts   connectgate.Gates
	// connecting returns the gate of the command that has a connection, the programs down to the one that made it, and
	// that program. It reports false if none is found. Nil: connections are not told apart.
	connecting func(from, to netip.AddrPort) (gate *connectgate.Gate, chain []string, program connectgate.Program, ok bool)
	sockets    socketJudge // or nil
	env        []string
	noOverlay  error
	cached     []string // see [Sandbox.Cached]
	once       sync.Once
	err        error

	portRecords string // see [Network.PortRecords]
	ports       portNotes
	forwarded   sync.Map // ports, see [Sandbox.Forward]
}

// Start starts a sandbox with the best backend that works here, see Report.
// ctx limits the start only. The error matches ErrUnavailable when no backend
// works, and something else when the policy itself is at fault.
func Start(ctx context.Context, p Policy, o Options) (*Sandbox, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	backends := o.Backends
	if len(backends) == 0 {
		backends = platformBackends
	}
	var none noBackendError
	held := unheld(p) // before a command can run
	for _, b := range backends {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("sandbox: start: %w", context.Cause(ctx))
		}
		s, err := start(ctx, b, p.without(b), o)
		var cannot *unavailableError
		switch {
		case err == nil:
			s.report.Why, s.report.Remedy = append(none.Why, s.report.Why...), cmp.Or(none.Remedy, s.report.Remedy)
			s.guarded, s.portRecords = held, p.Network.PortRecords
			if p.Overlay > 0 && b != Namespaces {
				s.noOverlay = fmt.Errorf("%s has no overlays", b)
			}
			return s, nil
		case errors.As(err, &cannot):
			none.add([]string{cannot.Error()}, cannot.remedy)
			remember(Report{})
		default:
			return nil, err
		}
	}
	if len(none.Why) == 0 {
		none.Report = platformReport()
	}
	return nil, &none
}

// noBackendError is ErrUnavailable with the reasons.
type noBackendError struct{ Report }

// add notes why a backend does not work. The remedy for the best one counts.
func (e *noBackendError) add(why []string, remedy string) {
	e.Why, e.Remedy = append(e.Why, why...), cmp.Or(e.Remedy, remedy)
}

func (e *noBackendError) Error() string { return ErrUnavailable.Error() + ". " + e.Text() }

func (e *noBackendError) Is(target error) bool { return target == ErrUnavailable }

// unavailableError says why one backend does not work on this machine, as
// opposed to a policy that no backend could follow.
type unavailableError struct {
	backend Backend
	cause   string
	remedy  string // what a person can do; "" if nothing is known
}

func (e *unavailableError) Error() string {
	return fmt.Sprintf("%s: %s.", e.backend, strings.TrimSuffix(e.cause, "."))
}

// Spawn starts a command.
func (s *Sandbox) Spawn(spec Spec) (Process, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, errors.New("sandbox: no command given")
	}
	for _, list := range [][]string{spec.Argv, spec.Env, {spec.Dir}} {
		if slices.ContainsFunc(list, func(s string) bool { return strings.ContainsRune(s, 0) }) {
			return nil, errors.New("sandbox: the command contains a NUL byte, which no program can receive")
		}
	}
	if spec.Execs != nil {
		if err := ExecGateWorks(s.report.Backend); err != nil {
			return nil, err
		}
	}
	if spec.Terminal != nil && s.report.Backend != Namespaces {
		return nil, fmt.Errorf("sandbox: %s has no terminals", s.report.Backend)
	}
	if spec.Hosts != nil {
		s.hosts.Add(spec.Hosts)
	}
	return s.engine.spawn(spec)
}

// Deny covers files and directories that have appeared, or were replaced, since
// the start. Commands started after it returns cannot read them. A path that
// does not exist is skipped; an error means that a path may still be readable,
// and no further command should be started.
func (s *Sandbox) Deny(paths ...string) error {
	for _, p := range paths {
		if err := validatePath(p); err != nil {
			return fmt.Errorf("sandbox: denied path %q: %w", p, err)
		}
	}
	return s.engine.deny(paths)
}

// Hold keeps files and directories of Policy.ReadOnly as they are that were replaced
// since the start: a mount is on the file that had the name then. Commands that run
// cannot write them either, unless they have opened them already. A path that does
// not exist is skipped; an error means that a path may still be written, and no
// further command should be started.
func (s *Sandbox) Hold(paths ...string) error {
	for _, p := range paths {
		if err := validatePath(p); err != nil {
			return fmt.Errorf("sandbox: read-only path %q: %w", p, err)
		}
	}
	return s.engine.hold(paths)
}

// Show lets commands see entries of the host's directory that have appeared since the start, or were replaced, in the
// private one. Each of them has an empty mount point there; d is the directory with all that commands see. One that
// has been removed again is skipped. What is not to be seen any more ends with its mount point.
func (s *Sandbox) Show(d Private, fresh ...string) error {
	if err := (Policy{Private: []Private{d}}).validate(); err != nil {
		return err
	}
	return s.engine.show(d, fresh)
}

// Refresh lets commands see what other programs have changed in directories that are overlays.
func (s *Sandbox) Refresh() error { return s.engine.refresh() }

// NoOverlay returns why some of Policy.Writable is read-only although there is a Policy.Overlay, or nil.
func (s *Sandbox) NoOverlay() error { return s.noOverlay }

// Cached returns the directories of [Policy.Caches], without symbolic links, whose overlay is mounted.
func (s *Sandbox) Cached() []string { return s.cached }

// Env returns the additional variables of a command's environment, as
// "name=value": where the proxy is, for one.
func (s *Sandbox) Env() []string { return slices.Clone(s.env) }

// Refused returns the hosts that commands asked the proxy for and did not get, since the
// last call, and the Unix sockets, whose Host is a path.
func (s *Sandbox) Refused() []proxy.Refusal {
	var list []proxy.Refusal
	if s.proxy != nil {
		list = s.proxy.Refused()
	}
	if s.sockets != nil {
		list = append(list, s.sockets.Refusals()...)
	}
	return list
}

// Report returns what this sandbox enforces.
func (s *Sandbox) Report() Report {
	r := s.report
	r.Why = slices.Clone(r.Why)
	return r
}

// Close ends every process in the sandbox, and the sandbox.
func (s *Sandbox) Close() error {
	s.once.Do(func() {
		s.err = s.engine.close()
		if s.proxy != nil {
			s.proxy.Close()
		}
		if s.outside != nil {
			s.outside()
		}
		if s.sockets != nil {
			s.sockets.Close()
		}
	})
	return s.err
}
