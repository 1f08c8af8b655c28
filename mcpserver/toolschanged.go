package mcpserver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// listFresh is how long a client may cache the list of tools and the answer to server/discover. A stale list does no
// harm: each call is judged by the current rules. One minute saves clients a request in every turn of a model. After a
// person changes the rules, a client that does not listen for changes sees the old list for at most that long.
const listFresh = time.Minute

// A subscriptions holds the subscriptions of modern clients over stdio to changes of the list. The library knows only
// the sessions of legacy clients and those over HTTP.
type subscriptions struct {
	mu   sync.Mutex
	tell map[*mcp.SubscriptionsListenRequest]func(method string)
}

// subscribe is called before the library serves a subscription.
func (s *Server) subscribe(ctx context.Context, id any, req *mcp.SubscriptionsListenRequest) {
	session := server.ClientSessionFromContext(ctx)
	if transport.PeerOf(ctx).Transport != transport.Stdio || session == nil { // the library tells it
		s.follow(req)
		return
	}
	s.subscribeTo(req, func(method string) {
		if ctx.Err() != nil { // the client has cancelled it
			return
		}
		changed := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
			Method: method, Params: mcp.NotificationParams{Meta: map[string]any{mcp.MetaKeySubscriptionID: id}},
		}}
		select {
		case session.NotificationChannel() <- changed:
		default: // the channel is full: the client will reload anyway
		}
	})
}

// subscribeTo calls tell with the changes that a subscription is about, until end is called.
func (s *Server) subscribeTo(req *mcp.SubscriptionsListenRequest, tell func(method string)) (end func()) {
	wanted := s.follow(req)
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	s.subscriptions.tell[req] = func(method string) {
		if wanted[method] {
			tell(method)
		}
	}
	return func() {
		s.subscriptions.mu.Lock()
		defer s.subscriptions.mu.Unlock()
		delete(s.subscriptions.tell, req)
	}
}

// follow follows the settings for a subscription to lists. It returns the notifications that it is about.
func (s *Server) follow(req *mcp.SubscriptionsListenRequest) (wanted map[string]bool) {
	wanted = map[string]bool{
		mcp.MethodNotificationToolsListChanged:     req.Params.Notifications.ToolsListChanged,
		mcp.MethodNotificationPromptsListChanged:   req.Params.Notifications.PromptsListChanged,
		mcp.MethodNotificationResourcesListChanged: req.Params.Notifications.ResourcesListChanged,
	}
	if slices.Contains(slices.Collect(maps.Values(wanted)), true) {
		s.host.policies.follow()
	}
	return wanted
}

// unsubscribe is called when a subscription has ended. It delays the answer until the start of the subscription has
// been written.
func (s *Server) unsubscribe(ctx context.Context, id any, req *mcp.SubscriptionsListenRequest,
	_ *mcp.SubscriptionsListenResult) {
	s.subscriptions.mu.Lock()
	delete(s.subscriptions.tell, req)
	s.subscriptions.mu.Unlock()
	if peer := transport.PeerOf(ctx); peer.Acknowledged != nil {
		peer.Acknowledged(ctx, id)
	}
}

// listChanged notifies every listening client of a changed list.
func (s *Server) listChanged(method string) {
	s.mcp.SendNotificationToAllClients(method, nil)
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	for _, tell := range s.subscriptions.tell {
		tell(method)
	}
}

// How long the lists of other servers must be quiet before clients are notified of a change, and the longest delay:
// each list that a client fetches again costs its model the prompt cache.
const (
	tellQuiet = time.Second
	tellMost  = 5 * time.Second
)

// A lull waits for the end of a series of changes. It must be stopped.
type lull struct {
	mu      sync.Mutex
	timer   *time.Timer
	since   time.Time
	stopped bool
}

// then calls f after the last of a series of changes, to which this one belongs.
func (l *lull) then(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
	case l.timer != nil:
		l.timer.Reset(min(tellQuiet, time.Until(l.since.Add(tellMost))))
	default:
		l.since = time.Now()
		l.timer = time.AfterFunc(tellQuiet, func() {
			l.mu.Lock()
			l.timer = nil
			stopped := l.stopped
			l.mu.Unlock()
			if !stopped {
				f()
			}
		})
	}
}

func (l *lull) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}
