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
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

// Limits of the server.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 32 << 10
	// maxConnections bounds the connections, so that those of another user do not use up the descriptors of the host. A
	// browser has a few for each page.
	maxConnections = 256
	// maxForm is how many bytes a form may have.
	maxForm = 1 << 20
	// writeTime is how long a browser may take to read a response.
	writeTime = 30 * time.Second
	// closeTime is how long to wait for running requests when the console closes.
	closeTime = time.Second
)

// A Config says where a console is served.
type Config struct {
	// Listen is the loopback address, as host:port; port 0 lets the system choose one. [AnyLoopback] is a good default.
	// If Listen is empty, the console listens on a socket in the state directory, for [Forward].
	Listen string
	// StateDir is where the link is stored. It must be the state directory of the host, which commands cannot read.
	StateDir string
	// Kind is the transport of the host, shown to people who choose between consoles.
	Kind string
	// Log gets warnings and errors. It must not be nil.
	Log *slog.Logger
}

// A Server serves the pages of a console. Create it by [Console.Open]. Serve must then be called, because it releases
// what Open has acquired.
type Server struct {
	*website
	log      *slog.Logger
	listener net.Listener
	stop     context.CancelFunc
	// away serves the links to single questions; nil if there are none.
	away      net.Listener
	awayPages http.Handler

	mu       sync.Mutex
	instance *instanceFile // has the code that is valid now
}

// Open prepares a console for Serve: it listens, and writes its link to the state directory.
func (c *Console) Open(host *mcpserver.Host, cfg Config) (*Server, error) {
	operator := host.Operator()
	s := &Server{log: cfg.Log, website: &website{
		console: c, host: host, operator: operator, cross: http.NewCrossOriginProtection(), kind: cfg.Kind,
		roots: realPaths(operator.Roots()),
	}}
	s.short = shortener(s.roots[0])
	id := make([]byte, 4)
	_, _ = rand.Read(id) // crypto/rand never fails
	inst := Instance{ID: hex.EncodeToString(id), PID: os.Getpid(), Kind: cfg.Kind, Roots: operator.Roots(),
		Began: time.Now()}
	rec, err := openInstanceFile(cfg.StateDir, inst)
	if err != nil {
		return nil, fmt.Errorf("the console cannot be opened from the state directory: %w: name another with "+
			"--state-dir", err)
	}
	if s.listener, err = rec.listen(cfg.Listen); err != nil {
		return nil, errors.Join(fmt.Errorf("the console cannot listen: %w", err), rec.remove())
	}
	if !strings.HasSuffix(cfg.Listen, ":0") { // a port that the system chose differs each time
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

// realPaths returns paths with symbolic links resolved. A path that cannot be resolved stays as it is.
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

// listen listens on the address, or on the socket of the instance, and records the address.
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
	if err := os.Chmod(path, 0o600); err != nil { // the folder already keeps other users out
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// maxSocketPath is the longest path of a socket that all systems accept, in bytes.
const maxSocketPath = 103

// keepCode stores a new code for the owner. The session store calls it with one code at a time.
func (s *Server) keepCode(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instance.file.Code = code
	if err := s.instance.write(); err != nil {
		s.log.Warn("a way into the console could not be kept: no further browser can enter", "error", err)
	}
}

// URL returns the console's address, or "" for a socket. The link that Link returns opens it once.
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

// Serve serves the pages until ctx is done, and then removes the link.
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

// AnyLoopback returns an address to listen on, with port 0. On Linux it is a random loopback address that nothing
// else uses: browsers send cookies to all ports of an address, and commands usually listen on 127.0.0.1.
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

// loopbackOnly returns an error for an address that other machines can reach.
func loopbackOnly(address string) error {
	if name, _, err := net.SplitHostPort(address); err != nil || !guard.IsLoopback(name) {
		return listen.Usage("%q is not a loopback address such as 127.0.0.1:0, and others must not reach the console",
			address)
	}
	return nil
}

// isLoopbackHost is isLoopback for the Host of a request, which may have a port.
func isLoopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return guard.IsLoopback(name)
}
