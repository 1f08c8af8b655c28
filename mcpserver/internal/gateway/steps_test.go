package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// A stepWire is a server that is silent, or dies, when it is asked for a method.
type stepWire struct {
	silent, dies string
	modern       bool
	starts       time.Duration // until it answers; then it speaks one era only
	progress     time.Duration // between reports of a silent call; 0: there are none
	ready        time.Time
	to           *session
	gone         chan struct{}
	once         sync.Once
	reason       error
}

func (w *stepWire) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method == w.dies {
		w.end(&errDied{"it exited with the status 3"})
		return nil, w.reason
	}
	for strings.Contains(w.silent, method) {
		var again <-chan time.Time
		if w.progress > 0 {
			again = time.After(w.progress)
		}
		select {
		case <-again:
			w.to.notified("notifications/progress", json.RawMessage(`{"progressToken":"t1","progress":1}`))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-w.gone:
			return nil, w.reason
		}
	}
	select {
	case <-time.After(time.Until(w.ready)):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case method == "server/discover" && w.modern:
		return json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{}}}`), nil
	case method == "server/discover":
		return nil, &rpcError{Code: codeNoMethod, Message: "no such method"}
	case method == "initialize" && w.starts > 0 && w.modern:
		return nil, &rpcError{Code: codeNoMethod, Message: "no such method"}
	case method == "initialize":
		return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}}}`), nil
	case method == "tools/list":
		return json.RawMessage(`{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}`), nil
	}
	return json.RawMessage(`{}`), nil
}

func (w *stepWire) end(reason error) {
	w.once.Do(func() { w.reason = reason; close(w.gone) })
}

func (w *stepWire) notify(string, json.RawMessage) {}
func (w *stepWire) setVersion(string)              {}
func (w *stepWire) initialized()                   {}
func (w *stepWire) unexpected() string             { return "" }
func (w *stepWire) words() string                  { return "" }
func (w *stepWire) ended() <-chan struct{}         { return w.gone }
func (w *stepWire) why() error                     { return w.reason }
func (w *stepWire) close()                         { w.end(errStopped) }

// stepped opens a gateway of a server that behaves as a wire does. connected counts its connections.
func stepped(t *testing.T, as *stepWire) (g *Gateway, s *server, connected *int) {
	entries := []*Entry{{Name: "s", Trust: User, Type: typeStdio, Command: "none"}}
	g = Open(Config{
		MayRun:  func(guard.HostCommand) error { return nil },
		Servers: func() ([]*Entry, []string) { return entries, nil }, Changed: func(*Gateway, bool) {},
		Log: slog.New(slog.DiscardHandler),
	})
	connected = new(int)
	g.dial = func(_ *upstream, _ context.Context, s *session) error {
		*connected++
		s.w = &stepWire{silent: as.silent, dies: as.dies, modern: as.modern, progress: as.progress, to: s,
			starts: as.starts, ready: time.Now().Add(as.starts),
			gone: make(chan struct{})}
		return nil
	}
	s, err := g.server("s")
	if err != nil {
		t.Fatal(err)
	}
	return g, s, connected
}

// sayAt calls the tool of a server.
func sayAt(ctx context.Context, g *Gateway, s *server) error {
	_, err := caller{g, &builtin.Env{Principal: localPrincipal, Scope: "one"}, s}.runHere(ctx,
		request{method: "tools/call", params: map[string]any{"name": "say"}},
		noReader)
	return err
}

// TestIgnoredCancel: a server that leaves three cancelled calls in a row unanswered is started anew by the next one.
func TestIgnoredCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, connected := stepped(t, &stepWire{silent: "tools/call"})
		defer g.Close()
		for i := range 2 * maxIgnored {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := sayAt(ctx, g, s)
			cancel()
			if want := 1 + i/maxIgnored; err == nil || *connected != want {
				t.Errorf("call %d: %d connections, want %d; %v", i, *connected, want, err)
			}
		}
	})
}

