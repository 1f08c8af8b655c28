// Package proxy is the way out of a sandbox's network: it connects commands to the hosts that are allowed, and notes
// which others were wanted.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Rules say which hosts are reached, as [github.com/toolhost/toolhost/guard/sandbox.Network] describes them.
type Rules struct {
	AllowedDomains, DeniedDomains []string
	AllowPrivate                  bool
	// Caller returns the command whose program has a connection. from is the address of the program's socket, and to
	// the address that it is connected to. Nil: the caller is not known.
	Caller func(from, to netip.AddrPort) Caller
	// Local reports whether a program of this machine listens on a port of its loopback interface, and why commands
	// never reach that port; why is "" if they may. Nil: commands reach no port.
	Local func(port int) (open bool, why string)
	// Inside connects to a port of the loopback interface of the sandbox. Programs that ignore no_proxy send requests
	// for that interface to the proxy. Nil: the sandbox has none.
	Inside func(ctx context.Context, port int) (net.Conn, error)
	// Secrets are put into requests to their hosts, whose certificates are verified by Roots. If Roots is nil, those
	// of the system are used.
	Secrets []Secret
	Roots   *x509.CertPool
}

// A Caller is the command whose program has a connection.
type Caller struct {
	// Program is the program, after those that have started it: "npm → node". It is "" if that is not known.
	Program string
	// Ask reports whether a host that no list names may be reached. It may wait for a person. why is the reason of a
	// refusal; "" if the reason is only that no list names the host. Nil: such a host may not be reached.
	Ask func(ctx context.Context, host, port string) (allowed bool, why string)
	// Used is called when a secret is put into a request to a host, or when the request is refused because of it, with
	// the reason. It may be nil.
	Used func(secret, host, port, refused string)
}

// DialFunc opens a connection to an address that has been judged already.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// ResolveFunc returns the addresses of a host.
type ResolveFunc func(ctx context.Context, host string) ([]netip.Addr, error)

// A Refusal is a host that commands asked for and did not get.
type Refusal struct {
	Host    string // with the port, as it was asked for
	Program string // that asked for it first, see [Caller]
	Why     string // one sentence
	Count   int    // how often
}

// maxRefusals bounds how many hosts [Refusals] holds.
const maxRefusals = 100

// Refusals collects refusals until [Refusals.Take].
type Refusals struct {
	mu   sync.Mutex
	list []Refusal
}

// Add adds a refusal. It only counts further refusals of a host.
func (rs *Refusals) Add(r Refusal) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	i := slices.IndexFunc(rs.list, func(known Refusal) bool { return known.Host == r.Host })
	if i < 0 {
		if i = len(rs.list); i == maxRefusals {
			return
		}
		rs.list = append(rs.list, r)
	}
	rs.list[i].Count++
}

// Take removes the refusals and returns them.
func (rs *Refusals) Take() []Refusal {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	list := rs.list
	rs.list = nil
	return list
}

// NotAllowed is the reason of a refusal if no list names the host.
const NotAllowed = "it is not in sandbox.network.allowedDomains"

// denied is the reason of a refusal if the rules deny the host.
const denied = "it is denied by sandbox.network.deniedDomains"

const (
	// dialTimeout is how long the proxy tries to reach a host.
	dialTimeout = 30 * time.Second
	// halfOpenTime is how long a host may be silent after the program has ended its direction. The proxy cannot tell
	// a host that still works from one that is gone, and a host beyond a partition is silent for ever.
	halfOpenTime = 20 * time.Second
	// maxConns bounds the connections of one sandbox. There is no time limit on what a program sends: a slow program
	// delays its own sandbox only.
	maxConns = 1024
)

// A Proxy is the only way out of a network namespace: an HTTP proxy that knows plain requests and CONNECT. It listens
// inside and runs outside. It also runs where no host is allowed, to record which hosts were wanted.
type Proxy struct {
	rules   Rules
	address string
	conns   *limited
	server  *http.Server
	forward *httputil.ReverseProxy
	dial    DialFunc
	resolve ResolveFunc
	ctx     context.Context // ends tunnels with the sandbox
	cancel  context.CancelFunc
	serving sync.WaitGroup

	secrets  secrets
	reader   *http.Server  // of requests to hosts that get secrets
	sessions chan net.Conn // with such requests
	resumed  tls.ClientSessionCache
	signing  chan struct{} // has an element for each body that is held

	refused Refusals
}

