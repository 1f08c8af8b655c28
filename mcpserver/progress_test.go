package mcpserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A listener is a client that notes when it hears of its call.
type listener struct {
	began time.Time

	mu    sync.Mutex
	at    []time.Duration // since it began, rounded
	texts []string
	last  int
	wrong bool // a value did not rise, or the token was another
}

func (l *listener) notify(_ context.Context, method string, params map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _ := params["progress"].(int)
	l.wrong = l.wrong || n <= l.last || params["progressToken"] != "t" || method != "notifications/progress"
	l.at, l.texts, l.last = append(l.at, time.Since(l.began).Round(time.Second)), append(l.texts,
		params["message"].(string)), n
}

// hears checks when the client heard of its call, in seconds.
func (l *listener) hears(t *testing.T, seconds ...int) {
	t.Helper()
	var want []time.Duration
	for _, s := range seconds {
		want = append(want, time.Duration(s)*time.Second)
	}
	if l.wrong || !slices.Equal(l.at, want) {
		t.Errorf("it heard at %v, want %v; %q", l.at, want, l.texts)
	}
}

// slow is a server with a tool of which one call runs at a time, takes 9 s, and reports once if it can. A Write is asked about.
func slow(t *testing.T, change ...func(*Config)) *Server {
	t.Helper()
	tool := ExtraTool{Tool: mcp.NewTool("Slow"), Run: func(ctx context.Context, call ExtraCall) (*mcp.CallToolResult, error) {
		time.Sleep(5 * time.Second)
		if call.Progress != nil {
			call.Progress("half")
		}
		time.Sleep(4 * time.Second)
		return mcp.NewToolResultText("done"), nil
	}}
	h, _ := openHost(t, map[string]string{".claude/settings.json": `{"permissions":{"allow":["Slow"],"ask":["Write"]}}`}, append(change, func(c *Config) { c.Extension.Tools = []ExtraTool{tool} })...)
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// callFrom calls a tool for a client that sends a token.
func (s *Server) callFrom(ctx context.Context, l *listener, tool string, token any,
	args string) (*mcp.CallToolResult, error) {
	l.began = time.Now()
	var m jsonrpc.Envelope
	m.Params.Name = tool
	c := newCall(s, m)
	ctx, _, err := c.Admit(ctx, transport.Peer{Transport: transport.Stdio, Who: Local(), Notify: l.notify})
	if err != nil {
		return nil, err
	}
	req := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, RawArguments: []byte(args)}}
	if token != nil {
		req.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	return c.call(ctx, req)
}

// A call is heard of in every heartbeat: while it waits for its turn, while it runs, and never after its answer.
func TestHeartbeat(t *testing.T) {
	s := slow(t, func(c *Config) { c.TrustWorkspace = true })
	synctest.Test(t, func(t *testing.T) {
		var first, second, silent, deaf listener
		var calls sync.WaitGroup
		call := func(ctx context.Context, l *listener, token any) {
			calls.Go(func() {
				if result, err := s.callFrom(ctx, l, "Slow", token, "{}"); err != nil ||
					result.IsError != (ctx.Err() != nil) {
					t.Errorf("got %v, %v", result, err)
				}
			})
			synctest.Wait()
		}
		call(t.Context(), &first, "t")
		call(t.Context(), &second, "t")
		call(t.Context(), &silent, nil)
		gone, cancel := context.WithCancel(t.Context())
		call(gone, &deaf, "t")
		time.Sleep(4 * time.Second)
		cancel()
		calls.Wait()
		time.Sleep(time.Minute)
		first.hears(t, 3, 5, 8)
		second.hears(t, 3, 6, 9, 12, 14, 17)
		silent.hears(t)
		deaf.hears(t, 3)
		if want := []string{"Slow: no result yet after 3s", "half", "half"}; !slices.Equal(first.texts, want) {
			t.Errorf("it heard %q, want %q", first.texts, want)
		}
	})
}

// A person takes their time to answer.
type slowAsker struct{ answer Answer }

func (slowAsker) Present() bool { return true }

func (o slowAsker) Ask(context.Context, OperatorQuestion) Answer {
	time.Sleep(7 * time.Second)
	return o.answer
}

// askedSession is a legacy client whose person takes their time.
type askedSession struct {
	server.SessionWithElicitation
	server.SessionWithClientInfo
}

func (askedSession) SessionID() string                                   { return "asked" }
func (askedSession) Initialize()                                         {}
func (askedSession) Initialized() bool                                   { return true }
func (askedSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return nil }
func (askedSession) GetClientInfo() mcp.Implementation                   { return mcp.Implementation{} }
func (askedSession) GetClientCapabilities() mcp.ClientCapabilities {
	return mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}
}

func (askedSession) RequestElicitation(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	time.Sleep(7 * time.Second)
	return nil, errors.New("the person has gone")
}

// A client also hears of its call while a person is asked, through itself or at the console.
func TestHeartbeatWhileAsked(t *testing.T) {
	write := `{"file_path":"b.txt","content":"b\n"}`
	for name, in := range map[string]func(*Server) context.Context{
		"console":     func(*Server) context.Context { return context.Background() },
		"elicitation": func(s *Server) context.Context { return s.mcp.WithContext(context.Background(), askedSession{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := slow(t, func(c *Config) { c.Asker, c.TrustWorkspace = slowAsker{}, true })
			if err := s.host.Operator().MayAnswer(); name == "console" && err != nil {
				t.Skip(err)
			}
			synctest.Test(t, func(t *testing.T) {
				var l listener
				result, err := s.callFrom(in(s), &l, "Write", "t", write)
				if err != nil || !result.IsError ||
					!strings.Contains(textIn(result), "a person was asked and did not allow it") {
					t.Errorf("got %v, %v", result, err)
				}
				time.Sleep(time.Minute)
				l.hears(t, 0, 3, 6)
				if len(l.texts) == 0 || l.texts[0] != asking || l.texts[len(l.texts)-1] != asking {
					t.Errorf("it heard %q", l.texts)
				}
			})
		})
	}
}
