package gateway

import (
	"maps"
	"slices"
)

// The list that a server returns to one caller is shown to that caller alone, unless the owner lets all callers share it.

// listing returns the list of the server for a caller, or nil if it is not known.
func (s *server) listing(principal string) *listing {
	if principal == localPrincipal || s.sharing() == "host" {
		if r := s.store.get(); r.Offer != nil {
			return r.Offer.Own
		}
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[principal]
}

// keep remembers what the server lists to a caller other than the local user. The list of another is forgotten for it if there are many;
// it is looked at again.
func (s *server) keep(principal string, all *listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists == nil {
		s.lists = map[string]*listing{}
	}
	for other := range s.lists {
		if len(s.lists) < maxListings {
			break
		}
		delete(s.lists, other)
	}
	s.lists[principal] = all
}

// listed returns the callers whose lists are known, in order.
func (g *Gateway) listed() []string {
	all := map[string]bool{localPrincipal: true}
	for _, s := range g.sorted() {
		s.mu.Lock()
		for principal := range s.lists {
			all[principal] = true
		}
		s.mu.Unlock()
	}
	return slices.Sorted(maps.Keys(all))
}

// lookFor looks at what the server lists to a caller, and returns what is closed when that has ended.
func (g *Gateway) lookFor(s *server, principal string) <-chan struct{} {
	if s.sharing() == "host" {
		principal = localPrincipal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.looking[principal]; done != nil {
		return done
	}
	if s.looking == nil {
		s.looking = map[string]chan struct{}{}
	}
	done := make(chan struct{})
	s.looking[principal] = done
	g.work.Go(func() {
		g.look(s, principal)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.looking, principal)
		close(done)
	})
	return done
}
