package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// drain admits no more requests and waits for those in flight. After [transport.DrainGrace] they are cancelled.
func (d *handler) drain(l net.Listener, stop context.CancelCauseFunc) {
	empty := d.admission.drain()
	d.closeStreams()
	if d.cfg.Inherited {
		l.Close() // clients that connect now wait for the next server
	}
	if !waitAtMost(transport.DrainGrace, empty) {
		stop(transport.ErrClosed)
		waitAtMost(transport.DrainRest, empty)
	}
}

// waitAtMost waits for done for at most limit, and reports whether it was closed in time.
func waitAtMost(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// shutdown closes what is left open when nothing is in flight: idle streams and connections.
func shutdown(web *http.Server, library *server.StreamableHTTPServer) error {
	rest, cancel := context.WithTimeout(context.Background(), transport.DrainRest)
	defer cancel()
	library.CloseSessions(rest)
	if err := web.Shutdown(rest); err != nil {
		return errors.Join(web.Close(), library.Shutdown(rest)) // clients that are in the middle of a request
	}
	return library.Shutdown(rest)
}
