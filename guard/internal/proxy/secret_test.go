package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const (
	value    = "ghp_therealtokenoftheuser"
	sentinel = "ghp_sentinel"
)

// secretFixture is a proxy that puts a secret into requests to example.com, which is a server of the test.
type secretFixture struct {
	*Proxy
	roots *x509.CertPool // of the proxy's authority
	used  []string
}

func newSecretFixture(t testing.TB, handler http.HandlerFunc) *secretFixture {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS() // with a certificate of example.com
	t.Cleanup(server.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &secretFixture{roots: x509.NewCertPool()}
	pem, err := Authority()
	if err != nil || !f.roots.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	secret := Secret{Name: "TOKEN", Sentinel: sentinel, Hosts: []string{"example.com"},
		Value: func(context.Context) (string, error) { return value, nil }}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	f.Proxy = Start(l, Rules{AllowedDomains: []string{"*"}, Secrets: []Secret{secret}, Roots: roots, Caller: func(_, _ netip.AddrPort) Caller {
		return Caller{Used: func(secret, host, port, _ string) { f.used = append(f.used, secret+" "+host+":"+port) }}
	}},
		func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
		func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("1.2.3.4")}, nil
		})
	t.Cleanup(f.Close)
	return f
}

// client returns a client of the proxy.
func (f *secretFixture) client(h2 bool) *http.Client {
	at, _ := url.Parse("http://" + f.address)
	var protocols http.Protocols
	protocols.SetHTTP1(!h2)
	protocols.SetHTTP2(h2)
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at),
		TLSClientConfig: &tls.Config{RootCAs: f.roots}, Protocols: &protocols, DisableCompression: true}}
}

// TestInject: the host gets the value in the places for credentials, and elsewhere the sentinel; the client gets the sentinel back.
func TestInject(t *testing.T) {
	var seen string
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = strings.ReplaceAll(fmt.Sprint(r.Proto, r.RequestURI, r.Header), value, "VALUE")
		w.Header().Set("Authorization", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "%s %s %s", r.Header.Get("Authorization"), r.RequestURI, body)
	})
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, h2 := range []bool{false, true} {
		client := f.client(h2)
		for _, c := range []struct {
			url, header, text, body string
			seen                    string
		}{
			{header: "Authorization", text: "Bearer " + sentinel, seen: "Authorization:[Bearer VALUE]"},
			{header: "authorization", text: "token " + sentinel, seen: "Authorization:[token VALUE]"},
			{header: "Authorization", text: basic("me:" + sentinel), seen: "Authorization:[" + basic("me:"+value) + "]"},
			{header: "Authorization", text: basic(sentinel + ":x-oauth-basic"), seen: "Authorization:[" + basic(value+":x-oauth-basic") + "]"},
			{header: "X-Api-Key", text: sentinel, seen: "X-Api-Key:[VALUE]"},
			{header: "Private-Token", text: sentinel, seen: "Private-Token:[VALUE]"},
			{header: "X-Note", text: sentinel, seen: "X-Note:[" + sentinel + "]"},
			{url: "?access_token=" + sentinel + "&a=%20", seen: "?access_token=VALUE&a=%20"},
			{url: "?access_token=ghp%5Fsentinel", seen: "?access_token=VALUE"},
			{url: "?q=" + sentinel, seen: "?q=" + sentinel},
			{header: "X-Forwarded-For", text: "1.2.3.4", seen: "X-Forwarded-For:[1.2.3.4]"},
			{body: sentinel, seen: "/"},
		} {
			r, _ := http.NewRequest("POST", "https://example.com/a%2Fb"+c.url, strings.NewReader(c.body))
			if c.header != "" {
				r.Header.Set(c.header, c.text)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(seen, c.seen) || !strings.Contains(seen, map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[h2]) || !strings.Contains(seen, "/a%2Fb") {
				t.Errorf("%+v: the host has seen %s", c, seen)
			}
			want := r.Header.Get("Authorization") + " /a%2Fb" + strings.ReplaceAll(c.url, "%5F", "_") + " " + c.body
			if string(text) != want || answer.Header.Get("Authorization") != r.Header.Get("Authorization") {
				t.Errorf("%+v: got %q and %q, want %q", c, text, answer.Header.Get("Authorization"), want)
			}
		}
		client.CloseIdleConnections()
	}
	if want := []string{"TOKEN example.com:443", "TOKEN example.com:443"}; !slices.Equal(f.used, want) {
		t.Errorf("used %v", f.used)
	}
}

