package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// A lineWriter writes whole lines in the order they were given, from a goroutine of its own: a client that
// does not read its answers must not hold up the reader. What waits is bounded by [MaxInFlight].
type lineWriter struct {
	w      io.Writer
	broken chan struct{} // closed when the client no longer takes lines
	done   chan struct{} // closed when everything has been written

	mu     sync.Mutex
	wake   *sync.Cond
	lines  [][]byte
	closed bool
}

func newLineWriter(w io.Writer) *lineWriter {
	l := &lineWriter{w: w, broken: make(chan struct{}), done: make(chan struct{})}
	l.wake = sync.NewCond(&l.mu)
	go l.run()
	return l
}

func (l *lineWriter) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.lines = append(l.lines, line)
		l.wake.Signal()
	}
}

func (l *lineWriter) run() {
	defer close(l.done)
	for {
		l.mu.Lock()
		for len(l.lines) == 0 && !l.closed {
			l.wake.Wait()
		}
		lines := l.lines
		l.lines = nil
		l.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		for _, line := range lines {
			if _, err := l.w.Write(line); err != nil {
				l.mu.Lock()
				l.closed = true
				l.mu.Unlock()
				close(l.broken)
				return
			}
		}
	}
}

// closeGrace is how long a closing host waits for its client to take the last lines.
const closeGrace = 500 * time.Millisecond

// close writes what is left, as far as the client takes it.
func (l *lineWriter) close() {
	l.mu.Lock()
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}

// A stdioSession is the library's view of the stdio client.
type stdioSession struct {
	notifications chan mcp.JSONRPCNotification
	initialized   atomic.Bool
	info          atomic.Pointer[mcp.Implementation]
	capabilities  atomic.Pointer[mcp.ClientCapabilities]
	version       atomic.Pointer[string]
}

func newStdioSession() *stdioSession {
	const queued = 16 // the library broadcasts next to nothing: the tool list does not change
	return &stdioSession{notifications: make(chan mcp.JSONRPCNotification, queued)}
}

func (*stdioSession) SessionID() string   { return "stdio" }
func (s *stdioSession) Initialize()       { s.initialized.Store(true) }
func (s *stdioSession) Initialized() bool { return s.initialized.Load() }
func (s *stdioSession) NotificationChannel() chan<- mcp.JSONRPCNotification {
	return s.notifications
}

func (s *stdioSession) SetClientInfo(i mcp.Implementation)             { s.info.Store(&i) }
func (s *stdioSession) SetClientCapabilities(c mcp.ClientCapabilities) { s.capabilities.Store(&c) }
func (s *stdioSession) SetProtocolVersion(v string)                    { s.version.Store(&v) }
func (s *stdioSession) GetClientInfo() (i mcp.Implementation)          { return valueOf(s.info.Load()) }
func (s *stdioSession) GetClientCapabilities() (c mcp.ClientCapabilities) {
	return valueOf(s.capabilities.Load())
}
func (s *stdioSession) ProtocolVersion() string { return valueOf(s.version.Load()) }

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// forward writes what the library wants to tell the client.
func (s *stdioSession) forward(ctx context.Context, out *lineWriter) {
	for {
		select {
		case n := <-s.notifications:
			if line, err := json.Marshal(n); err == nil {
				out.write(append(line, '\n'))
			}
		case <-ctx.Done():
			return
		}
	}
}
