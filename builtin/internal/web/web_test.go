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
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
)

// policyOf returns a policy with entries of the settings, each "deny RULE", "allow RULE", "private HOST:PORT", "denied DOMAIN",
// "allowed DOMAIN", "robots" (ignored).
func policyOf(t testing.TB, entries ...string) *guard.Policy {
	t.Helper()
	set := &settings.Settings{DefaultMode: settings.ModeDefault}
	for _, entry := range entries {
		kind, text, _ := strings.Cut(entry, " ")
		e := []settings.Entry{{Text: text, File: "test", Kind: settings.User}}
		switch kind {
		case "deny":
			set.Deny = append(set.Deny, e...)
		case "ask":
			set.Ask = append(set.Ask, e...)
		case "allow":
			set.Allow = append(set.Allow, e...)
		case "private":
			set.Web.AllowPrivate = append(set.Web.AllowPrivate, e...)
		case "denied":
			set.Sandbox.Network.DeniedDomains = append(set.Sandbox.Network.DeniedDomains, e...)
		case "allowed":
			set.Sandbox.Network.AllowedDomains = append(set.Sandbox.Network.AllowedDomains, e...)
		case "robots":
			set.Web.IgnoreRobots = true
		case "mode":
			set.DefaultMode = text
		}
	}
	p, err := guard.New(guard.Config{Roots: []string{t.TempDir()}, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A world is the servers that a client under test reaches, by name, and what it connected to.
type world struct {
	*Client
	names  map[string][]string // addresses by name
	server *httptest.Server
	dialed []string
	looked atomic.Int32
}

// newWorld serves every public address with a handler, over TLS.
func newWorld(t testing.TB, h http.HandlerFunc) *world {
	t.Helper()
	w := &world{Client: NewClient("toolhost/test"), names: map[string][]string{}, server: httptest.NewTLSServer(h)}
	t.Cleanup(w.server.Close)
	w.proxy, w.tls = nil, &tls.Config{InsecureSkipVerify: true}
	w.resolve = func(_ context.Context, host string) (list []netip.Addr, err error) {
		w.looked.Add(1)
		t.Log("looked up", host)
		for _, a := range w.names[host] {
			list = append(list, netip.MustParseAddr(a))
		}
		if list == nil {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return list, nil
	}
	w.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.dialed = append(w.dialed, address)
		return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
	}
	for _, name := range []string{"example.com", "www.example.com", "other.example", "a.example.com"} {
		w.names[name] = []string{"93.184.216.34"}
	}
	return w
}

// fetch fetches as a caller under a policy.
func (w *world) fetch(t testing.TB, p *guard.Policy, address string) (*Response, error) {
	t.Helper()
	u, err := Parse(address)
	if err != nil {
		return nil, err
	}
	w.hosts = hosts{} // a test is in a hurry
	return w.Fetch(t.Context(), Request{URL: u, Caller: "caller", Web: p.Web(), May: may(p)})
}

func may(p *guard.Policy) func(guard.Fetch) error {
	return func(f guard.Fetch) error {
		if v := p.Judge(guard.Intent{Tool: "WebFetch", Effects: []guard.Effect{f}}); v.Action != guard.Allow {
			return v
		}
		return nil
	}
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprint(w, "the page")
}

// TestAddresses: no spelling of a private or local address is connected to or looked up, whatever the rules allow.
func TestAddresses(t *testing.T) {
	w := newWorld(t, hello)
	p := policyOf(t, "allow WebFetch", "mode bypassPermissions")
	spellings := strings.Fields(`
		http://127.0.0.1/ http://127.0.0.1:80/ https://127.0.0.1/ http://localhost/ http://LOCALHOST/ http://localhost./ http://a.localhost/ http://2130706433/
		http://0x7f.1/ http://0x7f000001/ http://0177.0.0.1/ http://127.1/ http://127.0.1/ http://017700000001/ http://0/ http://0.0.0.0/ http://0x0/
		http://[::1]/ http://[::]/ http://[::ffff:127.0.0.1]/ http://[::ffff:10.0.0.1]/ http://[::ffff:a00:1]/ http://[::127.0.0.1]/ http://[64:ff9b::10.0.0.1]/
		http://[64:ff9b:1::a00:1]/ http://[2002:a00:1::]/ http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/ http://[fe80::1]/ http://[fe80::1%25eth0]/ http://[fc00::1]/ http://[fd12::1]/
		http://[ff02::1]/ http://[fec0::1]/ http://[::1%25lo]/ http://[100::1]/ http://[2001:db8::1]/ http://[5f00::1]/
		http://10.0.0.1/ http://172.16.0.1/ http://192.168.1.1/ http://169.254.169.254/ http://100.64.0.1/ http://100.127.255.254/ http://192.0.0.1/ http://198.18.0.1/
		http://224.0.0.1/ http://240.0.0.1/ http://255.255.255.255/ http://0.1.2.3/ http://127.0.0.1./ http://10.0.0.1.:8080/
		http://printer.local/ http://metadata.google.internal/ http://METADATA.GOOGLE.INTERNAL./ http://router.lan/ http://x.home.arpa/
		http://１２７.０.０.１/ http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://ⓛocalhost/
		http://example.com%00.localhost/ http://127.0.0.1%00.example.com/ http://user@127.0.0.1/ http://user:pw@example.com/ http://example.com@127.0.0.1/
		http://example.com:0/ http://example.com:65536/ http://example.com:-1/ http://example.com:8a/ http:\\127.0.0.1 http://127.0.0.1\@example.com/ http://example.com\@127.0.0.1/
		file:///etc/passwd data:text/html,x javascript:alert(1) ftp://example.com/ gopher://example.com/ ws://example.com/ mailto:a@example.com about:blank
		http:/// http:// //127.0.0.1/ 127.0.0.1 127.0.0.1:22 localhost:22 [::1]:22 http:127.0.0.1 unix:/run/x http://example..com/ http://.example.com/
	`)
	spellings = append(spellings, "http://exam\tple.com/", "http://127.0.0.1\r\nHost: x/", "http://exa mple.com/", "",
		"   ", "http://example.com/"+strings.Repeat("a", 2100), strings.Repeat("a", 10_000))
	if len(spellings) < 60 {
		t.Errorf("%d spellings, 60 are expected", len(spellings))
	}
	for _, s := range spellings {
		if resp, err := w.fetch(t, p, s); err == nil {
			t.Errorf("%q was fetched: %s", s, resp.Body)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has several lines: %v", s, err)
		}
	}
	if len(w.dialed) > 0 || w.looked.Load() > 0 {
		t.Errorf("connected to %v, looked up %d names", w.dialed, w.looked.Load())
	}
	for _, s := range []string{"example.com", "HTTP://EXAMPLE.COM:80", " https://example.com./a b?c d ",
		"https://93.184.216.34/", "https://[2606:2800:220:1:248:1893:25c8:1946]/", "//example.com", "https://example.com:443/#x"} {
		if _, err := w.fetch(t, p, s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestResolvedAddresses: a name that leads to a private address, also in addition to a public one, is not connected to; a name that changes its
// address between two look-ups gains nothing, for there is one look-up for each connection.
func TestResolvedAddresses(t *testing.T) {
	w := newWorld(t, hello)
	p := policyOf(t, "allow WebFetch", "robots", "denied 8.8.8.8")
	for i, a := range []string{"10.1.2.3", "127.0.0.1", "169.254.169.254", "100.64.1.1", "fd00::1", "::1",
		"::ffff:192.168.0.1", "64:ff9b::7f00:1", "0.0.0.0", "8.8.8.8"} {
		for _, list := range [][]string{{a}, {"93.184.216.34", a}, {a, "93.184.216.34"}} {
			name := fmt.Sprintf("h%d.example", i)
			w.names[name] = list
			if _, err := w.fetch(t, p, "https://"+name); err == nil || !strings.Contains(err.Error(), "of this host") {
				t.Errorf("%v: %v", list, err)
			}
		}
	}
	if len(w.dialed) > 0 {
		t.Errorf("connected to %v", w.dialed)
	}
	answers := [][]string{{"93.184.216.34"}, {"127.0.0.1"}}
	resolve := w.resolve
	w.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		w.names[host] = answers[min(int(w.looked.Load()), 1)]
		return resolve(ctx, host)
	}
	w.looked.Store(0)
	if _, err := w.fetch(t, p, "https://rebind.example"); err != nil {
		t.Error(err)
	}
	if w.looked.Load() != 1 || !slices.Equal(w.dialed, []string{"93.184.216.34:443"}) {
		t.Errorf("%d look-ups, connected to %v", w.looked.Load(), w.dialed)
	}
	if _, err := w.fetch(t, p, "https://rebind.example/2"); err == nil || len(w.dialed) != 1 {
		t.Errorf("the changed address: %v, connected to %v", err, w.dialed)
	}
}

// TestAllowPrivate: what the settings open is reached, on this port alone.
func TestAllowPrivate(t *testing.T) {
	w := newWorld(t, hello)
	w.names["wiki.corp"] = []string{"10.0.0.5"}
	p := policyOf(t, "allow WebFetch", "robots", "private wiki.corp:443", "private 10.0.0.7:9000", "private [::1]:8443")
	for url, good := range map[string]bool{"https://wiki.corp/": true, "wiki.corp": true,
		"https://wiki.corp:8443/": false, "https://10.0.0.5/": false, "https://10.0.0.7:9000/": true, "https://10.0.0.7/": false, "https://[::1]:8443/": true} {
		if _, err := w.fetch(t, p, url); (err == nil) != good {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestRules judges spellings of hosts by the rules of WebFetch and the network lists.
func TestRules(t *testing.T) {
	for _, tt := range []struct {
		rules, url string
		want       guard.Action
	}{
		{"allow WebFetch(domain:example.com)", "https://example.com/", guard.Allow},
		{"allow WebFetch(domain:example.com)", "https://EXAMPLE.com./", guard.Allow},
		{"allow WebFetch(domain:example.com)", "https://a.example.com/", guard.Ask},
		{"allow WebFetch(domain:example.com)", "https://example.com.evil.test/", guard.Ask},
		{"allow WebFetch(domain:example.com)", "https://notexample.com/", guard.Ask},
		{"allow WebFetch(domain:*.example.com)", "https://a.b.example.com/", guard.Allow},
		{"allow WebFetch(domain:*.example.com)", "https://example.com/", guard.Ask},
		{"allow WebFetch(domain:bücher.example)", "https://xn--bcher-kva.example/", guard.Allow},
		{"allow WebFetch(domain:xn--bcher-kva.example)", "https://BÜCHER.example/", guard.Allow},
		{"deny WebFetch(domain:Evil.example.)|allow WebFetch", "https://evil.example/", guard.Deny},
		{"deny WebFetch(domain: evil.example )|allow WebFetch", "https://EVIL.EXAMPLE./", guard.Deny},
		{"deny WebFetch(domain:*.evil.example)|allow WebFetch", "https://a.evil.example:8443/", guard.Deny},
		{"deny WebFetch(domain:evil.*)|allow WebFetch", "https://evil.test/", guard.Deny},
		{"deny WebFetch(evil.test)|allow WebFetch", "https://evil.test/", guard.Deny},
		{"deny WebFetch(https://evil.test/x*)|allow WebFetch", "https://evil.test/", guard.Deny},
		{"allow WebFetch(good.test)", "https://good.test/", guard.Ask},
		{"deny WebFetch(domain:*)|allow WebFetch", "https://evil.test/", guard.Deny},
		{"deny WebFetch|allow WebFetch(domain:evil.test)", "https://evil.test/", guard.Deny},
		{"ask WebFetch(domain:evil.test)|allow WebFetch", "https://evil.test/", guard.Ask},
		{"ask WebFetch(domain:evil.test)|allowed evil.test", "https://evil.test/", guard.Ask},
		{"denied evil.test|allow WebFetch", "https://evil.test/", guard.Deny},
		{"denied *.evil.test|allow WebFetch", "https://a.evil.test/", guard.Deny},
		{"allowed good.test", "https://good.test/", guard.Allow},
		{"allowed *.good.test", "https://a.good.test/", guard.Allow},
		{"allowed good.test|denied good.test", "https://good.test/", guard.Deny},
		{"", "https://good.test/", guard.Ask},
		{"mode plan", "https://good.test/", guard.Ask},
		{"mode dontAsk", "https://good.test/", guard.Deny},
		{"mode bypassPermissions", "https://good.test:9999/", guard.Allow},
		{"allow WebFetch", "https://good.test:9999/", guard.Ask},
		{"allow WebFetch|private good.test:9999", "https://good.test:9999/", guard.Allow},
		{"allow WebFetch|private good.test:9999", "https://good.test:9998/", guard.Ask},
		{"private good.test:9999", "https://good.test:9999/", guard.Ask},
		{"allow WebFetch", "https://good.test:8443/", guard.Allow},
		{"allow WebFetch|mode dontAsk", "https://good.test:9999/", guard.Deny},
		{"deny WebFetch(domain:127.0.0.1)|allow WebFetch", "https://[::ffff:127.0.0.1]/", guard.Deny},
	} {
		var entries []string
		if tt.rules != "" {
			entries = strings.Split(tt.rules, "|")
		}
		u, err := Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		f, err := guard.FetchOf(u)
		if err != nil {
			t.Fatal(err)
		}
		v := policyOf(t, entries...).Judge(guard.Intent{Tool: "WebFetch", Effects: []guard.Effect{f}})
		if v.Action != tt.want {
			t.Errorf("%s: %s: %v by %s, want %v", tt.rules, tt.url, v.Action, v.Rule, tt.want)
		}
	}
	if v := policyOf(t, "allow WebFetch", "mode bypassPermissions").Judge(guard.Intent{Tool: "WebFetch",
		Effects: []guard.Effect{guard.Fetch{}}}); v.Action != guard.Deny {
		t.Errorf("the zero Fetch: %v", v.Action)
	}
}

// TestBounds: sizes that grow beyond the limits end with an error that says so, in little memory.
func TestBounds(t *testing.T) {
	var zip bytes.Buffer
	z := gzip.NewWriter(&zip)
	zeros := make([]byte, 1<<20)
	for range 64 {
		z.Write(zeros)
	}
	z.Close()
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zip.Bytes())
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(zeros[:64<<10]); err != nil {
					return
				}
			}
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(maxBody+1))
			w.Write(zeros[:100])
		case "/early":
			w.Header().Set("Content-Length", "1000")
			w.Write(zeros[:100])
		case "/headers":
			w.Header().Set("X-Long", strings.Repeat("a", maxHeaders+10_000))
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			w.Write([]byte("x"))
		case "/nogzip":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write([]byte("not gzip at all"))
		default:
			fmt.Fprint(w, r.Header)
		}
	})
	p := policyOf(t, "allow WebFetch", "robots")
	for path, want := range map[string]string{
		"/bomb": "100 times longer", "/endless": "longer than 10 MiB", "/long": "longer than 10 MiB", "/early": "ended early", "/headers": "headers",
		"/br": "not offered", "/nogzip": "says that it is gzip",
	} {
		if _, err := w.fetch(t, p, "https://example.com"+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	resp, err := w.fetch(t, p, "https://example.com/")
	if err != nil || strings.Contains(string(resp.Body), "Cookie") ||
		strings.Contains(string(resp.Body), "Authorization") || !strings.Contains(string(resp.Body), "toolhost/test") {
		t.Errorf("%v %s", err, resp.Body)
	}
}

// TestCache: an answer is given to its caller again, under the rules of now, and to no other.
func TestCache(t *testing.T) {
	var hits atomic.Int32
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/private" {
			w.Header().Set("Cache-Control", "private, No-Store")
		}
		fmt.Fprint(w, hits.Add(1))
	})
	p := policyOf(t, "allow WebFetch", "robots")
	get := func(caller, path string, p *guard.Policy) string {
		u, _ := Parse("https://example.com" + path)
		w.hosts = hosts{}
		resp, err := w.Fetch(t.Context(), Request{URL: u, Caller: caller, Web: p.Web(), May: may(p)})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(string(resp.Body), resp.Cached)
	}
	for _, tt := range []struct{ caller, path, want string }{
		{"a", "/", "1false"}, {"a", "/", "1true"}, {"a", "/#x", "1true"}, {"b", "/", "2false"}, {"a", "/private", "3false"}, {"a", "/private", "4false"}, {"b", "/", "2true"},
	} {
		if got := get(tt.caller, tt.path, p); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.caller, tt.path, got, tt.want)
		}
	}
	if got := get("a", "/", policyOf(t, "robots", "deny WebFetch(domain:example.com)")); strings.HasSuffix(got,
		"true") {
		t.Errorf("after a deny: %s", got)
	}
	big := &Response{Body: make([]byte, cachePerUser/5)}
	for i := range 4 {
		w.cache.put("a", fmt.Sprint(i), big)
	}
	if w.cache.get("a", "0") != nil || w.cache.get("a", "3") == nil || w.cache.get("b", "https://example.com/") == nil {
		t.Error("the cache of a caller is not bounded, or takes from others")
	}
}

