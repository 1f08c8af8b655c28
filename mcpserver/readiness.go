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
	if err := h.recorder.audit.Usable(); err != nil { // also the optional log, whose failure does not refuse calls
		return fmt.Errorf("calls are not recorded: %w", err)
	}
	return h.stateProbe.get(probeAge, func() error { return probe(h.cfg.StateDir) })
}

// probeAge is how long a result about the state directory is reused, so that unauthenticated requests
// cause no load.
const probeAge = 2 * time.Second

// probe returns an error if a directory cannot be written.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, ".ready-*")
	if err == nil {
		_, err = f.WriteString("ready")
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("cannot write the state directory: %w", err)
	}
	return nil
}

// A recent caches a value that is slow to compute.
type recent[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
}

// get returns the value, and computes it again if it is older than maxAge.
func (r *recent[T]) get(maxAge time.Duration, compute func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.at.IsZero() || now.Sub(r.at) >= maxAge {
		r.at, r.value = now, compute()
	}
	return r.value
}
