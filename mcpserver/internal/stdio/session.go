package stdio

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

var (
	_ server.SessionWithElicitation        = (*session)(nil)
	_ server.SessionWithSubscriptionFilter = (*session)(nil)
)

// A session implements the interfaces of the library for the stdio client.
type session struct {
	id            string
	send          func(message any)
	notifications chan mcp.JSONRPCNotification
	initialized   atomic.Bool
	info          atomic.Pointer[mcp.Implementation]
	capabilities  atomic.Pointer[mcp.ClientCapabilities]
	version       atomic.Pointer[string]

	mu    sync.Mutex
	asked map[string]chan jsonrpc.Envelope // requests of the server that wait for a response, by the JSON of their id
	acks  map[any]chan struct{}            // closed when the acknowledgement of the subscription with this id was written
}

// sessions is the number of sessions so far: a host may have several clients over sockets.
var sessions atomic.Uint64

func newSession() *session {
	const queued = 16 // the library rarely broadcasts: only when the list of tools changes
	return &session{id: "stdio-" + strconv.FormatUint(sessions.Add(1), 10),
		notifications: make(chan mcp.JSONRPCNotification,
			queued), asked: map[string]chan jsonrpc.Envelope{}, acks: map[any]chan struct{}{}}
}

func (s *session) SessionID() string { return s.id }
func (s *session) Initialize()       { s.initialized.Store(true) }
func (s *session) Initialized() bool { return s.initialized.Load() }
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification {
	return s.notifications
}

func (s *session) SetClientInfo(i mcp.Implementation)             { s.info.Store(&i) }
func (s *session) SetClientCapabilities(c mcp.ClientCapabilities) { s.capabilities.Store(&c) }
func (s *session) SetProtocolVersion(v string)                    { s.version.Store(&v) }
func (s *session) GetClientInfo() (i mcp.Implementation)          { return valueOf(s.info.Load()) }
func (s *session) GetClientCapabilities() (c mcp.ClientCapabilities) {
	return valueOf(s.capabilities.Load())
}
func (s *session) ProtocolVersion() string { return valueOf(s.version.Load()) }

// SetSubscriptionFilter does nothing: a modern client may have several subscriptions, and the server notifies each
// itself.
func (*session) SetSubscriptionFilter(mcp.SubscriptionFilter) {}

// SubscriptionFilter excludes modern clients, which negotiate no version, from broadcasts to legacy clients.
func (s *session) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	return mcp.SubscriptionFilter{}, s.ProtocolVersion() == ""
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// forward writes the notifications of the library.
func (s *session) forward(ctx context.Context, out *jsonrpc.Writer) {
	for {
		select {
		case n := <-s.notifications:
			if line, err := json.Marshal(n); err == nil {
				out.Write(append(line, '\n'))
			}
			if n.Method == mcp.MethodNotificationSubscriptionsAcknowledged {
				s.acknowledge(n.Params.Meta[mcp.MetaKeySubscriptionID])
			}
		case <-ctx.Done():
			return
		}
	}
}

// ack returns the channel of a subscription. The caller holds the lock.
func (s *session) ack(id any) chan struct{} {
	if s.acks[id] == nil {
		s.acks[id] = make(chan struct{})
	}
	return s.acks[id]
}

// acknowledge records that the acknowledgement of a subscription was written.
func (s *session) acknowledge(id any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ack(id): // already closed for an earlier subscription with this id
	default:
		close(s.ack(id))
	}
}

// acknowledged waits until the acknowledgement of a subscription has been written. The library queues it, so a
// subscription that ends at once would be answered before it.
func (s *session) acknowledged(ctx context.Context, id any) {
	s.mu.Lock()
	written := s.ack(id)
	s.mu.Unlock()
	select {
	case <-written:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.acks, id)
}

// RequestElicitation sends an elicitation request to the client and waits for the response.
func (s *session) RequestElicitation(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	answer := make(chan jsonrpc.Envelope, 1)
	s.mu.Lock()
	id := "ask-" + rand.Text() // a late answer that was meant for another host of a relay answers nothing here
	key := strconv.Quote(id)
	s.asked[key] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, key)
		s.mu.Unlock()
	}()
	s.send(mcp.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id),
		Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: req.Params,
	})
	select {
	case m := <-answer:
		if m.Result == nil {
			return nil, fmt.Errorf("the client answered with an error: %s", m.Error)
		}
		var result mcp.ElicitationResult
		if err := json.Unmarshal(m.Result, &result); err != nil {
			return nil, fmt.Errorf("cannot decode the client's answer: %w", err)
		}
		return &result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answered passes a response to the goroutine that waits for it. It drops other responses.
func (s *session) answered(m jsonrpc.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer, ok := s.asked[string(m.ID)]; ok {
		delete(s.asked, string(m.ID))
		answer <- m
	}
}