// TestSteps has servers be silent, or die, at each step of a call. The clock is that of the test.
func TestSteps(t *testing.T) {
	const all = "server/discover initialize"
	for _, tt := range []struct {
		name     string
		wire     *stepWire
		patience time.Duration // of the caller; 0: no end
		after    time.Duration
		want     string // in the error; "": there is none
	}{
		{"answers", &stepWire{}, 0, 0, ""},
		{"silent about its era", &stepWire{silent: "server/discover"}, 0, probeTime, ""},
		{"slow to start", &stepWire{starts: probeTime + time.Second}, 0, probeTime + time.Second, ""},
		{"slow to start, modern", &stepWire{starts: probeTime + time.Second, modern: true}, 0, probeTime + time.Second, ""},
		{"silent", &stepWire{silent: all}, 0, connectTime, "it was not ready within 30s"},
		{"silent at initialize", &stepWire{silent: "initialize"}, 0, connectTime, "it was not ready within 30s"},
		{"silent at the list", &stepWire{silent: "tools/list"}, 0, connectTime, "it was not ready within 30s"},
		{"silent at the list, modern", &stepWire{silent: "tools/list", modern: true}, 0, connectTime, "it was not ready within 30s"},
		{"silent at the list of prompts", &stepWire{silent: "prompts/list"}, 0, connectTime, ""},
		{"silent at the call", &stepWire{silent: "tools/call"}, 0, silence, "it was silent for 5m0s"},
		{"silent at the call, modern", &stepWire{silent: "tools/call", modern: true}, 0, silence, "it was silent for 5m0s"},
		{"reports without end", &stepWire{silent: "tools/call", progress: silence - time.Second}, 0, callTime, "it did not answer within 10m0s"},
		{"silent and cancelled", &stepWire{silent: "tools/call"}, time.Second, time.Second, "context deadline exceeded"},
		{"silent at initialize and cancelled", &stepWire{silent: "initialize"}, time.Second, time.Second, "context deadline exceeded"},
		{"silent at the list and cancelled", &stepWire{silent: "tools/list"}, time.Second, time.Second, "context deadline exceeded"},
		{"dies about its era", &stepWire{dies: "server/discover"}, 0, 0, "it exited with the status 3"},
		{"dies at initialize", &stepWire{dies: "initialize"}, 0, 0, "it exited with the status 3"},
		{"dies at the list", &stepWire{dies: "tools/list"}, 0, 0, "it exited with the status 3"},
		{"dies at the list of prompts", &stepWire{dies: "prompts/list"}, 0, 0, "it exited with the status 3"},
		{"dies at the call", &stepWire{dies: "tools/call"}, 0, 0, "it exited with the status 3"},
		{"dies at the call, modern", &stepWire{dies: "tools/call", modern: true}, 0, 0, "it exited with the status 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, s, _ := stepped(t, tt.wire)
				defer g.Close()
				ctx := t.Context()
				if tt.patience > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.patience)
					defer cancel()
				}
				began := time.Now()
				err := sayAt(ctx, g, s)
				if took := time.Since(began); took != tt.after {
					t.Errorf("it took %s, want %s", took, tt.after)
				}
				if tt.want == "" && err != nil || tt.want != "" &&
					(err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		})
	}
}

// TestStopWhileStarting: a server that never becomes ready delays neither a change of the configuration nor the end.
func TestStopWhileStarting(t *testing.T) {
	for _, method := range []string{"server/discover", "initialize", "tools/list", "prompts/list"} {
		for _, end := range []string{"reload", "restart", "close"} {
			t.Run(method+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g, s, _ := stepped(t, &stepWire{silent: method})
					defer g.Close()
					failed := make(chan error, 1)
					go func() { failed <- sayAt(t.Context(), g, s) }()
					synctest.Wait()
					began := time.Now()
					switch end {
					case "reload":
						g.mu.Lock()
						delete(g.servers, "s") // its entry has changed
						g.mu.Unlock()
						g.Reload()
						<-failed
					case "restart":
						go func() { _ = g.Restart("s") }() // it waits for the new process
						<-failed
					case "close":
						g.Close()
						<-failed
					}
					if took := time.Since(began); took != 0 {
						t.Errorf("it took %s", took)
					}
				})
			})
		}
	}
}

// TestTurns: calls that must run alone on a connection keep their order, also when the queue of the conversation has let
// them pass, at most as long as a call may stay in the foreground.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, _ := stepped(t, &stepWire{silent: "tools/call"})
		defer g.Close()
		u := g.upstreamFor(s, localPrincipal, "one")
		first, err := u.takeTurn(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		cancelled, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := u.takeTurn(cancelled, time.Minute); err == nil {
			t.Error("two calls ran at once")
		}
		began := time.Now()
		second, err := u.takeTurn(t.Context(), 0)
		if took := time.Since(began); err != nil || took != time.Minute-time.Second {
			t.Errorf("the next call waited %s: %v", took, err)
		}
		first()
		second()
		second()
		third, err := u.takeTurn(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		third()
	})
}

// TestFullQueue: a request waits while the server reads what was queued before, but not for a server that reads nothing.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stdioWire{out: make(chan []byte, 1), pending: map[int64]chan answer{}, gone: make(chan struct{})}
		w.notify("first", nil)
		w.notify("dropped", nil)
		began := time.Now()
		_, err := w.request(t.Context(), "ping", nil)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "the queue was full for 5s") ||
			took != roomTime {
			t.Errorf("nothing is read: %v after %s", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.request(ctx, "ping", nil); err != context.DeadlineExceeded {
			t.Errorf("cancelled: %v", err)
		}
		go func() {
			time.Sleep(time.Second)
			if first := string(<-w.out); !strings.Contains(first, `"first"`) {
				t.Errorf("read %s", first)
			}
			<-w.out
			w.take([]byte(`{"jsonrpc":"2.0","id":3,"result":{}}`))
		}()
		if _, err := w.request(t.Context(), "ping", nil); err != nil {
			t.Errorf("read late: %v", err)
		}
	})
}
