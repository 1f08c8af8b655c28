package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// A village is a set of workspaces, each of which belongs to the principal with its name.
type village struct {
	entered chan string   // what each request that runs said
	finish  chan struct{} // a request ends when this is closed, or at its own end

	mu    sync.Mutex
	ended []string // principals
}

func (v *village) Log() *slog.Logger         { return slog.New(slog.DiscardHandler) }
func (v *village) Record(audit.Record) error { return nil }
func (v *village) CountUnauthorized()        {}

func (v *village) EndTasks(principal string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = append(v.ended, principal)
}

func (v *village) Enter(_ context.Context, who auth.Identity, name string, rests bool) (http.Handler, error) {
	switch {
	case name == "full":
		return nil, ErrManyWorkspaces
	case who.Principal != name:
		return nil, ErrNoWorkspace
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v.entered <- fmt.Sprint(r.URL.Path, " ", rests, " ", string(body))
		select {
		case <-v.finish:
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
			_, _ = io.WriteString(w, "cut: "+context.Cause(r.Context()).Error())
		}
	}), nil
}

// persons are verifiers of tokens that are names.
type persons struct{ valid context.Context }

func (p persons) Verify(_ context.Context, bearer string) (auth.Identity, error) {
	if bearer != "alice" && bearer != "bob" {
		return auth.Identity{}, &auth.Error{Kind: auth.Invalid, Reason: "unknown"}
	}
	return auth.Identity{Principal: bearer, Rights: auth.All, Valid: p.valid}, nil
}

// A square is a running server of a village.
type square struct {
	*village
	t     *testing.T
	url   string
	end   context.CancelFunc
	ended chan error
}

func openSquare(t *testing.T, valid context.Context) *square {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &square{
		village: &village{entered: make(chan string, 64), finish: make(chan struct{})},
		t:       t, url: "http://" + l.Addr().String(), end: cancel, ended: make(chan error, 1),
	}
	limits := UsualLimits()
	limits.InFlight = 8
	go func() {
		s.ended <- ServeWorkspaces(ctx, s.village, l, Config{Verifier: persons{valid}, Limits: limits})
	}()
	t.Cleanup(cancel)
	return s
}

// ask makes a request of a caller.
func (s *square) ask(method, who, path, body string) (status int, answer string) {
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+who)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(raw)
}

const aCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"Read"}}`

// begin starts a call and waits until it runs.
func (s *square) begin(who string) (answer chan string) {
	answer = make(chan string, 1)
	go func() {
		status, text := s.ask(http.MethodPost, who, WorkspacePath(who), aCall)
		answer <- fmt.Sprint(status, " ", text)
	}()
	if got := <-s.entered; got != "/mcp false "+aCall {
		s.t.Errorf("the workspace got %q", got)
	}
	return answer
}

// TestWorkspacesUnknown: a workspace of somebody else, one that does not exist and a name that none can have get one answer.
func TestWorkspacesUnknown(t *testing.T) {
	s := openSquare(t, nil)
	status, want := s.ask(http.MethodPost, "alice", "/w/none/mcp", aCall)
	if status != http.StatusNotFound || !strings.Contains(want, `"id":7`) {
		t.Errorf("a workspace that does not exist: %d %s", status, want)
	}
	for _, path := range []string{"/w/bob/mcp", "/w/%2e%2e/mcp", "/w/a%2Fb/mcp", "/w/ALICE/mcp"} {
		if status, got := s.ask(http.MethodPost, "alice", path, aCall); status != http.StatusNotFound || got != want {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	for _, tt := range []struct {
		method, who, path string
		status            int
	}{
		{http.MethodPost, "mallory", "/w/alice/mcp", http.StatusUnauthorized},
		{http.MethodPost, "", "/w/alice/mcp", http.StatusUnauthorized},
		{http.MethodPut, "alice", "/w/alice/mcp", http.StatusMethodNotAllowed},
		{http.MethodPost, "alice", "/w/full/mcp", http.StatusTooManyRequests},
		{http.MethodPost, "alice", "/mcp", http.StatusNotFound},
		{http.MethodPost, "alice", "/relay/revoke", http.StatusNotFound},
		{http.MethodPost, "alice", "/w/alice/relay/console", http.StatusNotFound},
		{http.MethodGet, "", "/healthz", http.StatusOK},
		{http.MethodGet, "", "/readyz", http.StatusOK},
	} {
		if status, got := s.ask(tt.method, tt.who, tt.path, ""); status != tt.status {
			t.Errorf("%s %s as %q: %d %s", tt.method, tt.path, tt.who, status, got)
		}
	}
}

// TestWorkspacesDrain: at the end calls that run are answered, others are refused, and streams end at once.
func TestWorkspacesDrain(t *testing.T) {
	s := openSquare(t, nil)
	call, stream := s.begin("alice"), make(chan string, 1)
	go func() {
		_, text := s.ask(http.MethodGet, "bob", WorkspacePath("bob"), "")
		stream <- text
	}()
	if got := <-s.entered; got != "/mcp true " {
		t.Errorf("the workspace got %q", got)
	}
	s.end()
	if got := <-stream; !strings.HasPrefix(got, "cut: ") {
		t.Errorf("the stream had %q", got)
	}
	if status, got := s.ask(http.MethodPost, "bob", WorkspacePath("bob"),
		aCall); status != http.StatusServiceUnavailable {
		t.Errorf("a new call: %d %s", status, got)
	}
	if status, _ := s.ask(http.MethodGet, "", "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("ready while it ends: %d", status)
	}
	select {
	case err := <-s.ended:
		t.Fatalf("the server has ended with a call: %v", err)
	default:
	}
	close(s.finish)
	if got := <-call; got != "200 done" {
		t.Errorf("the call that ran: %s", got)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestWorkspacesLimits: a caller leaves room for others.
func TestWorkspacesLimits(t *testing.T) {
	s := openSquare(t, nil)
	for range 6 { // three quarters of eight
		s.begin("alice")
	}
	if status, got := s.ask(http.MethodPost, "alice", WorkspacePath("alice"),
		aCall); status != http.StatusServiceUnavailable {
		t.Errorf("one call more: %d %s", status, got)
	}
	s.begin("bob")
	close(s.finish)
}

// TestWorkspacesRevoked: a token that is revoked ends the calls with it, and what it has open in workspaces.
func TestWorkspacesRevoked(t *testing.T) {
	valid, revoke := context.WithCancel(t.Context())
	s := openSquare(t, valid)
	call := s.begin("alice")
	revoke()
	if got := <-call; !strings.Contains(got, errRevoked.Error()) {
		t.Errorf("the call: %s", got)
	}
	s.end()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.village.ended) != 1 || s.village.ended[0] != "alice" {
		t.Errorf("ended are the tasks of %q", s.village.ended)
	}
}

// TestWorkspacesNoVerifier: a server without a verifier does not start.
func TestWorkspacesNoVerifier(t *testing.T) {
	if err := ServeWorkspaces(t.Context(), &village{}, nil, Config{}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("without a verifier: %v", err)
	}
}

// TestRelayStreams: the streams that wait for events over the connection of a relay leave all of the requests that may run
// at once.
func TestRelayStreams(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limits := UsualLimits()
	limits.InFlight, limits.Streams = 3, 4
	e, err := newEntrance(t.Context(), &village{},
		Config{Verifier: persons{}, Limits: limits, Relay: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- e.serve(ctx, l, http.NotFoundHandler(), time.Second,
			func(web *http.Server) error { return web.Close() })
	}()
	defer func() { cancel(); <-ended }()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Transport{Protocols: protocols}
	conn, err := client.NewClientConn(t.Context(), "http", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := http.NewRequest(http.MethodGet, "http://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := conn.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if n := conn.Available(); n != 7 {
		t.Errorf("%d requests can be open at once, with 3 in flight and 4 streams", n)
	}
}
