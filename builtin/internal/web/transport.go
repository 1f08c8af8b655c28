package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/guard"
)

var (
	errTime = fmt.Errorf("there was no whole answer within %v, the limit of this host", Timeout)
	errSize = fmt.Errorf("the answer is longer than %d MiB, the limit of this host; fetch a part of it, or use Bash with "+
		"curl where the host is allowed", maxBody>>20)
	errBomb = fmt.Errorf("the answer becomes more than %d times longer when it is decompressed, which this host does "+
		"not do", maxRatio)
)

// get fetches one hop into resp when it is the host's turn. An http address is tried over https first, and over http
// only if the settings open the host and port.
func (c *Client) get(ctx context.Context, r *Request, f guard.Fetch, u *url.URL, resp *Response) error {
	if !f.Own {
		done, err := c.hosts.wait(ctx, f.Host)
		if err != nil {
			return c.failure(ctx, f, err)
		}
		defer done()
	}
	if u.Scheme == "http" && !f.Own {
		secure := *u
		secure.Scheme = "https"
		if s, err := guard.FetchOf(&secure); err == nil && r.May(s) == nil {
			try, cancel := context.WithTimeout(ctx, Timeout/4)
			defer cancel()
			if c.exchange(try, r, s, &secure, resp) == nil {
				return nil
			}
		}
	}
	if err := c.exchange(ctx, r, f, u, resp); err != nil {
		return c.failure(ctx, f, err)
	}
	return nil
}

// failure returns an error that says what failed, and whether this host or the server is the cause.
func (c *Client) failure(ctx context.Context, f guard.Fetch, err error) error {
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errTime):
		return fmt.Errorf("%s: %w", f.Host, errTime)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isDNS && dns.IsNotFound:
		return fmt.Errorf("the name %s does not exist (DNS); check its spelling", f.Host)
	case isDNS:
		return fmt.Errorf("the name %s could not be looked up (DNS): %s. This is of the network of this host; try "+
			"again later", f.Host, dns.Err)
	case errors.As(err, &cert), errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is not valid (TLS): %w", f.Host, err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s does not support TLS on port %s, and this host fetches over https; a person can open http "+
			"there: add %q to web.allowPrivate of the user settings",
			f.Host, f.Port, net.JoinHostPort(f.Host, "80"))
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return fmt.Errorf("the headers of %s are longer than %d KB, the limit of this host", f.Host, maxHeaders>>10)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s could not be fetched: %w", f.Host, err)
}

// exchange makes one request on its own connection, to a checked address.
func (c *Client) exchange(ctx context.Context, r *Request, f guard.Fetch, u *url.URL, resp *Response) error {
	via, err := c.proxyFor(f, u)
	if err != nil {
		return err
	}
	if !f.Own {
		if err := r.Web.Reachable(f); err != nil { // checks the name before it is resolved
			return err
		}
	}
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
		TLSHandshakeTimeout: handshakeTime, TLSClientConfig: c.tls.Clone(),
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2: one answer per connection
	}
	if via != nil {
		transport.Proxy = http.ProxyURL(via) // the proxy resolves the name
	} else {
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return c.connect(ctx, r, f)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", accepted)
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("User-Agent", c.userAgent(r))
	var hide func(text string) string
	if u.Scheme == "https" && !f.Own && r.Header != nil {
		if hide, err = r.Header(ctx, f, req.Header); err != nil {
			return err
		}
	}
	got, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	body, err := readBody(got)
	if err != nil {
		return err
	}
	if hide != nil {
		body = []byte(hide(string(body)))
		for _, values := range got.Header {
			for i := range values {
				values[i] = hide(values[i])
			}
		}
	}
	resp.URL, resp.Status, resp.Header, resp.Body = u, got.StatusCode, got.Header, body
	return nil
}

func (c *Client) userAgent(r *Request) string {
	if agent := r.Web.UserAgent(); agent != "" {
		return agent
	}
	return c.agent
}

// proxyFor returns the proxy that the environment names for a hop, or nil.
func (c *Client) proxyFor(f guard.Fetch, u *url.URL) (*url.URL, error) {
	if f.Own || c.proxy == nil {
		return nil, nil
	}
	return c.proxy(u)
}

// connect resolves the host once, checks every address, and connects to one of these addresses.
func (c *Client) connect(ctx context.Context, r *Request, f guard.Fetch) (net.Conn, error) {
	if f.Own {
		return r.Own(ctx, f.Port)
	}
	addresses, err := c.addresses(ctx, f.Host)
	if err != nil {
		return nil, err
	}
	if err := r.Web.Reachable(f, addresses...); err != nil {
		return nil, err
	}
	err = fmt.Errorf("the name %s has no address", f.Host)
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = c.dial(ctx, "tcp", net.JoinHostPort(a.String(), f.Port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// readBody reads a body within its limits, decompressed.
func readBody(got *http.Response) ([]byte, error) {
	if got.ContentLength > maxBody {
		return nil, errSize
	}
	counted := &counter{Reader: got.Body}
	var from io.Reader = counted
	encoding := strings.ToLower(strings.TrimSpace(got.Header.Get("Content-Encoding")))
	switch encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(counted)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the answer says that it is gzip and is not: %w", err)
		}
		from = unzipped
	default:
		return nil, fmt.Errorf("the server compressed the answer with %.20q, which was not offered", encoding)
	}
	var body bytes.Buffer
	for body.Len() <= maxBody {
		n, err := io.CopyN(&body, from, 64<<10)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the answer ended early, after %d bytes: %w", body.Len(), err)
		}
		if body.Len() > ratioFrom && int64(body.Len()) > maxRatio*counted.n {
			return nil, errBomb
		}
		if err != nil || n == 0 {
			return body.Bytes(), nil
		}
	}
	return nil, errSize
}

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// Limits for one server.
const (
	atOnce    = 4
	perSecond = 2
	maxHosts  = 1000 // that are remembered
)

// hosts limits the requests to each host.
type hosts struct {
	mu  sync.Mutex
	all map[string]*hostLimit
}

type hostLimit struct {
	running chan struct{}
	rate    *rate.Limiter
}

// wait waits until a request to a host may be made. The caller calls done after the request.
func (h *hosts) wait(ctx context.Context, host string) (done func(), err error) {
	h.mu.Lock()
	l := h.all[host]
	if l == nil {
		if len(h.all) >= maxHosts || h.all == nil {
			h.all = map[string]*hostLimit{}
		}
		l = &hostLimit{running: make(chan struct{}, atOnce), rate: rate.NewLimiter(perSecond, perSecond)}
		h.all[host] = l
	}
	h.mu.Unlock()
	select {
	case l.running <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func() { <-l.running }
	if err := l.rate.Wait(ctx); err != nil {
		done()
		return nil, fmt.Errorf("%d requests a second are sent to one host, and too many wait already: %w",
			perSecond, err)
	}
	return done, nil
}

// addresses returns the addresses of a host.
func (c *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	list, err := c.resolve(ctx, host)
	for i := range list {
		list[i] = list[i].Unmap()
	}
	return list, err
}
