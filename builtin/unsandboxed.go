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

// A hostShell runs commands that nothing contains. It is started when there is such a command, or ahead of one where
// nothing contains any: what it keeps ready would be processes that are never used.
type hostShell struct {
	mu      sync.Mutex
	runners map[string]*shell.Runner // by the environment, which few sessions change
	closed  bool
}

// get returns what runs commands with the environment that a caller's rules give them.
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
	r, err := shell.New(shell.Config{Env: base, Set: set, Execs: execs})
	if err != nil {
		return nil, err
	}
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
