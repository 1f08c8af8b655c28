package sandboxpool

import (
	"context"
	"fmt"
	"net"
	"slices"
)

// Listens reports whether a command of the principal listens on a TCP port inside one of its sandboxes.
func (cs *Pool) Listens(principal string, port int) bool { return cs.listening(principal, port) != nil }

// Dial connects to a port that a command of the principal listens on inside one of its sandboxes. Ports of others are
// not reached.
func (cs *Pool) Dial(ctx context.Context, principal string, port int) (net.Conn, error) {
	c := cs.listening(principal, port)
	if c == nil {
		return nil, fmt.Errorf("no command listens on port %d", port)
	}
	return c.box.Dial(ctx, port)
}

// listening returns the sandbox of the principal in which a port is listened on: the one in use, or an earlier one in
// which a task still runs.
func (cs *Pool) listening(principal string, port int) *Sandbox {
	cs.mu.Lock()
	var mine []*Sandbox
	if c := cs.open[principal]; c != nil {
		mine = append(mine, c)
	}
	for c := range cs.retired {
		if c.key == principal {
			mine = append(mine, c)
		}
	}
	cs.mu.Unlock()
	for _, c := range mine {
		if ports, err := c.box.Listening(); err == nil && slices.Contains(ports, port) {
			return c
		}
	}
	return nil
}
