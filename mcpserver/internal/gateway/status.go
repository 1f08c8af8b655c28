package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The states of a server.
const (
	StateRefused    = "refused"    // cannot be used; Reason says why
	StateConfigured = "configured" // nothing is known yet
	StateKnown      = "known"      // the tools are listed, but the server does not run
	StateStarting   = "starting"   // it does not become ready; Reason says what it writes
	StateRunning    = "running"
	StateConnected  = "connected" // [Gateway.TryAll] could connect
	StateFailed     = "failed"    // the last connection failed; the next call tries again
	StateParked     = "parked"    // died too often; waits for a restart
)

// A Status is the state of a server.
type Status struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	File   string `json:"file"`
	Trust  string `json:"trust"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Era    string `json:"era,omitempty"`
	Login  string `json:"login,omitempty"` // of the local user: "logged in", "login expired", or "" for none
	// Tools is the number of offered tools. Withheld are the names of withheld definitions, see [Change].
	Tools    int       `json:"tools"`
	Withheld []string  `json:"withheld,omitempty"`
	Problems []string  `json:"problems,omitempty"`
	Running  int       `json:"running"` // connections
	Since    time.Time `json:"since,omitzero"`
	Purpose  string    `json:"purpose,omitempty"` // the first line of its instructions
}

// Servers returns the states of all servers, ordered by name.
func (g *Gateway) Servers() []Status {
	running := map[*server]int{}
	g.mu.Lock()
	for _, u := range g.live {
		if u.isLive() {
			running[u.srv]++
		}
	}
	g.mu.Unlock()
	var all []Status
	for _, s := range g.sorted() {
		all = append(all, s.status(running[s]))
	}
	return all
}

func (s *server) status(running int) Status {
	out := Status{Name: s.Name, Type: s.Type, File: s.File, Trust: s.Trust.String(), Running: running,
		State: StateConfigured}
	list := s.tools()
	out.Tools, out.Problems = len(list.served), s.problems(list)
	r := s.store.get()
	if r.Offer != nil {
		out.State, out.Era, out.Since = StateKnown, r.Offer.Era, r.Offer.Since
	}
	if s.pins() {
		for name := range r.Withheld {
			out.Withheld = append(out.Withheld, name)
			if strings.HasPrefix(name, "tool ") {
				out.Tools--
			}
		}
		slices.Sort(out.Withheld)
	}
	if r.Offer != nil {
		if held, _ := s.withheld(instructionsID, fingerprint(marshal(r.Offer.Instructions))); !held {
			out.Purpose, _, _ = strings.Cut(r.Offer.Instructions, "\n")
		}
	}
	out.Problems = append(out.Problems, s.hostNotes(0)...)
	out.Login = s.loginState()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.Refused != "":
		out.State, out.Reason = StateRefused, s.Refused
	case s.parked():
		out.State, out.Reason = StateParked, s.reason
	case s.starting != "":
		out.State, out.Reason = StateStarting, s.starting
	case running > 0:
		out.State = StateRunning
	case s.reason != "":
		out.State, out.Reason = StateFailed, s.reason
	}
	return out
}

// RefusedHosts returns the hosts, with their ports, that were refused to the processes of a server.
func (g *Gateway) RefusedHosts(name string) (hosts []string) {
	if s, err := g.server(name); err == nil {
		for _, h := range s.refused.since(0) {
			hosts = append(hosts, h.host)
		}
	}
	return hosts
}

// Try connects to a server, also to one that has just failed, and returns why it cannot. The server is stopped again.
func (g *Gateway) Try(ctx context.Context, name string) error {
	s, err := g.server(name)
	if err != nil {
		return err
	}
	if s.Refused != "" {
		return errors.New(s.Refused)
	}
	s.forgive()
	return g.try(ctx, &upstream{g: g, srv: s, principal: localPrincipal}, func() {})
}

// tryTime is how long [Gateway.TryAll] waits for servers.
const tryTime = 10 * time.Second

// TryAll connects to all servers at once, and returns their states: connected, or why not.
func (g *Gateway) TryAll(ctx context.Context) []Status {
	g.report()
	ctx, cancel := context.WithTimeoutCause(ctx, tryTime, fmt.Errorf("it is not ready after %s", tryTime))
	defer cancel()
	var tries sync.WaitGroup
	var mu sync.Mutex
	failed := map[string]error{}
	for _, s := range g.sorted() {
		tries.Go(func() {
			err := g.Try(ctx, s.Name)
			mu.Lock()
			defer mu.Unlock()
			failed[s.Name] = err
		})
	}
	tries.Wait()
	all := g.Servers()
	for i := range all {
		switch err := failed[all[i].Name]; {
		case err == nil:
			all[i].State, all[i].Reason = StateConnected, ""
		case all[i].State != StateRefused && all[i].State != StateParked:
			all[i].State, all[i].Reason = StateFailed, err.Error()
		}
	}
	return all
}

// Restart stops a server, resets its failures, and starts it again to list what it offers.
func (g *Gateway) Restart(name string) error {
	s, err := g.server(name)
	if err != nil {
		return err
	}
	s.forgive()
	g.mu.Lock()
	var mine []*upstream
	for _, u := range g.live {
		if u.srv == s {
			mine = append(mine, u)
		}
	}
	g.mu.Unlock()
	stopAll(mine)
	g.look(s, localPrincipal)
	return nil
}

// note logs problems with the tools of a server, each once.
func (s *server) note(problems []string, g *Gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range problems {
		if !slices.Contains(s.noted, p) {
			s.noted = append(s.noted, p)
			g.cfg.Log.Warn(p, "server", s.Name)
		}
	}
}

// failures are the recent failures of connections to a server.
type failures struct {
	reason   string      // of the last one
	starting string      // why a start takes long
	deaths   []time.Time // within deathsWithin
	retryAt  time.Time
	wait     time.Duration
}

// forgive resets the failures, so that the server may be started again.
func (s *server) forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = failures{}
}

// restarted returns the time of the last `toolhost mcp restart`, and resets the failures before it.
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

// mayStart returns an error if the server must not be started now.
func (s *server) mayStart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parked() {
		return fmt.Errorf("it has ended %d times within %s and is not started any more: see `toolhost mcp list`, then "+
			"`toolhost mcp restart %s`. It ended because %s", deathsToPark, deathsWithin, s.Name, s.reason)
	}
	if wait := time.Until(s.retryAt); wait > 0 {
		return fmt.Errorf("the next attempt is in %s; the last one failed: %s",
			max(wait.Round(time.Second), time.Second), s.reason)
	}
	return nil
}

// parked reports whether the server has died too often. The caller holds the lock.
func (s *server) parked() bool {
	s.deaths = slices.DeleteFunc(s.deaths, func(t time.Time) bool { return time.Since(t) > deathsWithin })
	return len(s.deaths) >= deathsToPark
}

// slow records why a start takes long. It is "" for one that has ended.
func (s *server) slow(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = why
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

// died records the death of a connected server. The next call starts it again.
func (s *server) died(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = why.Error()
	s.deaths = append(s.deaths, time.Now())
}
