package mcpserver

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Ready returns nil when the settings can be parsed, calls can be recorded and the state can be written.
func (h *Host) Ready() error {
	if broken := h.policies.settings.Reload().Broken; len(broken) > 0 {
		return fmt.Errorf("every call is refused: %w", errors.Join(broken...))
	}
	if h.stateDirErr != nil {
		return h.stateDirErr
	}
	if err := h.recorder.audit.Usable(); err != nil { // also the optional log, without which calls are not refused
		return fmt.Errorf("calls are not recorded: %w", err)
	}
	return h.stateProbe.check(h.cfg.StateDir)
}

// probeAge is how old an answer about the state may be, so that unauthenticated requests cause no load.
const probeAge = 2 * time.Second

// A stateProbe reports whether a directory can be written, or could a moment ago.
type stateProbe struct {
	mu   sync.Mutex
	last time.Time
	err  error
}

func (p *stateProbe) check(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && time.Since(p.last) < probeAge {
		return p.err
	}
	p.last = time.Now()
	f, err := os.CreateTemp(dir, ".ready-*")
	if err == nil {
		_, err = f.WriteString("ready")
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if p.err = nil; err != nil {
		p.err = fmt.Errorf("the state directory cannot be written: %w", err)
	}
	return p.err
}
