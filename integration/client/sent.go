package client

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// sendBuffer holds a whole request, head and body, unless a test sends a very long one.
const sendBuffer = 64 << 10

// sending returns a transport of one client. net/http tells that a request is written when it stands in a buffer: a
// client that left then would never have sent it. The connections of this transport tell when the buffer has gone
// out. It is not shared: a client that closes its idle connections would break the requests of others, whose
// connections are idle for a moment before an answer without a body is delivered.
func sending() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.WriteBufferSize = sendBuffer
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &sender{Conn: conn}, nil
	}
	return t
}

// A sender is a connection that tells when the end of a request has gone out.
type sender struct {
	net.Conn
	sent atomic.Pointer[func()]
}

func (s *sender) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if tell := s.sent.Swap(nil); tell != nil {
		(*tell)()
	}
	return n, err
}

// onceSent has a function called when the request of a context has gone out: with the first write after the request
// was whole in the buffer.
func onceSent(ctx context.Context, tell func()) context.Context {
	var conn *sender
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { conn, _ = info.Conn.(*sender) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if conn == nil || info.Err != nil {
				tell()
				return
			}
			conn.sent.Store(&tell)
		},
	})
}
