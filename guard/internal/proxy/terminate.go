package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A connection to a host that gets secrets is a [Terminated]: it speaks TLS with the program as that host, and TLS
// with the host as the program would. In between are the requests, into which the secrets are put.

// maxStreams is how many requests of one connection are served at the same moment, for each of which a part of the
// answer is held.
const maxStreams = 100

// A Terminated is a connection to a host whose requests the proxy reads. The side of the program calls Relay.
type Terminated struct {
	net.Conn // to the host
	proxy    *Proxy
	ctx      context.Context // of the program's connection
	host     string
	port     string
	overTLS  bool // TLS is terminated, too
}

// address returns the host with its port.
func (t *Terminated) address() string { return net.JoinHostPort(t.host, t.port) }

// terminate wraps a connection to a host if requests to it are read.
func (p *Proxy) terminate(ctx context.Context, conn net.Conn, host, port string) net.Conn {
	read, overTLS := p.secrets.injects(host, port)
	if !read {
		return conn
	}
	return &Terminated{Conn: conn, proxy: p, ctx: ctx, host: host, port: port, overTLS: overTLS}
}

// Relay serves a program until its connection or that of the host ends, and closes both. Bytes flow both ways from
// the start: until the program has sent the beginning of a TLS handshake or of an HTTP request, the host may speak
// first.
func (t *Terminated) Relay(in net.Conn) {
	defer in.Close()
	defer t.Conn.Close()
	defer context.AfterFunc(t.proxy.ctx, func() { in.Close(); t.Conn.Close() })()
	spoken := make(chan bool)
	go func() {
		n, err := io.Copy(in, t.Conn) // an error shows below as well
		if err == nil {
			closeWrite(in)
		}
		spoken <- n > 0 || err == nil
	}()
	first, kind := sniff(in)
	t.Conn.SetReadDeadline(time.Unix(1, 0)) // ends the copy
	silent := !<-spoken
	t.Conn.SetReadDeadline(time.Time{})
	whole := &begun{in, io.MultiReader(bytes.NewReader(first), in)}
	if silent && (kind == httpBytes || kind == tlsBytes && t.overTLS) {
		t.serve(whole, kind == tlsBytes)
		return
	}
	relay(whole, t.Conn)
}

// The kinds of the first bytes of a connection.
const (
	opaqueBytes = iota
	tlsBytes
	httpBytes
)

// httpMethods begin the requests that are read without TLS.
var httpMethods = []string{"GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ", "OPTIONS "}

// sniff reads the first bytes of a program, and says what begins with them.
func sniff(in io.Reader) (first []byte, kind int) {
	const handshake = 0x16
	buf := make([]byte, 4096)
	for n := 0; ; {
		m, err := in.Read(buf[n:])
		n += m
		first = buf[:n]
		switch {
		case n > 0 && first[0] == handshake:
			return first, tlsBytes
		case slices.ContainsFunc(httpMethods, func(s string) bool { return bytes.HasPrefix(first, []byte(s)) }):
			return first, httpBytes
		case err != nil ||
			!slices.ContainsFunc(httpMethods, func(s string) bool { return strings.HasPrefix(s, string(first)) }):
			return first, opaqueBytes
		}
	}
}

// begun is a connection whose first bytes were read.
type begun struct {
	net.Conn
	r io.Reader
}

func (c *begun) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite ends one direction.
func (c *begun) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}

// A session is a connection of a program whose requests are read. It has its own connections to the host, because
// what a host remembers of a connection must concern one program only.
type session struct {
	net.Conn   // of the program
	to         *Terminated
	secure     bool
	offered    bool // a certificate
	done       chan struct{}
	once       sync.Once
	first      atomic.Pointer[net.Conn] // the connection to the host that has not been used yet
	forward    *httputil.ReverseProxy
	mu         sync.Mutex
	told       map[string]bool // names of secrets
	hosts      []net.Conn      // its connections to the host
	transports [2]*http.Transport
}

