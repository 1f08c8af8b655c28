package console

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/mcpserver"
)

// Limits of the server.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 32 << 10
	// maxConnections bounds the connections, so that another user's leave the host its descriptors. A browser has a
	// few for each page.
	maxConnections = 256
	// maxForm bounds what a form may hold, in bytes.
	maxForm = 1 << 20
	// writeTime bounds how long a browser may leave unread what was sent to it.
	writeTime = 30 * time.Second
	// closeTime bounds the wait for requests that run when the console closes.
	closeTime = time.Second
)

// A Config says where a console is served.
type Config struct {
	// Listen is the loopback address, as host:port; port 0 picks one. [AnyLoopback] is a good default. Empty: a
	// socket in the state directory, for [Forward].
	Listen string
	// StateDir is where the way in is kept. It must be one that commands cannot read: the host's own.
	StateDir string
	// Kind names the transport of the host, for people who choose among several.
	Kind string
	// Log receives what goes wrong. It must not be nil.
	Log *slog.Logger
}

// A Server serves the pages of a console. Use [Console.Open], and then always Serve, which releases what Open took.
type Server struct {
	*website
	log      *slog.Logger
	listener net.Listener
	stop     context.CancelFunc
	// away serves the links to single questions; nil: there are none.
	away      net.Listener
	awayPages http.Handler

	mu       sync.Mutex
	instance *instanceFile // with the code that is good now
}

// Open makes a console ready to be served: it listens, and writes its link to the state directory.
func (c *Console) Open(host *mcpserver.Host, cfg Config) (*Server, error) {
	operator := host.Operator()
	s := &Server{log: cfg.Log, website: &website{
		console: c, host: host, operator: operator, cross: http.NewCrossOriginProtection(), kind: cfg.Kind, roots: realPaths(operator.Roots()),
	}}
	s.short = shortener(s.roots[0])
	id := make([]byte, 4)
	_, _ = rand.Read(id) // crypto/rand never fails
	inst := Instance{ID: hex.EncodeToString(id), PID: os.Getpid(), Kind: cfg.Kind, Roots: operator.Roots(), Began: time.Now()}
	rec, err := openInstanceFile(cfg.StateDir, inst)
	if err != nil {
		return nil, fmt.Errorf("the console cannot be opened from the state directory: %w", err)
	}
	if s.listener, err = rec.listen(cfg.Listen); err != nil {
		return nil, errors.Join(fmt.Errorf("the console cannot listen: %w", err), rec.remove())
	}
	if !strings.HasSuffix(cfg.Listen, ":0") { // a port that the system picked is used only once
		host.KeepPort(s.listener.Addr())
	}
	s.instance = rec
	c.mu.Lock()
	c.base = rec.file.URL
	c.mu.Unlock()
	s.closing, s.stop = context.WithCancel(context.Background())
	s.sessions = newSessionStore(inst.ID, s.keepCode)
	if err := s.listenAway(cfg); err != nil {
		s.noAway = err.Error()
		s.log.Warn("questions are not announced", "error", err)
	}
	return s, nil
}

// realPaths follows symbolic links, as far as there are any.
func realPaths(paths []string) []string {
	var all []string
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		all = append(all, p)
	}
	return all
}

// listen opens the address, or the socket of the instance, and notes the address.
func (r *instanceFile) listen(address string) (net.Listener, error) {
	if address != "" {
		if err := loopbackOnly(address); err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, err
		}
		r.file.URL = "http://" + l.Addr().String()
		return l, nil
	}
	path := r.file.Socket()
	l, err := net.Listen("unix", path)
	if err != nil {
		if len(path) > maxSocketPath {
			err = fmt.Errorf("%w: the path %s is too long for a socket, name a shorter --state-dir", err, path)
		}
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil { // the folder is owner-only already
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// maxSocketPath is what the systems allow at least for the path of a socket, in bytes.
const maxSocketPath = 103

// keepCode keeps a new code where the owner finds it. The doorkeeper calls it one code at a time.
func (s *Server) keepCode(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instance.file.Code = code
	if err := s.instance.write(); err != nil {
		s.log.Warn("a way into the console could not be kept: no further browser can enter", "error", err)
	}
}

// URL returns the console's address; empty for a socket. A link from Link opens it once.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instance.file.URL
}

// Link returns a link that logs in one browser.
func (s *Server) Link() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Link(s.instance.file.URL, s.instance.file.Code)
}

// Serve serves the pages until ctx is done, and then takes the way in away.
func (s *Server) Serve(ctx context.Context) error {
	all := map[net.Listener]*http.Server{s.listener: s.webServer(s.routes())}
	if s.away != nil {
		all[s.away] = s.webServer(s.awayPages)
	}
	failed := make(chan error, len(all))
	for l, web := range all {
		go func() { failed <- web.Serve(listen.Bound(l, maxConnections, s.log)) }()
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.stop()
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	for _, web := range all {
		if web.Shutdown(rest) != nil {
			err = errors.Join(err, web.Close())
		}
	}
	return errors.Join(err, s.instance.remove())
}

func (s *Server) webServer(pages http.Handler) *http.Server {
	return &http.Server{
		Handler: pages, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), ConnState: listen.Watch,
	}
}

// AnyLoopback is an address to listen on, with a port that is free. On Linux it is one that nothing else uses: a
// browser sends a cookie to all ports of an address, and 127.0.0.1 is where commands publish theirs.
func AnyLoopback() string {
	if runtime.GOOS == "linux" {
		b := make([]byte, 3)
		_, _ = rand.Read(b) // crypto/rand never fails
		address := fmt.Sprintf("127.%d.%d.%d", 1+b[0]%254, b[1], 1+b[2]%254)
		if l, err := net.Listen("tcp", address+":0"); err == nil {
			_ = l.Close()
			return address + ":0"
		}
	}
	return "127.0.0.1:0"
}

// loopbackOnly refuses addresses that others can reach.
func loopbackOnly(address string) error {
	if name, _, err := net.SplitHostPort(address); err != nil || !isLoopback(name) {
		return listen.Usage("%q is not a loopback address such as 127.0.0.1:0, and others must not reach the console", address)
	}
	return nil
}

// isLoopback reports whether a host name, without a port, is this machine's loopback without a look-up: no DNS server
// can answer for it.
func isLoopback(name string) bool {
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return ip != nil && ip.IsLoopback() || strings.EqualFold(name, "localhost")
}

// isLoopbackHost is isLoopback for the Host of a request, which may have a port.
func isLoopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return isLoopback(name)
}
