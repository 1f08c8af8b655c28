package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, host, port string
		want                bool
	}{
		{"example.com", "example.com", "443", true},
		{"Example.COM.", "example.com", "443", true},
		{"example.com", "www.example.com", "443", false},
		{"example.com", "evilexample.com", "443", false},
		{"example.com", "example.com.evil.net", "443", false},
		{"*.example.com", "www.example.com", "443", true},
		{"*.example.com", "a.b.example.com", "443", true},
		{"*.example.com", "example.com", "443", false},
		{"*.example.com", "evilexample.com", "443", false},
		{"example.com:443", "example.com", "443", true},
		{"example.com:443", "example.com", "22", false},
		{"*", "anything.test", "1", true},
		{"*:443", "anything.test", "80", false},
		{"127.0.0.1", "127.0.0.1", "80", true},
		{"127.0.0.1:80", "127.0.0.1", "81", false},
		{"::1", "::1", "80", true},
		{"[::1]:80", "::1", "80", true},
		{"*.0.0.1", "127.0.0.1", "80", false},
		{"::ffff:10.0.0.1", "10.0.0.1", "80", true},
	} {
		if got := matches(c.pattern, c.host, c.port); got != c.want {
			t.Errorf("matches(%q, %q, %q) = %v, want %v", c.pattern, c.host, c.port, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"example.com": true, "*.example.com": true, "*": true, "*:443": true, "10.0.0.1": true, "[::1]:80": true,
		"https://example.com": false, "example.com/x": false, "a.*.com": false, "*example.com": false,
		"": false, "exämple.com": false, "example.com:http": false, "example.com:0": false, "a b": false, "*.": false,
	} {
		if err := validate(pattern); (err == nil) != ok {
			t.Errorf("validate(%q) = %v, want ok = %v", pattern, err, ok)
		}
	}
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fc00::1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
		"fe80::1%lo": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("Public(%s) = %v, want %v", address, got, want)
		}
	}
}

func FuzzCanonicalHost(f *testing.F) {
	for _, s := range []string{"example.com", "EXAMPLE.com.", "127.0.0.1", "::1", "0x7f.1", "a..b", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		c := CanonicalHost(host)
		if c != "" && CanonicalHost(c) != c {
			t.Errorf("CanonicalHost(%q) = %q, which is not canonical", host, c)
		}
	})
}

// proxyFixture is a proxy in front of an upstream to which every judged
// connection leads.
type proxyFixture struct {
	*Proxy
	client *http.Client
	dialed []string
}

