package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// listFresh is how long a client may cache the list of tools and the answer to server/discover. A stale list does no harm: each call is
// judged by the current rules. A minute spares clients a request for every turn of a model. A person who changes the rules waits at most
// that long for a client that does not listen for changes.
const listFresh = time.Minute

// A subscriptions holds the subscriptions of modern clients over stdio to changes of the list. The library knows its own sessions, which
// are legacy ones, and those over HTTP.
type subscriptions struct {
	mu   sync.Mutex
	tell map[*mcp.SubscriptionsListenRequest]func()
}

// subscribe is called before the library serves a subscription.
func (s *Server) subscribe(ctx context.Context, id any, req *mcp.SubscriptionsListenRequest) {
	if !req.Params.Notifications.ToolsListChanged {
		return
	}
	s.host.policies.follow()
	session := server.ClientSessionFromContext(ctx)
	if transport.PeerOf(ctx).Transport != transport.Stdio || session == nil {
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
		default: // the channel is full: the client will reload anyway
		}
	}
}

// unsubscribe is called when a subscription has ended: it holds its answer until its beginning was written.
func (s *Server) unsubscribe(ctx context.Context, id any, req *mcp.SubscriptionsListenRequest, _ *mcp.SubscriptionsListenResult) {
	s.subscriptions.mu.Lock()
	delete(s.subscriptions.tell, req)
	s.subscriptions.mu.Unlock()
	if peer := transport.PeerOf(ctx); peer.Acknowledged != nil {
		peer.Acknowledged(ctx, id)
	}
}

// listChanged notifies every client that listens.
func (s *Server) listChanged() {
	s.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	for _, tell := range s.subscriptions.tell {
		tell()
	}
}
