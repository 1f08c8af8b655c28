package metrics

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/mcpserver"
)

// Path is the URL path of the metrics.
const Path = "/metrics"

// Bounds of the listener: a scrape is small, and takes milliseconds.
const (
	headerTime = 5 * time.Second
	writeTime  = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 16 << 10
	// maxConnections are plenty for scrapers; without a bound any client of the address could take all descriptors of the
	// process.
	maxConnections = 64
)

// A Config says where and to whom the metrics are served.
type Config struct {
	// Address is host:port. Without a host it is the loopback address.
	Address string
	// TokenFile holds the bearer token that a scraper presents. Without one only loopback addresses are served,
	// to every user of this machine.
	TokenFile string
	// Version is the value of a metric.
	Version string
	// Log receives what goes wrong. It must not be nil.
	Log *slog.Logger
}

// A Site serves the metrics of one host.
type Site struct {
	metrics  *Metrics
	cfg      Config
	listener net.Listener
	token    string
}

// Listen begins to listen, so that an address that cannot be had is known before anything is served.
func (m *Metrics) Listen(cfg Config) (*Site, error) {
	host, port, err := net.SplitHostPort(cfg.Address)
	if err != nil && !strings.Contains(cfg.Address, ":") {
		host, port, err = "", cfg.Address, nil
	}
	if err == nil {
		err = listen.CheckAddress(net.JoinHostPort(host, port))
	}
	if err != nil {
		return nil, listen.Usage("the address for metrics %q: it must be like 127.0.0.1:9464 or :9464: %w", cfg.Address, err)
	}
	host = cmp.Or(host, "127.0.0.1")
	s := &Site{metrics: m, cfg: cfg}
	if cfg.TokenFile != "" {
		if s.token, err = mcpserver.ReadToken(cfg.TokenFile); err != nil {
			return nil, fmt.Errorf("--metrics-token-file: %w", err)
		}
	} else if ip := net.ParseIP(host); (ip == nil || !ip.IsLoopback()) && host != "localhost" {
		return nil, listen.Usage("metrics on %s can be read by others: name the file with the token that they must present (--metrics-token-file), or a loopback address", cfg.Address)
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

// Addr is the address that it listens on.
func (s *Site) Addr() net.Addr { return s.listener.Addr() }

// Close gives the address free. A site that was served needs none.
func (s *Site) Close() error { return s.listener.Close() }

// Serve answers scrapers until ctx is done. held returns what the host holds.
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
		_, _ = w.Write(s.metrics.write(held(), s.cfg.Version)) // a scraper that is gone needs no answer
	})
	web := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })() // a scrape that is cut off comes again
	if err := web.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// admit refuses requests that do not come from a scraper: from a web page whose name was rebound to this machine, or
// without the token.
func (s *Site) admit(r *http.Request) (status int, text string) {
	if s.token != "" {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(s.token))
		if subtle.ConstantTimeCompare(given[:], want[:]) != 1 || !strings.EqualFold(scheme, "Bearer") {
			return http.StatusUnauthorized, "a bearer token is needed"
		}
		return 0, ""
	}
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = strings.Trim(r.Host, "[]")
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() || strings.EqualFold(name, "localhost") {
		return 0, ""
	}
	return http.StatusForbidden, "the metrics are not addressed by this name"
}
