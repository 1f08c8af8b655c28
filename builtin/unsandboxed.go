package builtin

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// A hostShell runs commands without containment. It is started with the first such command; only if nothing contains
// commands is it started in advance, because prepared processes that are not used would be a waste.
type hostShell struct {
	mu      sync.Mutex
	runners map[string]*shell.Runner // by environment, which few sessions change
	closed  bool
}

// get returns a runner with the environment that a caller's rules give to commands.
func (h *hostShell) get(policy *guard.Policy) (*shell.Runner, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, shell.ErrClosed
	}
	base, set := shell.Inherited(policy.Commands().PassedVariables()), policy.Commands().Environment()
	execs := policy.Commands().JudgesExecs() && sandbox.ExecGateWorks(sandbox.None) == nil
	key := strings.Join(base, "\x00") + "\x00\x00" + strings.Join(set, "\x00") + "\x00\x00" + strconv.FormatBool(execs)
	if r := h.runners[key]; r != nil {
		return r, nil
	}
	r := shell.New(shell.Config{Env: base, Set: set, Execs: execs})
	if h.runners == nil {
		h.runners = map[string]*shell.Runner{}
	}
	h.runners[key] = r
	return r, nil
}

func (h *hostShell) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	var errs []error
	for _, r := range h.runners {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
