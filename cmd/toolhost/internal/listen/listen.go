// Package listen opens what a server listens on: a TCP address with or without TLS, a Unix socket, or a socket
// that systemd has opened. It refuses what would put tokens on a network in the clear, and it bounds how many
// connections are open at once.
package listen

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
)

// DefaultAddress is listened on when nothing else is asked for.
const DefaultAddress = "127.0.0.1:8377"

// unixPrefix marks an address that is the path of a Unix socket.
const unixPrefix = "unix:"

// SocketPath returns the path of the Unix socket that an address names, "" if it names none.
func SocketPath(address string) string {
	path, _ := strings.CutPrefix(address, unixPrefix)
	if path == address {
		return ""
	}
	return path
}

// A Config configures a listener. The zero value listens on [DefaultAddress], or on the socket that systemd has
// opened for this process.
type Config struct {
	// Address is host:port, or unix:PATH. Port 0 picks one. Empty: see [Config].
	Address string
	// CertFile and KeyFile are PEM files of a certificate chain and its key. Both or neither are given. They
	// are read again when they change.
	CertFile, KeyFile string
	// PlainHTTP allows an address that others can reach without TLS.
	PlainHTTP bool
	// Hosts are the names under which clients address the server. The first is shown in [Listener.URL].
	Hosts []string
	// maxConnections bounds the open connections. Zero: [maxConnections], or half of the descriptors that the
	// process may have if that is less.
	maxConnections int
	// Log receives connections that are refused and certificates that cannot be read. Nil: they are not logged.
	Log *slog.Logger
}

// A Listener accepts connections of clients. Closing it removes a Unix socket that it has made.
type Listener struct {
	net.Listener
	// Connections is how many connections are open at once.
	Connections int
	// URL is how a client on this machine, or one that knows the host by its first name, reaches the server:
	// scheme and authority without a path.
	URL string
	// Socket is the path of the Unix socket, if it is one.
	Socket string
	// Inherited says that the socket was opened by systemd and outlives this process, so that clients that
	// connect while it ends wait for the next one.
	Inherited bool

	closing sync.Mutex // a server that is shut down closes its listener in two places at once
	closers []func() error
}

// Close stops listening. It may be called again.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	l.closing.Lock()
	defer l.closing.Unlock()
	for _, c := range l.closers {
		err = errors.Join(err, c())
	}
	l.closers = nil
	return err
}

// Open listens. Its errors say what to change.
func Open(cfg Config) (*Listener, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, Usage("TLS needs a certificate and its key: give both --tls-cert and --tls-key")
	}
	l, err := cfg.open()
	if err != nil {
		return nil, err
	}
	if l.Listener, err = cfg.guard(l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.URL = cfg.url(l)
	return l, nil
}

// open finds the bare socket.
func (c Config) open() (*Listener, error) {
	inherited, err := inherited()
	if err != nil {
		return nil, err
	}
	switch path, isUnix := strings.CutPrefix(c.Address, unixPrefix); {
	case c.Address == "" && inherited != nil:
		l := &Listener{Listener: inherited, Inherited: true}
		if inherited.Addr().Network() == "unix" {
			l.Socket = inherited.Addr().String()
		}
		return l, nil
	case inherited != nil:
		return nil, errors.Join(fmt.Errorf("systemd has opened %s for this server and --listen names %s: leave one out", inherited.Addr(), c.Address), inherited.Close())
	case isUnix:
		return openUnix(path, c.Log)
	}
	address := cmp.Or(c.Address, DefaultAddress)
	if err := CheckAddress(address); err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	where, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	if err := c.permit(where); err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp", where)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return &Listener{Listener: l}, nil
}

// permit refuses what others could read on its way.
func (c Config) permit(where net.Addr) error {
	tcp, ok := where.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || c.CertFile != "" || c.PlainHTTP {
		return nil
	}
	return Usage("%s can be reached by others, and tokens and files would cross the network in the clear: "+
		"give --tls-cert and --tls-key, listen on a loopback address behind a proxy with TLS, or say --insecure-plain-http", where)
}

// guard puts the bound on connections, and TLS, before a socket.
func (c Config) guard(l *Listener) (net.Listener, error) {
	if err := c.permit(l.Addr()); err != nil {
		return l.Listener, err
	}
	limited := newLimiter(l.Listener, c.maxConnections, c.CertFile == "", c.Log)
	l.Connections = limited.limit
	if c.CertFile == "" {
		return limited, nil
	}
	if l.Socket != "" {
		return l.Listener, Usage("a Unix socket does not leave the machine: leave --tls-cert and --tls-key out")
	}
	return withTLS(limited, c.CertFile, c.KeyFile, c.Log)
}

// url is the address shown to the user.
func (c Config) url(l *Listener) string {
	scheme := "http://"
	if c.CertFile != "" {
		scheme = "https://"
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return scheme + "localhost"
	}
	host := tcp.IP.String()
	switch {
	case len(c.Hosts) > 0 && !tcp.IP.IsLoopback():
		host = c.Hosts[0]
	case tcp.IP.IsUnspecified():
		host = "localhost"
	}
	return scheme + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// inherited returns the one socket that systemd has opened for this process, or nil. It removes the variables
// for it from the environment, so that no command takes it for its own.
func inherited() (net.Listener, error) {
	files := activation.Files(true)
	if len(files) == 0 {
		return nil, nil
	}
	defer func() {
		for _, f := range files {
			f.Close() // a listener has its own descriptor
		}
	}()
	if len(files) > 1 {
		return nil, fmt.Errorf("systemd has opened %d sockets, one is served: leave one ListenStream= in the socket unit", len(files))
	}
	l, err := net.FileListener(files[0])
	if err != nil {
		return nil, fmt.Errorf("the socket that systemd has opened: %w", err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // it is systemd's
	}
	return l, nil
}
