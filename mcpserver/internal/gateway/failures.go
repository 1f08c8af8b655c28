package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// failures are why, and how often, connections to a server failed of late. The zero failures are none.
type failures struct {
	reason  string      // of the last one
	deaths  []time.Time // of late
	retryAt time.Time
	wait    time.Duration
}

// forgive forgets why the server was not started any more.
func (s *server) forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = failures{}
}

// restarted returns when a person last asked for a restart, which ends the reasons for not starting the server.
func (s *server) restarted() time.Time {
	if s.store.file == "" {
		return time.Time{}
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(s.store.file), s.Name+".restart"))
	if err != nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.Before(info.ModTime()) {
		s.failures, s.since = failures{}, info.ModTime()
	}
	return info.ModTime()
}

// mayStart says why the server is not started now.
func (s *server) mayStart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parked() {
		return fmt.Errorf("it has ended %d times within %s and is not started any more: see `toolhost mcp list`, then `toolhost mcp restart %s`. It ended because %s", deathsToPark, deathsWithin, s.Name, s.reason)
	}
	if wait := time.Until(s.retryAt); wait > 0 {
		return fmt.Errorf("it is tried again in %s; the last time it failed: %s", max(wait.Round(time.Second), time.Second), s.reason)
	}
	return nil
}

// parked reports whether the server has ended too often. The caller holds the lock.
func (s *server) parked() bool {
	s.deaths = slices.DeleteFunc(s.deaths, func(t time.Time) bool { return time.Since(t) > deathsWithin })
	return len(s.deaths) >= deathsToPark
}

func (s *server) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = err.Error()
	s.wait = min(max(2*s.wait, backoffFirst), backoffMost)
	s.retryAt = time.Now().Add(s.wait)
	if isDeath(err) {
		s.deaths = append(s.deaths, time.Now())
	}
}

func (s *server) connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = failures{deaths: s.deaths}
}

// died notes the end of a server that was connected. It is started again by the next call.
func (s *server) died(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = why.Error()
	s.deaths = append(s.deaths, time.Now())
}
