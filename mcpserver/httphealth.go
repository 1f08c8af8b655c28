package mcpserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// Paths that tell a supervisor how the server is, without a token and without detail.
const (
	// healthPath answers 200 as long as the process answers.
	healthPath = "/healthz"
	// readyPath answers 200 when calls can be served as they should, and 503 otherwise; see [Host.Ready].
	readyPath = "/readyz"
)

// healthy answers that the process is there.
func (d *door) healthy(w http.ResponseWriter, _ *http.Request) { tell(w, http.StatusOK, "ok\n") }

// ready answers whether calls should be sent here. Why not is in the log: whoever asks is a stranger.
func (d *door) ready(w http.ResponseWriter, _ *http.Request) {
	if d.running.closing() || d.server.host.Ready() != nil {
		tell(w, http.StatusServiceUnavailable, "not ready\n")
		return
	}
	tell(w, http.StatusOK, "ready\n")
}

func tell(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that is gone needs no answer
}

// Ready is nil when the settings can be parsed, calls can be recorded and the state can be written.
func (h *Host) Ready() error {
	if broken := h.settings.Reload().Broken; len(broken) > 0 {
		return fmt.Errorf("every call is refused: %w", errors.Join(broken...))
	}
	if err := h.ready(); err != nil {
		return err
	}
	if h.unkept != nil {
		return h.unkept
	}
	return h.stateProbe.check(h.cfg.StateDir)
}

// probeAge is how old an answer about the state may be, so that strangers who ask cause no load.
const probeAge = 2 * time.Second

// A stateProbe knows whether a directory could be written a moment ago.
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
