// Package web fetches pages of the web and converts them to text for a model: the client with its address guard,
// robots.txt, the cache of each caller, the conversion of HTML, and the choice of the passages that a question is
// about.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/guard"
)

// Limits of one fetch.
const (
	// Timeout bounds a fetch with all its redirects.
	Timeout = 20 * time.Second
	// maxBody is the longest body, decoded, in bytes.
	maxBody = 10 << 20
	// maxRatio is by what factor a body of more than ratioFrom bytes may grow when it is decompressed.
	maxRatio  = 100
	ratioFrom = 1 << 20
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 64 << 10
	// maxRedirects is how many redirects are followed.
	maxRedirects = 5
	// handshakeTime bounds connecting, and the handshake of TLS.
	handshakeTime = 10 * time.Second
	// accepted is the Accept header.
	accepted = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1"
)

// A Client fetches pages for all callers of a host. It is safe for concurrent use.
type Client struct {
	agent  string // User-Agent where the settings name none
	cache  cache
	robots robotsCache
	hosts  hosts
	// searches limits the rate of searches.
	searches *rate.Limiter

	// What tests replace. No setting reaches them.
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	proxy   func(*url.URL) (*url.URL, error)
	tls     *tls.Config
}

// NewClient returns a client that sends the user agent agent.
func NewClient(agent string) *Client {
	return &Client{
		agent: agent, searches: rate.NewLimiter(1, 1), proxy: httpproxy.FromEnvironment().ProxyFunc(),
		resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		dial: (&net.Dialer{Timeout: handshakeTime}).DialContext,
	}
}

// A Request is one fetch.
type Request struct {
	// URL is what to fetch; its fragment is not sent.
	URL *url.URL
	// Caller owns the cached answers.
	Caller string
	// Web holds the settings.
	Web guard.Web
	// May returns nil if the hop may be fetched. It is called for every redirect, and for cached answers.
	May func(guard.Fetch) error
	// Own connects to a port that a task of the caller listens on. Nil: there is none.
	Own func(ctx context.Context, port string) (net.Conn, error)
	// OwnPort reports whether Own reaches a port.
	OwnPort func(port string) bool
	// Header adds credentials to the header of a request over TLS. It returns a function that hides them in the answer,
	// or nil if it has added none. It may be nil: there are no credentials.
	Header func(ctx context.Context, f guard.Fetch, header http.Header) (hide func(text string) string, err error)
}

// A Response is the answer of a server.
type Response struct {
	// URL is the address of the body. Hops are all requests that were made for it, including the last.
	URL  *url.URL
	Hops []guard.Fetch
	// Status and Header are those of the server; Body is decompressed.
	Status int
	Header http.Header
	Body   []byte
	// Redirect is the target of a redirect that was not followed, or nil.
	Redirect *url.URL
	// Cached says that the response comes from the cache.
	Cached bool

	documents *documents
}

// Parse parses a URL as models write it: without a scheme it is https.
func Parse(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if head, _, ok := strings.Cut(text, "://"); !ok || strings.ContainsAny(head, "/?#") {
		scheme, after, colon := strings.Cut(text, ":")
		switch {
		case strings.HasPrefix(text, "//"):
			text = "https:" + text
		case colon && !strings.ContainsAny(scheme, "./?#[") &&
			(firstPart(after) == "" || strings.Trim(firstPart(after), "0123456789") != ""):
			return nil, fmt.Errorf("url: expected http or https, got the scheme %q", scheme)
		case IsLoopback(firstPart(text)):
			text = "http://" + text
		default:
			text = "https://" + text
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok { // without the URL, which may be long
			err = e.Err
		}
		return nil, fmt.Errorf("url: %w", err)
	}
	u.Scheme = strings.ToLower(u.Scheme)
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	return u, nil
}

// firstPart returns the part of a text before the first path, query or fragment.
func firstPart(text string) string {
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		return text[:i]
	}
	return text
}