// TestHTTPSFirst: http is fetched over https, and over http only where the settings open it.
func TestHTTPSFirst(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	w := newWorld(t, hello)
	w.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.dialed = append(w.dialed, address)
		return (&net.Dialer{}).DialContext(ctx, network, plain.Listener.Addr().String())
	}
	if _, err := w.fetch(t, policyOf(t, "allow WebFetch", "robots"), "http://example.com/"); err == nil ||
		!strings.Contains(err.Error(), "web.allowPrivate") {
		t.Error(err)
	}
	resp, err := w.fetch(t, policyOf(t, "allow WebFetch", "robots", "private example.com:80"), "http://example.com/")
	if err != nil || resp.URL.Scheme != "http" || !slices.Equal(w.dialed, []string{"93.184.216.34:443", "93.184.216.34:443", "93.184.216.34:80"}) {
		t.Errorf("%v, connected to %v", err, w.dialed)
	}
}

// TestProxy: with a proxy the names are checked, and the proxy resolves them.
func TestProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Host)
		http.Error(w, "no", http.StatusBadGateway)
	}))
	defer proxy.Close()
	w := newWorld(t, hello)
	at, _ := url.Parse(proxy.URL)
	w.proxy = func(*url.URL) (*url.URL, error) { return at, nil }
	p := policyOf(t, "allow WebFetch", "robots")
	for _, u := range []string{"https://example.com/", "https://10.0.0.1/", "https://x.internal/",
		"https://localhost/"} {
		if _, err := w.fetch(t, p, u); err == nil {
			t.Errorf("%s was fetched", u)
		}
	}
	if !slices.Equal(asked, []string{"CONNECT example.com:443"}) || w.looked.Load() > 0 || len(w.dialed) > 0 {
		t.Errorf("the proxy was asked for %v; looked up %d, connected to %v", asked, w.looked.Load(), w.dialed)
	}
}

// TestErrors: an error says whose it is.
func TestErrors(t *testing.T) {
	w := newWorld(t, hello)
	p := policyOf(t, "allow WebFetch", "robots")
	w.tls = &tls.Config{RootCAs: x509.NewCertPool()}
	if _, err := w.fetch(t, p, "https://example.com/"); err == nil ||
		!strings.Contains(err.Error(), "certificate of example.com is not valid (TLS)") {
		t.Error(err)
	}
	if _, err := w.fetch(t, p, "https://missing.example/"); err == nil || !strings.Contains(err.Error(), "(DNS)") {
		t.Error(err)
	}
	w.dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
	if _, err := w.fetch(t, p, "https://example.com/"); err == nil ||
		!strings.Contains(err.Error(), "could not be fetched: connection refused") {
		t.Error(err)
	}
	w.dial = func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
	if _, err := w.fetch(t, p, "https://example.com/"); err == nil {
		t.Error("fetched")
	}
}
