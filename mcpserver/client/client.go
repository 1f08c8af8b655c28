// Package client is a client of an MCP server, in either era of the protocol: as much as toolhost needs to try servers.
//
// Its Go API is not stable.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// A Client speaks to one server.
type Client struct {
	wire transport.Interface
	mcp  *client.Client
}

// New returns a client of a server whose output and input are given.
func New(out io.Reader, in io.WriteCloser) *Client {
	return &Client{wire: transport.NewIO(out, in, nil)}
}

// NewHTTP returns a client of a server at a URL. via is nil for the default.
func NewHTTP(url, token string, via http.RoundTripper) (*Client, error) {
	wire, err := transport.NewStreamableHTTP(url, transport.WithHTTPBasicClient(&http.Client{Transport: via}),
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	return &Client{wire: wire}, err
}

// Ask answers a question of the server by a decision.
type Ask func(ctx context.Context, question string) (decision string)

// Elicit implements client.ElicitationHandler.
func (a Ask) Elicit(ctx context.Context, question mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"decision": a(ctx, question.Params.Message)},
	}}, nil
}

// Greet begins the conversation in an era of the protocol. It may be called again for another era. ask answers the
// questions of the server; if it is nil, the server cannot ask.
func (c *Client) Greet(ctx context.Context, era string, ask Ask) error {
	// The context bounds the first answer: that of a remote server takes long.
	options := []client.ClientOption{client.WithDiscoverTimeout(-1)}
	if ask != nil {
		options = append(options, client.WithElicitationHandler(ask))
	}
	c.mcp = client.NewClient(c.wire, options...)
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = era
	hello.Params.ClientInfo = mcp.Implementation{Name: "toolhost doctor", Version: "1"}
	err := c.mcp.Start(ctx)
	if err == nil {
		_, err = c.mcp.Initialize(ctx, hello)
	}
	refused := (*transport.AuthorizationRequiredError)(nil)
	switch {
	case errors.As(err, &refused):
		return errors.New("initialize: the server does not know the token")
	case err != nil:
		return fmt.Errorf("initialize: %w", err)
	case c.mcp.ProtocolVersion() != era:
		return fmt.Errorf("initialize: the revision %q was answered to %s", c.mcp.ProtocolVersion(), era)
	}
	return nil
}

// Tools returns the names of the tools that are served.
func (c *Client) Tools(ctx context.Context) (names []string, err error) {
	list, err := c.mcp.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, fmt.Errorf("tools/list: %w", err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

// Call calls a tool, and returns the text of its result.
func (c *Client) Call(ctx context.Context, tool string, args map[string]any) (text string, failed bool, err error) {
	var request mcp.CallToolRequest
	request.Params.Name, request.Params.Arguments = tool, args
	result, err := c.mcp.CallTool(ctx, request)
	if err != nil {
		return "", false, fmt.Errorf("tools/call: %w", err)
	}
	for _, part := range result.Content {
		if content, ok := part.(mcp.TextContent); ok {
			text += content.Text
		}
	}
	return text, result.IsError, nil
}

// Close ends the conversation.
func (c *Client) Close() error { return c.wire.Close() }