// TestInjectForm: a form gets the value if the mask says so, in its fields for credentials only.
func TestInjectForm(t *testing.T) {
	var seen string
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		seen = strings.ReplaceAll(string(body), value, "VALUE")
		if err != nil || r.ContentLength >= 0 && r.ContentLength != int64(len(body)) {
			t.Errorf("%d bytes of %d, %v", len(body), r.ContentLength, err)
		}
		w.Write(body)
	})
	long := strings.Repeat("x", maxSized)
	for _, c := range []struct {
		mask       bool
		kind, body string
		want       string
	}{
		{true, formType, "grant_type=x&refresh_token=" + sentinel + "&q=" + sentinel + "&b=%zz", "grant_type=x&refresh_token=VALUE&q=" + sentinel + "&b=%zz"},
		{true, formType + "; charset=utf-8", "client_secret=ghp%5Fsentinel", "client_secret=VALUE"},
		{true, formType, "token=" + sentinel + "&x=" + long, "token=" + sentinel + "&x=" + long},
		{true, "application/json", `{"token": "` + sentinel + `"}`, `{"token": "` + sentinel + `"}`},
		{false, formType, "refresh_token=" + sentinel, "refresh_token=" + sentinel},
	} {
		for _, h2 := range []bool{false, true} {
			for _, chunked := range []bool{false, true} {
				f.secrets.all[0].Body = c.mask
				var body io.Reader = strings.NewReader(c.body)
				if chunked {
					body = io.MultiReader(body)
				}
				client := f.client(h2)
				answer, err := client.Post("https://example.com/token", c.kind, body)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				client.CloseIdleConnections()
				if seen != c.want || strings.Contains(string(text), value) {
					t.Errorf("%.200s, h2 %v, chunked %v: the host has seen %.200s", c.body, h2, chunked, seen)
				}
			}
		}
	}
}

// TestCredentialNames: values are put where credentials stand, and not where servers keep what they are sent.
func TestCredentialNames(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "Proxy-Authorization": true, "X-Api-Key": true, "X-Apikey": true, "Private-Token": true, "Dd-Api-Key": true,
		"Cookie": true, "X-Auth-Token": true, "access_token": true, "accessToken": true, "apiKey": true, "key": true, "client_secret": true,
		"user[password]": true, "X-Goog-Api-Key": true, "sessionid": true, "Ocp-Apim-Subscription-Key": true, "authtoken": true,
		"author": false, "authored_by": false, "keyword": false, "keywords": false, "X-Idempotency-Key": false, "idempotencyKey": false,
		"monkey": false, "q": false, "secretary": false, "User-Agent": false,
	} {
		if carriesCredential(name) != want {
			t.Errorf("%s: got %v", name, !want)
		}
	}
}

// TestOtherKey: a secret key of AWS is not sent, whatever its variable is called.
func TestOtherKey(t *testing.T) {
	const key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	for _, c := range []struct {
		host, value string
		sent        bool
	}{
		{"s3.amazonaws.com", key, false},
		{"*.s3.eu-west-1.amazonaws.com:443", key, false},
		{"bucket.s3.cn-north-1.amazonaws.com.cn", key, false},
		{"s3.amazonaws.com", "ABSKQmVkcm9ja0FQSUtleS1", true}, // a bearer token
		{"amazonaws.com.example.com", key, true},
		{"api.github.com", key, true},
	} {
		r := &request{secrets: &secrets{all: []Secret{{Sentinel: sentinel, Hosts: []string{"example.com", c.host},
			Value: func(context.Context) (string, error) { return c.value, nil }}}}}
		want := sentinel
		if c.sent {
			want = c.value
		}
		if got, err := r.replace(t.Context(), sentinel, false); got != want || err != nil {
			t.Errorf("%s: sent %q, %v", c.host, got, err)
		}
	}
}
