package builtin

import (
	"sync"

	"toolhost/builtin/internal/shell"
)

// A hostShell runs commands that nothing contains. It is started when there is such a command, or ahead of one where
// nothing contains any: what it keeps ready would else be some processes that nobody needs.
type hostShell struct {
	mu     sync.Mutex
	runner *shell.Runner
	closed bool
}

func (h *hostShell) get() (*shell.Runner, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, shell.ErrClosed
	}
	var err error
	if h.runner == nil {
		h.runner, err = shell.New(shell.Config{})
	}
	return h.runner, err
}

func (h *hostShell) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.runner == nil {
		return nil
	}
	return h.runner.Close()
}

// work is what must end before something closes, and must not begin after.
type work struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// begin counts a piece of work, unless it is too late for one.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.group.Add(1)
	return true
}

func (w *work) end() { w.group.Done() }

func (w *work) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.group.Wait()
}
