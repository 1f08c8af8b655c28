package mcpserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
)

// listFresh is how long a client may use a list of tools, and what server/discover said, without asking again. An older list does no
// harm: each call is judged by the rules of its moment. A minute spares clients a request for every turn of a model, and is what a
// person who has changed the rules would wait for a client that does not listen for changes.
const listFresh = time.Minute

// enabled are the names of the tools that these rules leave on the list.
func (h *Host) enabled(rules *guard.Policy) (names []string) {
	for _, d := range h.tools {
		if ok, _ := rules.ToolEnabled(d.Name); ok && d.Enabled(h.box) {
			names = append(names, d.Name)
		}
	}
	return names
}

// noteList tells the listeners if the rules have changed the list of tools. The caller holds the lock.
func (h *Host) noteList(rules *guard.Policy) {
	now := h.enabled(rules)
	if slices.Equal(now, h.listed) {
		return
	}
	h.listed = now
	for _, tell := range h.listeners {
		go tell()
	}
}

// onList has tell called whenever a person's change of the rules has changed the list of tools.
func (h *Host) onList(tell func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, tell)
}

// followSettings looks at the settings when they change, and not only at the next request. That wakes the host for what others write
// near them, so it is done once a client listens.
func (h *Host) followSettings() {
	h.settings.Follow(func(now *settings.Settings) { h.policyOf(now, LocalPrincipal) })
}

// subscriptions are those of modern clients over stdio to changes of the list. The library knows its own sessions, which are legacy ones,
// and those over HTTP.
type subscriptions struct {
	mu   sync.Mutex
	tell map[*mcp.SubscriptionsListenRequest]func()
}

// subscribe is called before the library serves a subscription.
func (s *Server) subscribe(ctx context.Context, id any, req *mcp.SubscriptionsListenRequest) {
	c, ok := clientOf(ctx)
	if !ok || !req.Params.Notifications.ToolsListChanged {
		return
	}
	s.host.followSettings()
	session := server.ClientSessionFromContext(ctx)
	if c.Transport != "stdio" || session == nil {
		return
	}
	changed := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: mcp.MethodNotificationToolsListChanged, Params: mcp.NotificationParams{Meta: map[string]any{mcp.MetaKeySubscriptionID: id}},
	}}
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	s.subscriptions.tell[req] = func() {
		if ctx.Err() != nil { // the client has cancelled it
			return
		}
		select {
		case session.NotificationChannel() <- changed:
		default: // as many wait for the client already
		}
	}
}

// unsubscribe is called when a subscription has ended: it holds its answer until its beginning was written.
func (s *Server) unsubscribe(ctx context.Context, id any, req *mcp.SubscriptionsListenRequest, _ *mcp.SubscriptionsListenResult) {
	s.subscriptions.mu.Lock()
	delete(s.subscriptions.tell, req)
	s.subscriptions.mu.Unlock()
	if c, ok := clientOf(ctx); ok && c.Acknowledged != nil {
		c.Acknowledged(ctx, id)
	}
}

// listChanged tells every client that listens.
func (s *Server) listChanged() {
	s.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	for _, tell := range s.subscriptions.tell {
		tell()
	}
}
