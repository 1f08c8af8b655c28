package builtin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
)

// A ServerSpec says how the process of another MCP server is started.
type ServerSpec struct {
	Key   string     // names the process; each key is used once
	Argv  []string   // a name without a slash is looked up in PATH of Env
	Dir   string     // absolute; "": a directory of its own
	Env   []string   // the whole environment, except HOME, TMPDIR and the like
	Files []*os.File // descriptors 0, 1 and 2; the caller closes them

	// Outside starts the process without a sandbox. The other fields are for a sandbox: see [sandboxpool.Cell].
	Outside   bool
	Domains   []string
	Reaches   func(host string) bool
	Workspace bool
	Shown     []string
	Masks     []ServerMask
	// Execs asks a person about further hosts. Refused is called with each host that was refused, and the program
	// that connected.
	Execs   Execs
	Refused func(host, program string)
	// AllowHost returns the command by which a person lets the server reach a host.
	AllowHost func(host string) string
}

// A ServerMask is a variable whose value a server does not get. It gets a sentinel, which is replaced by the value in
// requests to the hosts.
type ServerMask struct {
	Variable, Value string
	Hosts           []string
}

// A ServerProcess is the process of a server.
type ServerProcess struct {
	// Done is closed when the server itself has ended.
	Done <-chan struct{}
	// Kill must be called once: it ends the server, all that it started, and its sandbox, and returns when none is left.
	Kill func() error
	// Enter begins a call of the server: what it changes until leave is called is not a person's.
	Enter func() (leave func(), err error)
}

// StartServer starts the process of a server in a sandbox of its own, under rules whose scratch directory is the
// server's.
func StartServer(ctx context.Context, b *Runtime, policy *guard.Policy, s ServerSpec) (*ServerProcess, error) {
	scratch := policy.Commands().Scratch()
	if scratch == "" {
		return nil, errors.New("there is no directory for its files: the cache directory of the user ($XDG_CACHE_HOME, or " +
			"$HOME/.cache) must be writable")
	}
	home, temp := filepath.Join(scratch, "home"), filepath.Join(scratch, "tmp")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(temp, 0o700)); err != nil {
		return nil, err
	}
	if s.Dir == "" {
		s.Dir = home
	}
	s.Env = slices.Clone(s.Env)
	for _, own := range []string{"HOME=" + home, "TMPDIR=" + temp} {
		if name, _, _ := strings.Cut(own, "="); !hasVariable(s.Env, name) {
			s.Env = append(s.Env, own)
		}
	}
	if s.Outside {
		p, err := supervise.Start(supervise.Spec{Argv: s.Argv, Dir: s.Dir, Env: s.Env, Files: s.Files})
		if err != nil {
			return nil, err
		}
		kill := func() error { _, err := p.Kill(); return err }
		return &ServerProcess{Done: p.Done(), Kill: kill, Enter: noCall}, nil
	}
	if held := policy.Commands().Containment(); !held.Writes {
		return nil, fmt.Errorf("it must run in a sandbox, and none works here: %s. `\"sandbox\": false` in your own "+
			"configuration runs it without", held.Why)
	}
	return startInCell(ctx, b, policy, s)
}

func startInCell(ctx context.Context, b *Runtime, policy *guard.Policy, s ServerSpec) (*ServerProcess, error) {
	cell := &sandboxpool.Cell{Domains: s.Domains, Reaches: s.Reaches, Workspace: s.Workspace, Shown: s.Shown}
	for _, m := range s.Masks {
		if m.Value == "" {
			return nil, fmt.Errorf("its masked variable %s has no value: set it in the environment of the host",
				m.Variable)
		}
		cell.Secrets = append(cell.Secrets, sandboxpool.Masked(m.Variable, m.Value, m.Hosts))
	}
	c, err := b.sandboxes.AcquireCell(ctx, s.Key, policy, cell)
	if err != nil {
		return nil, fmt.Errorf("cannot start its sandbox: %w", err)
	}
	gate, hosts := newExecGate(s.Execs), connectgate.New()
	gate.leaves()
	hosts.Judge(func(ctx context.Context, c connectgate.Connection) (bool, string) {
		if c.Secret != "" {
			gate.used(c)
			return true, ""
		}
		allowed, why := gate.connect(ctx, c, "") // settings that allow a program apply to commands only
		if !allowed {
			s.Refused(net.JoinHostPort(c.Host, c.Port), Chain(c.Chain))
		}
		return allowed, why
	})
	leave := func() {
		hosts.Close()
		b.sandboxes.Discard(s.Key, c)
		b.sandboxes.Release(c)
	}
	p, err := c.SpawnServer(s.Argv, s.Dir, s.Env, s.Files, hosts)
	if err != nil {
		leave()
		return nil, err
	}
	kill := func() error {
		_, err := p.Kill()
		leave()
		return err
	}
	return &ServerProcess{Done: p.Done(), Kill: kill, Enter: c.Enter}, nil
}

// noCall is Enter of a server outside of the sandbox.
func noCall() (leave func(), err error) { return func() {}, nil }

func hasVariable(env []string, name string) bool {
	for _, entry := range env {
		if strings.HasPrefix(entry, name+"=") {
			return true
		}
	}
	return false
}