// Start serves the connections of a listener, which is closed with the proxy. A nil dial is a net.Dialer, a nil
// resolve net.DefaultResolver.
func Start(l net.Listener, rules Rules, dial DialFunc, resolve ResolveFunc) *Proxy {
	p := &Proxy{rules: rules, address: l.Addr().String(), conns: limitListener(l, maxConns), dial: dial, resolve: resolve,
		secrets: secrets{all: rules.Secrets}}
	if p.dial == nil {
		p.dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if p.resolve == nil {
		p.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if len(rules.Secrets) > 0 {
		p.readRequests()
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.In.URL.Host // what was judged, not what the Host header says
			r.Out.Header.Del("Proxy-Connection")
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(ctx.Value(asking{}).(context.Context), cancel)()
				return p.reach(ctx, address)
			},
			DisableKeepAlives:      true,
			ResponseHeaderTimeout:  0, // the command's own limits apply
			MaxResponseHeaderBytes: 1 << 20,
		},
		ErrorHandler: p.fail,
	}
	p.server = &http.Server{
		Handler:     http.HandlerFunc(p.serve),
		ErrorLog:    discardLog,
		ConnState:   p.conns.note,
		BaseContext: func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return between(ctx, c.RemoteAddr(), c.LocalAddr())
		},
	}
	p.serving.Go(func() { p.server.Serve(p.conns) })
	return p
}

// Env tells programs where the proxy is. Addresses inside the sandbox are
// reached without it.
func (p *Proxy) Env() []string {
	url := "http://" + p.address
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+url, strings.ToLower(name)+"="+url)
	}
	const direct = "localhost,127.0.0.1,::1"
	return append(env, "NO_PROXY="+direct, "no_proxy="+direct, "NODE_USE_ENV_PROXY=1")
}

// Refused returns and forgets what was refused.
func (p *Proxy) Refused() []Refusal { return p.refused.Take() }

// note notes a refusal. ctx is that of the connection.
func (p *Proxy) note(ctx context.Context, e *refusedError) {
	if e.program == "" || e.secret != "" {
		c := p.caller(ctx)
		e.program = c.Program
		if host, port, err := net.SplitHostPort(e.host); err == nil && e.secret != "" && c.Used != nil {
			c.Used(e.secret, host, port, e.why)
		}
	}
	p.refused.Add(Refusal{Host: e.host, Program: e.program, Why: e.why})
}

// ends is the key of the addresses of a connection in its context.
type ends struct{}

// between returns the context of a connection from one address to another.
func between(ctx context.Context, from, to net.Addr) context.Context {
	a, _ := netip.ParseAddrPort(from.String())
	b, _ := netip.ParseAddrPort(to.String())
	return context.WithValue(ctx, ends{}, [2]netip.AddrPort{a, b})
}

// asking is the key under which the context of a dial has the context of its request. They differ because a transport
// lets a dial outlive its request.
type asking struct{}

// caller returns who has the connection of a context.
func (p *Proxy) caller(ctx context.Context) (c Caller) {
	if at, ok := ctx.Value(ends{}).([2]netip.AddrPort); ok && p.rules.Caller != nil {
		c = p.rules.Caller(at[0], at[1])
	}
	return c
}

// Close ends every connection and returns when none is served any more.
func (p *Proxy) Close() {
	p.cancel()
	p.server.Close()
	if p.reader != nil {
		p.reader.Close()
	}
	p.serving.Wait()
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		if secret := (&request{Request: r, secrets: &p.secrets,
			may: func(*Secret) bool { return false }}).stray(); secret != nil {
			refusal := straying(secret, net.JoinHostPort(CanonicalHost(r.URL.Hostname()), cmp.Or(r.URL.Port(), "80")),
				false)
			p.note(r.Context(), refusal)
			misdirected(w, refusal)
			return
		}
		p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), asking{}, r.Context())))
	default:
		http.Error(w, "this is the proxy of a sandbox; it takes http URLs and CONNECT", http.StatusBadRequest)
	}
}

// tunnel connects a command to a host and copies bytes both ways.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	host, err := p.connect(r.Context(), r.Host)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer host.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	stop := context.AfterFunc(p.ctx, func() { client.Close(); host.Close() })
	defer stop()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if t, ok := host.(*Terminated); ok {
		t.Relay(&begun{client, buffered})
		return
	}
	relay(&begun{client, buffered}, host)
}

// relay copies bytes both ways until both sides have ended.
func relay(client, host net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(host, client)
		closeWrite(host)
		host.SetReadDeadline(time.Now()) // wakes the copy below, which then waits for halfOpenTime at most
	}()
	if _, err := io.Copy(client, host); errors.Is(err, os.ErrDeadlineExceeded) {
		io.Copy(client, bufferedConn{host})
	}
	closeWrite(client)
	<-done
}

// bufferedConn reads from a host until the host has been silent for halfOpenTime.
type bufferedConn struct{ net.Conn }

func (s bufferedConn) Read(p []byte) (int, error) {
	s.SetReadDeadline(time.Now().Add(halfOpenTime))
	return s.Conn.Read(p)
}

// closeWrite passes the end of one direction on.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}

// refusedError is a verdict, as opposed to a failure of the network.
type refusedError struct {
	host, why string
	program   string // "": not known, or not looked for
	secret    string // because of which it is refused; or ""
}

func (e *refusedError) Error() string { return e.host + " is refused: " + e.why }

// fail answers a command whose request could not be served.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *refusedError
	if errors.As(err, &refusal) {
		p.note(r.Context(), refusal)
		http.Error(w, "sandbox: "+refusal.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "sandbox: "+err.Error(), http.StatusBadGateway)
}
