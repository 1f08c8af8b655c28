package gateway

import (
	"slices"
	"strings"
	"time"
)

// The states of a server.
const (
	StateRefused    = "refused"    // it cannot be used; Reason says why
	StateConfigured = "configured" // nothing is known of it yet
	StateKnown      = "known"      // its tools are listed, and none of it runs
	StateRunning    = "running"
	StateFailed     = "failed" // the last connection failed, and the next call tries again
	StateParked     = "parked" // it has ended too often, and waits for a restart
)

// A Status tells how a server is.
type Status struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	File   string `json:"file"`
	Trust  string `json:"trust"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Era    string `json:"era,omitempty"`
	Login  string `json:"login,omitempty"` // "logged in", or "login expired"; "": the local user has none
	// Tools is how many tools are served, and Withheld names what is not: see [Change].
	Tools    int       `json:"tools"`
	Withheld []string  `json:"withheld,omitempty"`
	Problems []string  `json:"problems,omitempty"`
	Running  int       `json:"running"` // connections
	Since    time.Time `json:"since,omitzero"`
	Purpose  string    `json:"purpose,omitempty"` // the first line of its instructions
}

// Servers tells how all servers are, ordered by name.
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
	out := Status{Name: s.Name, Type: s.Type, File: s.File, Trust: s.Trust.String(), Running: running, State: StateConfigured}
	tools, problems := s.tools()
	out.Tools, out.Problems = len(tools), problems
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
	if held, _ := s.withheld("instructions"); r.Offer != nil && !held {
		out.Purpose, _, _ = strings.Cut(r.Offer.Instructions, "\n")
	}
	out.Login = s.loginState()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.Refused != "":
		out.State, out.Reason = StateRefused, s.Refused
	case s.parked():
		out.State, out.Reason = StateParked, s.reason
	case running > 0:
		out.State = StateRunning
	case s.reason != "":
		out.State, out.Reason = StateFailed, s.reason
	}
	return out
}

// Restart stops a server, forgets why it was not started any more, and looks at what it offers now.
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
	for _, u := range mine {
		u.stop()
	}
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
