package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// Path is the URL path of the metrics.
const Path = "/metrics"

// Limits of the listener: a scrape is small, and takes milliseconds.
const (
	headerTime = 5 * time.Second
	writeTime  = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 16 << 10
	// maxConnections is enough for scrapers. Without a limit, any client that can connect could use up the descriptors
	// of the process.
	maxConnections = 64
)

// A Config says where the metrics are served, and to whom.
type Config struct {
	// Address is host:port. Without a host it is the loopback address.
	Address string
	// TokenFile has the bearer token that a scraper must send. Without it only loopback addresses are served, to every
	// user of this machine.
	TokenFile string
	// Version is the value of a metric.
	Version string
	// Log gets warnings and errors. It must not be nil.
	Log *slog.Logger
}

// A Site serves the metrics of one host, or of the server of workspaces.
type Site struct {
	page     func(mcpserver.Stats) []byte
	cfg      Config
	listener net.Listener
	verifier auth.Verifier // nil: there is no token
}

// Listen starts to listen, so that an error is known before anything is served.
func (m *Metrics) Listen(cfg Config) (*Site, error) {
	return newSite(cfg, func(held mcpserver.Stats) []byte { return m.write(held, cfg.Version) })
}

// newSite listens.
func newSite(cfg Config, page func(mcpserver.Stats) []byte) (*Site, error) {
	host, port, err := net.SplitHostPort(cfg.Address)
	if err != nil && !strings.Contains(cfg.Address, ":") {
		host, port, err = "", cfg.Address, nil
	}
	if err == nil {
		err = listen.CheckAddress(net.JoinHostPort(host, port))
	}
	if err != nil {
		return nil, listen.Usage("the address for metrics %q: it must be like 127.0.0.1:9464 or :9464: %w",
			cfg.Address, err)
	}
	host = cmp.Or(host, "127.0.0.1")
	s := &Site{page: page, cfg: cfg}
	if cfg.TokenFile != "" {
		token, err := mcpserver.ReadToken(cfg.TokenFile)
		if err == nil {
			s.verifier, err = auth.NewStaticToken(token, "scraper")
		}
		if err != nil {
			return nil, fmt.Errorf("--metrics-token-file: %w", err)
		}
	} else if !guard.IsLoopback(host) {
		return nil, listen.Usage("metrics on %s can be read by others: name the file with the token that they must present "+
			"(--metrics-token-file), or a loopback address", cfg.Address)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s.listener = listen.Bound(l, maxConnections, cfg.Log)
	return s, nil
}

// URL returns the address of the metrics.
func (s *Site) URL() string { return "http://" + s.listener.Addr().String() + Path }

// Addr returns the address of the listener.
func (s *Site) Addr() net.Addr { return s.listener.Addr() }

// Close stops listening. It is not needed after Serve.
func (s *Site) Close() error { return s.listener.Close() }

// Serve answers scrapers until ctx is done. held returns the state of the host.
func (s *Site) Serve(ctx context.Context, held func() mcpserver.Stats) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		if status, text := s.admit(r); status != 0 {
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="toolhost metrics"`)
			}
			http.Error(w, text, status)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(s.page(held())) // fails if the scraper is gone
	})
	web := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: writeTime,
		IdleTimeout:    idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })() // a scraper repeats a scrape that was cut off
	if err := web.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// admit refuses requests without the token. If there is none, it refuses those of web pages.
func (s *Site) admit(r *http.Request) (status int, text string) {
	if s.verifier != nil {
		bearer, _ := auth.ParseAuthorization(r.Header.Values("Authorization"))
		if _, err := s.verifier.Verify(r.Context(), bearer); err != nil {
			return http.StatusUnauthorized, "a bearer token is needed"
		}
		return 0, ""
	}
	if mcpserver.CheckAddress(r, nil) != nil {
		return http.StatusForbidden, "the metrics are not addressed by this name"
	}
	return 0, ""
}