func newProxyFixture(t *testing.T, rules Rules, resolve map[string][]string) *proxyFixture {
	t.Helper()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, "upstream for ", r.Host)
	}))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, "secure upstream for ", r.Host)
	}))
	t.Cleanup(secure.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &proxyFixture{}
	f.Proxy = Start(l, rules,
		func(ctx context.Context, network, address string) (net.Conn, error) {
			f.dialed = append(f.dialed, address)
			to := plain.Listener.Addr().String()
			if strings.HasSuffix(address, ":443") {
				to = secure.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
		func(_ context.Context, host string) ([]netip.Addr, error) {
			var list []netip.Addr
			for _, a := range resolve[host] {
				list = append(list, netip.MustParseAddr(a))
			}
			if list == nil {
				return nil, errors.New("no such host")
			}
			return list, nil
		},
	)
	t.Cleanup(f.Close)
	at, _ := url.Parse("http://" + f.address)
	f.client = &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	return f
}

func (f *proxyFixture) get(t *testing.T, url string) string {
	t.Helper()
	r, err := f.client.Get(url)
	if err != nil {
		return "error: " + err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return strings.TrimSpace(string(b))
}

func TestProxy(t *testing.T) {
	hosts := map[string][]string{
		"good.test": {"1.2.3.4"}, "sub.good.test": {"1.2.3.5"}, "bad.good.test": {"1.2.3.6"},
		"rebind.test": {"127.0.0.1"}, "metadata.test": {"169.254.169.254"}, "both.test": {"10.0.0.1", "1.2.3.7"},
		"registry.test": {"10.1.2.3"}, "listed.test": {"192.168.7.7"},
		"other.test": {"1.2.3.8"}, "denied-address.test": {"1.2.3.9"},
	}
	rules := Rules{
		AllowedDomains: []string{"good.test", "registry.test", "listed.test", "*.good.test", "rebind.test", "metadata.test", "both.test",
			"port.test:443", "192.168.7.7", "denied-address.test", "gone.test"},
		DeniedDomains: []string{"bad.good.test", "1.2.3.9"},
	}
	for _, c := range []struct {
		url    string
		want   string // in the answer
		dialed string
	}{
		{"http://good.test/", "upstream for good.test", "1.2.3.4:80"},
		{"https://good.test/", "secure upstream for good.test", "1.2.3.4:443"},
		{"http://sub.good.test:8080/", "upstream for sub.good.test", "1.2.3.5:8080"},
		{"http://GOOD.test./", "upstream", "1.2.3.4:80"},
		{"http://both.test/", "upstream", "1.2.3.7:80"},
		{"http://192.168.7.7/", "upstream", "192.168.7.7:80"},
		{"http://listed.test/", "upstream for listed.test", "192.168.7.7:80"},
		{"http://registry.test/", "10.1.2.3 is private: a person can set sandbox.network.allowPrivate", ""},
		{"http://bad.good.test/", "deniedDomains", ""},
		{"https://bad.good.test/", "Forbidden", ""},
		{"http://other.test/", "not in sandbox.network.allowedDomains", ""},
		{"https://other.test/", "Forbidden", ""},
		{"http://port.test/", "not in sandbox.network.allowedDomains", ""},
		{"http://rebind.test/", "not a public one", ""},
		{"https://metadata.test/", "Forbidden", ""},
		{"http://127.0.0.1/", "not in sandbox.network.allowedDomains", ""},
		{"http://[::1]/", "not in sandbox.network.allowedDomains", ""},
		{"http://[::ffff:127.0.0.1]/", "not in sandbox.network.allowedDomains", ""},
		{"http://denied-address.test/", "is denied", ""},
		{"http://gone.test/", "no such host", ""},
	} {
		t.Run(c.url, func(t *testing.T) {
			f := newProxyFixture(t, rules, hosts)
			got := f.get(t, c.url)
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if dialed := strings.Join(f.dialed, " "); dialed != c.dialed {
				t.Errorf("dialed %q, want %q", dialed, c.dialed)
			}
		})
	}
}

// An asterisk allows names, not the private addresses that they have, nor private
// addresses as such.
// TestProxyDialEnds: the dial to a host that does not answer ends when the program that asked for it goes away.
func TestProxyDialEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialing, ended := make(chan struct{}), make(chan struct{})
	p := Start(l, Rules{AllowedDomains: []string{"silent.test"}}, func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}, func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	})
	t.Cleanup(p.Close)
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET http://silent.test/ HTTP/1.1\r\nHost: silent.test\r\n\r\n")
	<-dialing
	conn.Close()
	<-ended
}

func TestProxyWildcardStaysPublic(t *testing.T) {
	f := newProxyFixture(t, Rules{AllowedDomains: []string{"*"}}, map[string][]string{
		"localtest.test": {"127.0.0.1"}, "2130706433": {"127.0.0.1"}, "open.test": {"1.2.3.4"},
	})
	for _, u := range []string{"http://127.0.0.1/", "http://localtest.test/", "http://2130706433/",
		"http://[::ffff:7f00:1]/", "http://169.254.169.254/"} {
		if got := f.get(t, u); !strings.Contains(got, "not a public one") {
			t.Errorf("%s: got %q", u, got)
		}
	}
	if got := f.get(t, "http://open.test/"); got != "upstream for open.test" {
		t.Errorf("open.test: got %q", got)
	}
}