// IsLoopback reports whether a host, with or without a port, names this machine.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || host == "127.0.0.1" || strings.Trim(host, "[]") == "::1"
}

// Hop returns the fetch of a URL, and the URL: over https, unless a task of the caller listens on that port, or the
// settings open the host and port as given.
func (r *Request) Hop(u *url.URL) (guard.Fetch, *url.URL, error) {
	plain := *u
	plain.Fragment, plain.RawFragment = "", ""
	f, err := guard.FetchOf(&plain)
	if err != nil {
		return f, nil, err
	}
	if plain.Scheme == "http" && IsLoopback(f.Host) && r.OwnPort != nil && r.OwnPort(f.Port) {
		f.Own = true
	} else if plain.Scheme == "http" && !r.Web.Opened(f) {
		plain.Scheme = "https"
		if plain.Port() == "80" {
			plain.Host = strings.TrimSuffix(plain.Host, ":80")
		}
		if f, err = guard.FetchOf(&plain); err != nil {
			return f, nil, err
		}
	}
	parsed, err := url.Parse(f.URL)
	return f, parsed, err
}

// Fetch fetches a page, or takes it from the caller's cache. Its error says whether this host or the server is the
// cause.
func (c *Client) Fetch(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, errTime)
	defer cancel()
	hop, u, err := r.Hop(r.URL)
	if err != nil {
		return nil, err
	}
	key := hop.URL
	if got := c.cache.get(r.Caller, key); got != nil && !slices.ContainsFunc(got.Hops,
		func(f guard.Fetch) bool { return r.May(f) != nil || !f.Own && r.Web.Reachable(f) != nil }) {
		return got, nil
	}
	resp := &Response{documents: &documents{}}
	for {
		resp.Hops = append(resp.Hops, hop)
		if err := c.robotsAllow(ctx, &r, hop, u); err != nil {
			return nil, err
		}
		if err := c.get(ctx, &r, hop, u, resp); err != nil {
			return nil, err
		}
		next := redirect(resp)
		if next == nil {
			break
		}
		if hop, u, err = c.follow(&r, resp, next); err != nil {
			return nil, err
		}
		if resp.Redirect != nil {
			return resp, nil
		}
		if len(resp.Hops) > maxRedirects {
			return nil, fmt.Errorf("the server redirects more than %d times, last to %s", maxRedirects, hop.URL)
		}
	}
	if resp.Status == http.StatusOK && !hop.Own && !noStore(resp.Header) {
		c.cache.put(r.Caller, key, resp)
	}
	return resp, nil
}

// follow returns the hop that a redirect leads to, or none if the redirect is not followed.
func (c *Client) follow(r *Request, resp *Response, next *url.URL) (guard.Fetch, *url.URL, error) {
	hop, u, err := r.Hop(next)
	if err != nil {
		return guard.Fetch{}, nil, fmt.Errorf("the server redirects to %s, which is not fetched: %w",
			next.Redacted(), err)
	}
	was := resp.Hops[len(resp.Hops)-1]
	if bareHost(was.Host) == bareHost(hop.Host) && was.Own == hop.Own {
		err = r.May(hop)
		if v, ok := errors.AsType[guard.Verdict](err); err == nil || ok && v.Action == guard.Deny {
			return hop, u, err
		}
	}
	resp.Redirect = next
	return guard.Fetch{}, nil, nil
}

// ShortURL returns the first 500 characters of a URL for display, without credentials.
func ShortURL(u *url.URL) string {
	text := u.Redacted()
	return text[:min(len(text), 500)]
}

func bareHost(host string) string { return strings.TrimPrefix(host, "www.") }

// redirect returns the target of an answer that redirects, otherwise nil.
func redirect(resp *Response) *url.URL {
	switch resp.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := resp.URL.Parse(strings.TrimSpace(resp.Header.Get("Location")))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil
	}
	return to
}

func noStore(h http.Header) bool {
	return strings.Contains(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), "no-store")
}
