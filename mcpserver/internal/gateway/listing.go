package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// listing returns the resources that the server lists to a caller, or nil if they are not known. One caller does not
// see the list of another, unless the entry shares the server with all.
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

// keep stores what the server lists to a caller other than the local user. Above maxListings it drops other lists,
// which are fetched again when they are needed.
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

// lookFor fetches what the server lists to a caller. The returned channel is closed when that has ended.
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

// Times of lists that change.
const (
	refetchAfter = 500 * time.Millisecond
	refetchEach  = 10 * time.Second
	settleTime   = 5 * time.Second // how long a new server may add tools after its start
)

// refetchSoon fetches the lists again, at most once per refetchEach.
func (s *session) refetchSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refetch != nil {
		return
	}
	s.refetch = time.AfterFunc(max(refetchAfter, refetchEach-time.Since(s.last)), func() {
		s.mu.Lock()
		s.refetch, s.last = nil, time.Now()
		s.fetching++
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fetching--
		}()
		ctx, cancel := context.WithTimeout(s.u.g.ctx, connectTime)
		defer cancel()
		if err := s.learn(ctx); err != nil && !isStopped(s.w) {
			s.u.g.cfg.Log.Warn("cannot fetch the changed lists of a server", "server", s.u.srv.Name, "error", err)
		}
	})
}

// isStopped reports whether the connection has ended.
func isStopped(w wire) bool {
	select {
	case <-w.ended():
		return true
	default:
		return false
	}
}

// settle waits for the tools that a server adds after its start.
func (s *session) settle() {
	if t := s.capabilities.Tools; t == nil || !t.ListChanged {
		return
	}
	for limit, pause := time.Now().Add(settleTime), refetchAfter; time.Now().Before(limit); pause = refetchAfter / 5 {
		select {
		case <-time.After(pause):
		case <-s.w.ended():
			return
		case <-s.u.g.ctx.Done():
			return
		}
		s.mu.Lock()
		done := s.refetch == nil && s.fetching == 0
		s.mu.Unlock()
		if done {
			return
		}
	}
}

// learn fetches and stores what the server offers.
func (s *session) learn(ctx context.Context) error {
	found := offer{Era: s.era, Instructions: cleanText(s.instructions, maxDescription)}
	var err error
	if s.capabilities.Tools != nil {
		if found.Tools, err = s.list(ctx, "tools/list", "tools"); err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
	}
	if s.capabilities.Prompts != nil {
		found.Prompts, _ = s.list(ctx, "prompts/list", "prompts") // an error here must not hide the tools
	}
	if s.capabilities.Resources != nil {
		found.Readable = true
		var all listing
		all.Resources, _ = s.list(ctx, "resources/list", "resources")
		all.Templates, _ = s.list(ctx, "resources/templates/list", "resourceTemplates")
		if s.listsSkills() {
			all.Skills, _ = s.list(ctx, "skills/list", "skills")
		}
		if s.u.principal == localPrincipal {
			found.Own = &all
		} else {
			s.u.srv.keep(s.u.principal, &all)
		}
	}
	if isStopped(s.w) { // some lists may be missing
		return s.w.why()
	}
	if ctx.Err() == context.Canceled {
		return errStopped
	}
	served := found.served()
	s.mu.Lock()
	s.served = served
	s.mu.Unlock()
	s.u.srv.store.learned(s.u.srv.Entry, found, s.first && time.Since(s.began) < settleTime)
	s.u.g.rebuild(false)
	return nil
}

// list returns the elements of all pages of a list.
func (s *session) list(ctx context.Context, method, field string) (all []json.RawMessage, err error) {
	cursor, size := "", 0
	for range maxPages {
		var params map[string]any
		if cursor != "" {
			params = map[string]any{"cursor": cursor}
		}
		raw, err := s.request(ctx, method, params)
		if err != nil {
			return nil, err
		}
		var page map[string]json.RawMessage
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("cannot decode its answer to %s: %w", method, err)
		}
		if err := json.Unmarshal(page[field], &elements); err != nil && page[field] != nil {
			return nil, fmt.Errorf("the %s in its answer to %s are not a list: %w", field, method, err)
		}
		all = append(all, elements...)
		if size += len(raw); size > maxListBytes || len(all) > maxListed {
			return nil, fmt.Errorf("its list of %s has more than %d elements or %d bytes", field, maxListed,
				maxListBytes)
		}
		was := cursor
		cursor = ""
		if json.Unmarshal(page["nextCursor"], &cursor); cursor == "" {
			return all, nil
		}
		if cursor == was {
			return nil, fmt.Errorf("its list of %s does not end: the next cursor of a page is the cursor of that page",
				field)
		}
	}
	return nil, fmt.Errorf("its list of %s has more than %d pages", field, maxPages)
}