func (s *session) Close() error {
	s.once.Do(func() { close(s.done) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.hosts { // a request may go on
		conn.Close()
	}
	s.hosts = nil
	return s.Conn.Close()
}

// serve answers the requests of a connection until it ends.
func (t *Terminated) serve(in net.Conn, secure bool) {
	s := &session{Conn: in, to: t, secure: secure, done: make(chan struct{}), told: map[string]bool{}}
	s.first.Store(&t.Conn)
	for i := range s.transports {
		s.transports[i] = s.transport(i == 1)
		defer s.transports[i].CloseIdleConnections()
	}
	s.forward = &httputil.ReverseProxy{
		Rewrite: s.rewrite, Transport: s, ErrorLog: discardLog, ErrorHandler: s.fail,
		ModifyResponse: func(r *http.Response) error {
			carries, _ := r.Request.Context().Value(carriesKey{}).(bool)
			return hideEchoes(r, t.proxy.secrets.echoes, carries)
		},
	}
	var conn net.Conn = s
	if secure {
		secured := tls.Server(s, &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: s.certificate})
		if err := s.shake(secured); err != nil {
			return
		}
		conn = secured
	}
	select {
	case t.proxy.sessions <- conn:
		<-s.done
	case <-t.proxy.ctx.Done():
	}
}

// shake does the TLS handshake with the program.
func (s *session) shake(conn *tls.Conn) error {
	err := conn.HandshakeContext(s.to.proxy.ctx)
	if err != nil && s.offered && s.to.proxy.ctx.Err() == nil { // the program's alert may be lost with the connection
		s.to.proxy.note(s.to.ctx, &refusedError{host: s.to.address(), why: "the program ended the TLS handshake; it may " +
			"accept another certificate than that of the sandbox only"})
	}
	return err
}

// certificate answers a TLS handshake.
func (s *session) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if name := hello.ServerName; name != "" && CanonicalHost(name) != s.to.host {
		why := fmt.Sprintf("the connection was opened to %s, and TLS asks for %s", s.to.host, quoteHost(name))
		s.to.proxy.note(s.to.ctx, &refusedError{host: s.to.address(), why: why})
		return nil, errors.New(why)
	}
	a, err := ourAuthority()
	if err != nil {
		return nil, err
	}
	s.offered = true
	return a.certificateFor(s.to.host)
}

// transport returns a transport that sends requests to the host. It verifies the host by the roots of the system and
// the name that the program asked for. It offers HTTP/2 to the host if the program speaks it.
func (s *session) transport(h2 bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(h2)
	return &http.Transport{
		DialContext: s.dial,
		TLSClientConfig: &tls.Config{ServerName: s.to.host, RootCAs: s.to.proxy.rules.Roots,
			ClientSessionCache: s.to.proxy.resumed},
		Protocols:              &protocols,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true, // the program says what it takes
	}
}

// dial returns the connection that was made for the program when it is called first, and then new connections to the
// same host, which is judged again.
func (s *session) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if first := s.first.Swap(nil); first != nil {
		return *first, nil
	}
	ctx = context.WithValue(ctx, ends{}, s.to.ctx.Value(ends{}))
	conn, err := s.to.proxy.reach(ctx, s.to.address())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		conn.Close()
		return nil, net.ErrClosed
	default:
	}
	s.hosts = append(s.hosts, conn)
	return conn, nil
}

// RoundTrip implements [http.RoundTripper].
func (s *session) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ProtoMajor == 2 {
		return s.transports[1].RoundTrip(r)
	}
	return s.transports[0].RoundTrip(r)
}

// readRequests serves the sessions.
func (p *Proxy) readRequests() {
	p.sessions = make(chan net.Conn)
	p.resumed = tls.NewLRUClientSessionCache(0)
	p.signing = make(chan struct{}, maxSigning)
	p.reader = &http.Server{
		Handler: http.HandlerFunc(p.serveSession), ConnState: p.conns.note, ErrorLog: discardLog,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		BaseContext: func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if t, ok := c.(*tls.Conn); ok {
				c = t.NetConn()
			}
			return context.WithValue(ctx, sessionKey{}, c)
		},
	}
	p.serving.Go(func() { p.reader.Serve(sessionListener{p}) })
}

// sessionKey is the key of the session of a request in its context.
type sessionKey struct{}

// sessionListener accepts the sessions of a proxy.
type sessionListener struct{ *Proxy }

func (l sessionListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.sessions:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l sessionListener) Close() error   { return nil }
func (l sessionListener) Addr() net.Addr { return l.conns.Addr() }

// serveSession answers a request of a connection that is read.
func (p *Proxy) serveSession(w http.ResponseWriter, r *http.Request) {
	s := r.Context().Value(sessionKey{}).(*session)
	if host, port := splitAuthority(r.Host, s.secure); (host != s.to.host || port != s.to.port) && r.Host != "" {
		s.refuse(w, &refusedError{host: s.to.address(), why: "the connection was opened to it, and the request asks for " +
			quoteHost(r.Host)})
		return
	}
	req := &request{Request: r, secrets: &p.secrets,
		may: func(secret *Secret) bool { return s.secure && secret.Serves(s.to.host, s.to.port) }}
	if secret := req.stray(); secret != nil {
		s.refuse(w, straying(secret, s.to.address(), s.secure))
		return
	}
	if s.secure {
		if method := strings.ToUpper(r.Method); slices.Contains(unreadMethods, method) {
			w.Header().Set("Connection", "close")
			http.Error(w, "sandbox: a host that gets credentials gets no "+method, http.StatusMethodNotAllowed)
			return
		}
		if req.readsBody() {
			select {
			case p.signing <- struct{}{}:
				defer func() { <-p.signing }()
			case <-r.Context().Done():
				return
			}
		}
		carries, err := req.prepare()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), carriesKey{}, carries))
	}
	for _, secret := range req.used {
		s.tell(secret)
	}
	http.NewResponseController(w).EnableFullDuplex() // HTTP/2 has it anyway
	s.forward.ServeHTTP(&informing{w, &p.secrets}, r)
}

