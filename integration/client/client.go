// Package client speaks MCP to a toolhost binary as a client would: over stdio or HTTP, in either protocol
// era. It is written against the specification, not against the server's library, so that the two are
// checked against each other.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
)

// An Era is a protocol revision.
type Era string

// The eras that are spoken: Modern has no handshake and no sessions, Legacy has both.
const (
	Modern Era = "2026-07-28"
	Legacy Era = "2025-11-25"
)

// A Response is the answer to a request: a result or an error.
type Response struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// An Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// A Result is what a tool answered.
type Result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	Meta       map[string]any  `json:"_meta"`
}

// Text is all the text of the result.
func (r *Result) Text() string {
	text := ""
	for _, c := range r.Content {
		if c.Type == "text" {
			text += c.Text
		}
	}
	return text
}

// A Notification is what a server sends without being asked.
type Notification struct {
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
}

// A transport carries requests. Requests may be made at once; the order of the calls of send is the order
// in which they leave.
type transport interface {
	// send starts a request and returns the channel of its answer.
	send(ctx context.Context, request map[string]any) (<-chan Response, error)
	notify(ctx context.Context, notification map[string]any) error
	close() error
}

// A Conn is a connection to a host.
type Conn struct {
	era  Era
	t    transport
	next atomic.Int64
	// Meta is added to the _meta of every request, and replaces what is there.
	Meta map[string]any
	// OnNotification hears what the server sends without being asked. Set it before the first request.
	OnNotification func(Notification)
}

// start makes the handshake of the legacy era.
func (c *Conn) start(ctx context.Context) error {
	if c.era == Modern {
		return nil
	}
	_, err := c.Request(ctx, "initialize", map[string]any{
		"protocolVersion": string(Legacy), "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "integration", "version": "0"},
	})
	if err != nil {
		return err
	}
	return c.t.notify(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// A Pending is a request that was sent.
type Pending struct {
	ID     int64
	answer <-chan Response
}

// Send sends a request without waiting for its answer.
func (c *Conn) Send(ctx context.Context, method string, params map[string]any) (*Pending, error) {
	id := c.next.Add(1)
	answer, err := c.t.send(ctx, c.request(id, method, params))
	if err != nil {
		return nil, err
	}
	return &Pending{ID: id, answer: answer}, nil
}

func (c *Conn) request(id int64, method string, params map[string]any) map[string]any {
	full := map[string]any{}
	for k, v := range params {
		full[k] = v
	}
	meta := map[string]any{}
	if own, ok := params["_meta"].(map[string]any); ok {
		meta = own
	}
	if c.era == Modern {
		meta["io.modelcontextprotocol/protocolVersion"] = string(Modern)
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
		meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "integration", "version": "0"}
	}
	for k, v := range c.Meta {
		meta[k] = v
	}
	if len(meta) > 0 {
		full["_meta"] = meta
	}
	return map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": full}
}

// Wait waits for the answer.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case r, ok := <-p.answer:
		if !ok {
			return nil, fmt.Errorf("the connection ended before request %d was answered", p.ID)
		}
		if r.Error != nil {
			return nil, r.Error
		}
		return r.Result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Request sends a request and waits for its result. The error can be an [*Error].
func (c *Conn) Request(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	p, err := c.Send(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// Start sends a call of a tool without waiting for its answer. args is JSON.
func (c *Conn) Start(ctx context.Context, tool, args string, meta map[string]any) (*Pending, error) {
	params := map[string]any{"name": tool, "arguments": json.RawMessage(args)}
	if meta != nil {
		params["_meta"] = meta
	}
	return c.Send(ctx, "tools/call", params)
}

// Call calls a tool. args is JSON.
func (c *Conn) Call(ctx context.Context, tool, args string) (*Result, error) {
	p, err := c.Start(ctx, tool, args, nil)
	if err != nil {
		return nil, err
	}
	return p.Result(ctx)
}

// Result waits for the result of a call.
func (p *Pending) Result(ctx context.Context) (*Result, error) {
	raw, err := p.Wait(ctx)
	if err != nil {
		return nil, err
	}
	var r Result
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("the result is no tool result: %w: %s", err, raw)
	}
	return &r, nil
}

// Cancel tells the server that the answer to a request is no longer wanted.
func (c *Conn) Cancel(ctx context.Context, p *Pending) error {
	return c.t.notify(ctx, map[string]any{
		"jsonrpc": "2.0", "method": "notifications/cancelled",
		"params": map[string]any{"requestId": p.ID, "reason": "the test says so"},
	})
}

// CloseInput tells a host on stdio that no more will come, without waiting for its end.
func (c *Conn) CloseInput() error {
	t, ok := c.t.(*stdio)
	if !ok {
		return errors.New("only a host on stdio has an input to close")
	}
	return t.closeInput()
}

// Close ends the connection.
func (c *Conn) Close() error { return c.t.close() }