// TestProxyPrivate: with AllowPrivate an allowed name leads to a private network,
// but not to this machine, its link, or what is not allowed.
func TestProxyPrivate(t *testing.T) {
	rules := Rules{AllowedDomains: []string{"*.corp.test", "10.9.9.9"}, DeniedDomains: []string{"10.0.0.66"},
		AllowPrivate: true}
	f := newProxyFixture(t, rules, map[string][]string{
		"ten.corp.test": {"10.1.2.3"}, "ula.corp.test": {"fd00::5"}, "shared.corp.test": {"100.64.0.9"}, "denied.corp.test": {"10.0.0.66"},
		"loop.corp.test": {"127.0.0.1"}, "loop6.corp.test": {"::1"}, "metadata.corp.test": {"169.254.169.254"}, "link6.corp.test": {"fe80::1"},
		"any.corp.test": {"0.0.0.0"}, "other.test": {"10.1.2.3"},
	})
	for host, want := range map[string]string{
		"ten.corp.test": "upstream", "ula.corp.test": "upstream", "shared.corp.test": "upstream", "10.9.9.9": "upstream",
		"denied.corp.test": "is denied", "loop.corp.test": "not a public one", "loop6.corp.test": "not a public one",
		"metadata.corp.test": "not a public one", "link6.corp.test": "not a public one", "any.corp.test": "not a public one",
		"other.test": "allowedDomains", "10.1.2.3": "allowedDomains",
	} {
		if got := f.get(t, "http://"+host+"/"); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
}

// What is judged is what is connected to: the Host header is replaced.
func TestProxyHostHeader(t *testing.T) {
	f := newProxyFixture(t, Rules{AllowedDomains: []string{"good.test"}}, map[string][]string{"good.test": {"1.2.3.4"}})
	c, err := net.Dial("tcp", f.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET http://good.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if string(b) != "upstream for good.test" {
		t.Errorf("got %q", b)
	}
}

func TestProxyNamesRefusedHosts(t *testing.T) {
	f := newProxyFixture(t, Rules{}, nil)
	f.get(t, "http://a.test/")
	f.get(t, "http://a.test/x")
	f.get(t, "https://b.test/")
	got := f.Refused()
	if len(got) != 2 || got[0].Host != "a.test:80" || got[0].Count != 2 || got[1].Host != "b.test:443" {
		t.Errorf("got %+v", got)
	}
	if again := f.Refused(); again != nil {
		t.Errorf("still there after Refused: %+v", again)
	}
	for i := range 2 * maxRefusals {
		f.get(t, fmt.Sprintf("http://h%d.test/", i))
	}
	if got := f.Refused(); len(got) != maxRefusals {
		t.Errorf("%d remembered, want %d", len(got), maxRefusals)
	}
}

// TestProxyInside: a request for the loopback interface goes to that of the sandbox and never to the host's, but for an address that is
// listed itself, and never to the proxy.
func TestProxyInside(t *testing.T) {
	for _, c := range []struct {
		url, want, inside, dialed string
		allowed, denied           []string
	}{
		{url: "http://127.0.0.1:11434/", want: "upstream", inside: "11434"},
		{url: "http://localhost:11434/", want: "upstream", inside: "11434"},
		{url: "http://[::1]:11434/", want: "upstream", inside: "11434"},
		{url: "http://[::ffff:127.0.0.2]:11434/", want: "upstream", inside: "11434"},
		{url: "http://127.0.0.1:11434/", want: "upstream", inside: "11434", allowed: []string{"*"}},
		{url: "http://127.0.0.1:11434/", want: "upstream", dialed: "127.0.0.1:11434", allowed: []string{"127.0.0.1"}},
		{url: "http://127.0.0.1:11434/", want: "deniedDomains", denied: []string{"127.0.0.1"}},
		{url: "http://localhost.evil.test:80/", want: "not in sandbox.network.allowedDomains"},
		{url: "http://rebind.test/", want: "not a public one", allowed: []string{"rebind.test"}},
		{url: "http://127.0.0.1:PROXY/", want: "not a port of a program in the sandbox"},
	} {
		var inside []string
		inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			fmt.Fprint(w, "upstream for ", r.Host)
		}))
		defer inner.Close()
		f := newProxyFixture(t, Rules{AllowedDomains: c.allowed, DeniedDomains: c.denied, Local: func(int) (bool, string) { return true, "" }, Inside: func(ctx context.Context, port int) (net.Conn, error) {
			inside = append(inside, strconv.Itoa(port))
			return (&net.Dialer{}).DialContext(ctx, "tcp", inner.Listener.Addr().String())
		}}, map[string][]string{"rebind.test": {"127.0.0.1"}})
		_, port, _ := net.SplitHostPort(f.address)
		got := f.get(t, strings.Replace(c.url, "PROXY", port, 1))
		if !strings.Contains(got, c.want) || strings.Join(inside, " ") != c.inside ||
			strings.Join(f.dialed, " ") != c.dialed {
			t.Errorf("%s with %v: %q, inside %v, dialed %v", c.url, c.allowed, got, inside, f.dialed)
		}
	}
}
