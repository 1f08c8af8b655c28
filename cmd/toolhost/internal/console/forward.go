package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/guard/statedir"
)

// ErrHostEnded is returned by [Forwarder.Serve] when its host has ended.
var ErrHostEnded = errors.New("the host has ended")

// A Forwarder connects a loopback address, which a browser can open, to the socket of a console. It authenticates no
// one: the console itself asks for the code and the cookie.
type Forwarder struct {
	instance Instance
	dial     func(context.Context) (net.Conn, error)
	listener net.Listener
	log      *slog.Logger
}

// Forward listens on a loopback address for a console that listens on a socket. dial connects to the socket; nil
// means that the socket is on this machine.
func Forward(i Instance, dial func(context.Context) (net.Conn, error), address string,
	log *slog.Logger) (*Forwarder, error) {
	if dial == nil {
		dial = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", i.Socket())
		}
	}
	if i.URL != "" {
		return nil, fmt.Errorf("this console listens on %s itself", i.URL)
	}
	if err := loopbackOnly(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Forwarder{instance: i, dial: dial, listener: l, log: log}, nil
}

// URL returns the address for the browser.
func (f *Forwarder) URL() string { return "http://" + f.listener.Addr().String() }

// hostLook is the interval at which a forwarder checks that its host still runs.
const hostLook = 2 * time.Second

// Serve forwards requests until ctx is done, or until the host has ended; then it returns [ErrHostEnded].
func (f *Forwarder) Serve(ctx context.Context) error {
	socket := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return f.dial(ctx) },
		DisableCompression: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: idleTime,
	}
	defer socket.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "console"
			r.Out.Host = r.In.Host // the console checks it
		},
		Transport: socket, FlushInterval: -1, ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "The host does not answer: it has ended, or is about to.", http.StatusBadGateway)
		},
	}
	web := &http.Server{Handler: fullDuplex(proxy), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: proxy.ErrorLog, ConnState: listen.Watch}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listen.Bound(f.listener, maxConnections, f.log)) }()
	look := time.NewTicker(hostLook)
	defer look.Stop()
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return web.Close()
		case <-look.C:
			if f.instance.dir == "" {
				continue // cannot be checked: the host is on another machine
			}
			if running, _ := statedir.Running(f.instance.path(".lock"), f.instance.forget); !running {
				return errors.Join(ErrHostEnded, web.Close())
			}
		}
	}
}

// fullDuplex makes a form readable while its response is written. Otherwise the server closes the form at the first
// byte of the response. If the transport has not read the form to its end by then, it drops the response.
func fullDuplex(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 supports it
		next.ServeHTTP(w, r)
	})
}
