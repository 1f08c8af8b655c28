package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestReachAddresses: which addresses a server may name, by its own.
func TestReachAddresses(t *testing.T) {
	const public, private, shared, local = "8.8.8.8", "10.1.2.3", "100.64.1.2", "127.0.0.1"
	never := []string{"169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "240.0.0.1",
		"64:ff9b::7f00:1", "2002:7f00:1::", "198.18.0.1", "192.0.0.8"}
	for _, tt := range []struct {
		servers []string
		may     []string
		not     []string
	}{
		{nil, []string{public, "2606:4700::1"}, []string{private, shared, local, "::1", "fd00::1", "192.168.0.1", "172.16.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"}},
		{[]string{public}, []string{public}, []string{private, shared, local, "127.8.8.8"}},
		{[]string{private}, []string{public, private, shared, "fd00::1"}, []string{local, "::1"}},
		{[]string{"fd00::9"}, []string{public, private, shared}, []string{local}},
		{[]string{shared}, []string{public, private, shared}, []string{local}},
		{[]string{local}, []string{public, private, shared, local, "::1"}, nil},
		{[]string{"::1"}, []string{local}, nil},
		{[]string{private, public}, []string{public}, []string{private, shared, local}}, // a name that changes its address
		{[]string{local, private}, []string{private}, []string{local}},
		{[]string{"169.254.169.254"}, []string{public}, []string{private, shared, local}},
		{[]string{"::ffff:127.0.0.1"}, []string{local}, nil},
	} {
		var servers []netip.Addr
		for _, s := range tt.servers {
			servers = append(servers, netip.MustParseAddr(s))
		}
		try := func(address string) error {
			return guard.Web{}.ReachableFrom(servers, guard.Fetch{Host: "auth.example", Port: "443"},
				netip.MustParseAddr(address))
		}
		for _, address := range tt.may {
			if err := try(address); err != nil {
				t.Errorf("from %v to %s: %v", tt.servers, address, err)
			}
		}
		for _, address := range append(tt.not, never...) {
			if err := try(address); err == nil {
				t.Errorf("from %v to %s: permitted", tt.servers, address)
			} else if !strings.Contains(err.Error(), `"auth.example:443" to web.allowPrivate`) {
				t.Errorf("the error names no remedy: %v", err)
			}
		}
	}
}

// An inner is a server of this machine that nothing may connect to.
func inner(t *testing.T, address string) (port string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Skip(err)
	}
	requests = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			requests.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, requests
}

// A leading server is an authorization server whose documents lead somewhere.
type leading struct {
	*httptest.Server
	servers, authorize, token, register, redirect string // "": here
}

func (a *leading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	or := func(s, path string) string {
		if s != "" {
			return s
		}
		return a.URL + path
	}
	if a.redirect != "" && r.URL.Path == a.redirect[:strings.IndexByte(a.redirect, ' ')] {
		http.Redirect(w, r, a.redirect[strings.IndexByte(a.redirect, ' ')+1:], http.StatusTemporaryRedirect)
		return
	}
	switch r.URL.Path {
	case "/mcp":
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/prm"`, a.URL))
		w.WriteHeader(http.StatusUnauthorized)
	case "/prm":
		fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":[%q]}`, a.URL, or(a.servers, ""))
	case "/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"registration_endpoint":%q,"response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`,
			a.URL, or(a.authorize, "/authorize"), or(a.token, "/token"), or(a.register, "/register"))
	case "/register":
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"client_id":"c"}`)
	case "/token":
		fmt.Fprint(w, `{"access_token":"a","token_type":"bearer","refresh_token":"r","expires_in":1}`)
	}
}

// publicLogin makes the server of a login one of the Internet, as if its name had led there as well.
func publicLogin(l *login, a *httptest.Server) *login {
	l.reach.add(netip.MustParseAddr("8.8.8.8"))
	l.reach.tls = a.Client().Transport.(*http.Transport).TLSClientConfig
	return l
}