// carriesKey is the context key that says whether a request has a value that the answer may repeat.
type carriesKey struct{}

// prepare changes a request into what its host gets. carries says that the request has a value that the answer may
// repeat. AWS repeats parts of signed requests only in errors, as plain text.
func (r *request) prepare() (carries bool, err error) {
	signed, err := r.signedBy()
	if err != nil {
		return false, err
	}
	if err := r.inject(r.Context()); err != nil {
		return false, err
	}
	carries = len(r.used) > 0 && signed == nil
	readable(r.Header, carries)
	if signed == nil {
		return carries, nil
	}
	return false, r.resign(r.Context(), signed)
}

// unreadMethods are those whose answer is the request, or no longer HTTP.
var unreadMethods = []string{http.MethodTrace, "TRACK", http.MethodConnect}

// readable takes out of the header of a request what would make values in the answer hard to find. whole says that no
// part of an answer is asked for.
func readable(header http.Header, whole bool) {
	switch {
	case acceptsGzip(header):
		header.Set("Accept-Encoding", gzipped)
	case header.Get("Accept-Encoding") != "":
		header.Set("Accept-Encoding", "identity")
	}
	header.Del("Sec-Websocket-Extensions") // they compress
	if upgrade := header.Values("Upgrade"); len(upgrade) != 1 || !strings.EqualFold(upgrade[0], "websocket") {
		header.Del("Upgrade")
		header.Del("Http2-Settings")
	}
	if whole { // pieces of a value would pass
		header.Del("Range")
		header.Del("If-Range")
	}
}

// informing takes values out of the informational responses (1xx) of a host.
type informing struct {
	http.ResponseWriter
	secrets *secrets
}

func (w *informing) WriteHeader(code int) {
	if code < http.StatusOK {
		hideHeader(w.Header(), w.secrets.echoes())
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for [http.ResponseController].
func (w *informing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// straying refuses a request with the sentinel of a secret that may not go to the host.
func straying(secret *Secret, host string, secure bool) *refusedError {
	why := "the command tried to send " + secret.Name + " to it, which goes to " +
		cmp.Or(strings.Join(secret.Hosts, ", "), "no host") + " only"
	if !secure {
		why = "the command tried to send " + secret.Name + " to it without TLS"
	}
	return &refusedError{host: host, why: why, secret: secret.Name}
}

// refuse answers a request that is not sent, and ends its connection.
func (s *session) refuse(w http.ResponseWriter, refusal *refusedError) {
	s.to.proxy.note(s.to.ctx, refusal)
	misdirected(w, refusal)
}

func misdirected(w http.ResponseWriter, refusal *refusedError) {
	w.Header().Set("Connection", "close")
	http.Error(w, "sandbox: "+refusal.Error(), http.StatusMisdirectedRequest)
}

// tell reports that a secret goes to the host, once for each connection.
func (s *session) tell(secret *Secret) {
	s.mu.Lock()
	told := s.told[secret.Name]
	s.told[secret.Name] = true
	s.mu.Unlock()
	if told {
		return
	}
	if c := s.to.proxy.caller(s.to.ctx); c.Used != nil {
		c.Used(secret.Name, s.to.host, s.to.port, "")
	}
}

// rewrite prepares a request for the host.
func (s *session) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "http", s.to.address()
	if s.secure {
		r.Out.URL.Scheme = "https"
	}
	r.Out.URL.User, r.Out.Host, r.Out.URL.RawQuery = nil, r.In.Host, r.In.URL.RawQuery
	// These headers stay as the program sent them.
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
}

// fail answers a request that did not reach the host.
func (s *session) fail(w http.ResponseWriter, r *http.Request, err error) {
	var unverified *tls.CertificateVerificationError
	var value *valueError
	if errors.As(err, &unverified) || errors.As(err, &value) {
		why := s.to.proxy.secrets.echoes().hide(err.Error())
		s.to.proxy.note(s.to.ctx, &refusedError{host: s.to.address(), why: why})
	}
	status := http.StatusBadGateway
	if errors.Is(err, errReplaced) {
		status = http.StatusRequestHeaderFieldsTooLarge
	}
	w.Header().Set("Connection", "close")
	http.Error(w, "sandbox: "+s.to.proxy.secrets.echoes().hide(err.Error()), status)
}

// splitAuthority returns the canonical host and the port of a Host header.
func splitAuthority(authority string, secure bool) (host, port string) {
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		host, port = strings.Trim(authority, "[]"), "80"
		if secure {
			port = "443"
		}
	}
	return CanonicalHost(host), port
}

// quoteHost returns a host that a program has named, for a line of text.
func quoteHost(name string) string {
	const most = 100
	return fmt.Sprintf("%.*q", most, name)
}
