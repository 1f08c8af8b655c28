package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Times of a list that changes.
const (
	refetchAfter = 500 * time.Millisecond
	refetchEach  = 10 * time.Second
	settleTime   = 5 * time.Second // in which a server that is seen first may still add tools
)

// refetchSoon fetches the lists again, however often they change.
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
			s.u.g.cfg.Log.Warn("a server's changed list could not be fetched", "server", s.u.srv.Name, "error", err)
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

// settle waits for what a server adds after its start.
func (s *session) settle() {
	if t := s.capabilities.Tools; t == nil || !t.ListChanged {
		return
	}
	time.Sleep(refetchAfter)
	for limit := time.Now().Add(settleTime); time.Now().Before(limit); time.Sleep(refetchAfter / 5) {
		s.mu.Lock()
		done := s.refetch == nil && s.fetching == 0
		s.mu.Unlock()
		if done {
			return
		}
	}
}

// learn fetches what the server offers, and keeps it.
func (s *session) learn(ctx context.Context) error {
	found := offer{Era: s.era, Instructions: cleanText(s.instructions, maxDescription)}
	var err error
	if s.capabilities.Tools != nil {
		if found.Tools, err = s.list(ctx, "tools/list", "tools"); err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
	}
	if s.capabilities.Prompts != nil {
		found.Prompts, _ = s.list(ctx, "prompts/list", "prompts") // a server without prompts still has tools
	}
	if s.capabilities.Resources != nil {
		found.Readable = true
		var all listing
		all.Resources, _ = s.list(ctx, "resources/list", "resources")
		all.Templates, _ = s.list(ctx, "resources/templates/list", "resourceTemplates")
		if s.u.principal == localPrincipal {
			found.Own = &all
		} else {
			s.u.srv.keep(s.u.principal, &all)
		}
	}
	if isStopped(s.w) { // the lists that it may lack are not known
		return s.w.why()
	}
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
			return nil, fmt.Errorf("its answer to %s cannot be read: %w", method, err)
		}
		if err := json.Unmarshal(page[field], &elements); err != nil && page[field] != nil {
			return nil, fmt.Errorf("the %s in its answer to %s are not a list: %w", field, method, err)
		}
		all = append(all, elements...)
		if size += len(raw); size > maxListBytes || len(all) > maxListed {
			return nil, fmt.Errorf("its list of %s has more than %d elements or %d bytes", field, maxListed, maxListBytes)
		}
		was := cursor
		cursor = ""
		if json.Unmarshal(page["nextCursor"], &cursor); cursor == "" {
			return all, nil
		}
		if cursor == was {
			return nil, fmt.Errorf("its list of %s does not end: a page names itself as the next", field)
		}
	}
	return nil, fmt.Errorf("its list of %s has more than %d pages", field, maxPages)
}