// TestReachOfLogin: no document of a public server leads a login to this machine, and no request arrives there.
func TestReachOfLogin(t *testing.T) {
	testenv.NotShort(t, "logs in to many servers")
	refusal := regexp.MustCompile("address guard|https is required|it redirects to|authorization server redirects to|^url: ")
	for i, address := range []string{"127.0.0.2", "localhost", "[::1]"} {
		port, requests := inner(t, address)
		for k, scheme := range []string{"https", "http"} {
			if samples.Step(1) > 1 && k != i%2 {
				continue
			}
			to := scheme + "://" + address + ":" + port
			for name, a := range map[string]*leading{
				"authorization_servers":                  {servers: to},
				"authorization_servers with a path":      {servers: to + "/tenant"},
				"authorization_endpoint":                 {authorize: to + "/authorize"},
				"token_endpoint":                         {token: to + "/token"},
				"registration_endpoint":                  {register: to + "/register"},
				"redirect of the resource metadata":      {redirect: "/prm " + to},
				"redirect of the authorization metadata": {redirect: "/.well-known/oauth-authorization-server " + to},
				"redirect of the registration":           {redirect: "/register " + to},
				"userinfo that looks like another host":  {servers: scheme + "://8.8.8.8@" + address + ":" + port},
				"link-local":                             {servers: scheme + "://169.254.169.254"},
				"link-local token":                       {token: scheme + "://169.254.169.254/latest"},
				"private":                                {servers: scheme + "://10.255.255.1"},
				"an unusual form of a loopback address":  {servers: scheme + "://2130706434:" + port},
				"an IPv4 address in an IPv6 address":     {servers: scheme + "://[::ffff:127.0.0.2]:" + port},
				"a name of the machine with a dot":       {servers: scheme + "://localhost.:" + port},
				"a name of the private network":          {servers: scheme + "://metadata.google.internal"},
				"a name below localhost":                 {token: scheme + "://x.localhost:" + port},
			} {
				t.Run(name+" to "+to, func(t *testing.T) {
					a.Server = httptest.NewTLSServer(a)
					defer a.Close()
					s := &server{Entry: &Entry{Name: "s", Trust: User, Type: typeHTTP, URL: a.URL + "/mcp"}}
					l := publicLogin(loginOf(&Config{Dir: t.TempDir()}, s, s.Entry, localPrincipal), a.Server)
					err := l.run(t.Context(), func(page string) error {
						if u, _ := url.Parse(page); u.Host != strings.TrimPrefix(a.URL, "https://") {
							t.Errorf("the browser opened %s", page)
						}
						return fmt.Errorf("the page was opened")
					})
					// After a refused redirect of the metadata the endpoints of the own host are used.
					defaults := strings.HasPrefix(a.redirect, "/.well-known") && err != nil &&
						err.Error() == "the page was opened"
					if err == nil || !defaults && !refusal.MatchString(err.Error()) {
						t.Errorf("the login: %v", err)
					}
					if n := requests.Load(); n > 0 {
						t.Errorf("%d connections to %s: %v", n, to, err)
					}
				})
			}
		}
	}
}

// TestReachOfRenewal: the metadata of a renewal are held as those of the login.
func TestReachOfRenewal(t *testing.T) {
	port, requests := inner(t, "127.0.0.2")
	for _, public := range []bool{true, false} {
		a := &leading{}
		a.Server = httptest.NewServer(a)
		defer a.Close()
		s := &server{Entry: &Entry{Name: "s", Trust: User, Type: typeHTTP, URL: a.URL + "/mcp"}}
		cfg := &Config{Dir: t.TempDir()}
		l := loginOf(cfg, s, s.Entry, localPrincipal)
		client := &registration{ID: "c", Endpoint: a.URL + "/token", Metadata: a.URL + "/prm"}
		if public {
			client.Servers = []netip.Addr{netip.MustParseAddr("8.8.8.8")}
		}
		k := keptLogin{Client: client}
		text := strings.Replace(string(marshal(k)), "{",
			`{"token":{"access_token":"a","refresh_token":"r","expires_at":"`+time.Now().Add(-time.Hour).Format(time.RFC3339)+`"},`, 1)
		if err := os.WriteFile(l.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a.servers = "https://127.0.0.2:" + port
		before := requests.Load()
		_, err := loginOf(cfg, s, s.Entry, localPrincipal).header(t.Context())
		if err == nil {
			t.Errorf("public %t: renewed over another server", public)
		}
		if arrived := requests.Load() > before; arrived == public {
			t.Errorf("public %t: the request arrived: %t (%v)", public, arrived, err)
		}
	}
}
