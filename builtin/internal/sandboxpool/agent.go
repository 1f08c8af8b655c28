package sandboxpool

import (
	"context"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// An Agent defines how the sandbox of an agent differs from that of commands.
type Agent struct {
	// Execs has each program that is started judged.
	Execs bool
	// Sockets are Unix sockets of the host that may be connected to.
	Sockets []string
	// Layers are directories of the host, without symbolic links, and the private ones in their places, which persist.
	// The program sees entries of the host, read-only, if the layer has none of that name.
	Layers map[string]string
	// Seed are paths of the host in those directories that are copied into a layer without an entry of that name, or
	// with an older file.
	Seed []string
}

// OpenAgent returns a sandbox for one program, which commands do not share, and the variables that point into it.
// [Pool.Release] ends it.
func (cs *Pool) OpenAgent(ctx context.Context, policy *guard.Policy, agent Agent) (c *Sandbox, box *sandbox.Sandbox,
	env []string, err error) {
	cs.mu.Lock()
	if cs.closed {
		cs.mu.Unlock()
		return nil, nil, nil, shell.ErrClosed
	}
	s := cs.begin("", policy)
	cs.mu.Unlock()
	if c, err = cs.run(ctx, s, kind{agent: &agent}); err != nil {
		return nil, nil, nil, err
	}
	return c, c.box, append(c.box.Env(), c.scratch...), nil
}
