package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
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

// TestInjectUpgrade: after an upgrade, as of WebSocket, bytes flow both ways, and values are taken out.
func TestInjectUpgrade(t *testing.T) {
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+value || r.Header.Get("Upgrade") != "websocket" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		io.WriteString(conn, "echo "+value+" "+line)
	})
	raw, err := net.Dial("tcp", f.address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	fmt.Fprintf(raw, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(io.LimitReader(raw,
		int64(len("HTTP/1.1 200 Connection established\r\n\r\n")))), nil); err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{RootCAs: f.roots, ServerName: "example.com", NextProtos: []string{"http/1.1"}})
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer %s\r\n\r\n", sentinel)
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	fmt.Fprintf(conn, "hello\n")
	hidden := sentinel + strings.Repeat("*", len(value)-len(sentinel))
	if line, err := in.ReadString('\n'); line != "echo "+hidden+" hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// TestServerEnds: a program that has said nothing yet is told that the host has closed.
func TestServerEnds(t *testing.T) {
	p := &Proxy{}
	p.ctx, p.cancel = context.WithCancel(t.Context())
	defer p.cancel()
	p.secrets.all = []Secret{{Hosts: []string{"example.com"}}}
	program, inner := tcpPair(t)
	outer, server := tcpPair(t)
	go p.terminate(p.ctx, outer, "example.com", "443").(*Terminated).Relay(inner)
	io.WriteString(server, "busy")
	server.Close()
	if said, err := io.ReadAll(program); string(said) != "busy" || err != nil {
		t.Errorf("the program got %q, %v", said, err)
	}
}

// TestServerFirst: a protocol in which the server speaks first works at a host with secrets, and so does one that is not TLS.
func TestServerFirst(t *testing.T) {
	for _, c := range []struct{ greeting, command string }{{"220 ready\n", "EHLO x\n"}, {"", "binary\x00\n"},
		{"", "G\n"}} {
		p := &Proxy{}
		p.ctx, p.cancel = context.WithCancel(t.Context())
		p.secrets.all = []Secret{{Hosts: []string{"example.com"}}}
		program, inner := tcpPair(t)
		outer, server := tcpPair(t)
		go p.terminate(p.ctx, outer, "example.com", "443").(*Terminated).Relay(inner)
		io.WriteString(server, c.greeting)
		got := make([]byte, len(c.greeting))
		if _, err := io.ReadFull(program, got); err != nil || string(got) != c.greeting {
			t.Errorf("%+v: greeting %q, %v", c, got, err)
		}
		io.WriteString(program, c.command)
		program.CloseWrite()
		if sent, err := io.ReadAll(server); string(sent) != c.command || err != nil {
			t.Errorf("%+v: the server got %q, %v", c, sent, err)
		}
		io.WriteString(server, "bye")
		server.Close()
		if said, err := io.ReadAll(program); string(said) != "bye" || err != nil {
			t.Errorf("%+v: the program got %q, %v", c, said, err)
		}
		p.cancel()
	}
}

func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// TestEchoReader: values are found wherever a body is split, and nothing is kept back that cannot be one.
func TestEchoReader(t *testing.T) {
	f := newFinder([]pair{{"secret-value", "sentinel"}, {"secret%2Dvalue", "sentinel%2D"}})
	text := "a secret-value, b secret-secret-value secret%2Dvalue secre"
	want := "a sentinel, b secret-sentinel sentinel%2D secre"
	for name, split := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "data with the end": iotest.DataErrReader,
	} {
		got, err := io.ReadAll(&echoReader{from: io.NopCloser(split(strings.NewReader(text))),
			values: func() *finder { return f }})
		if string(got) != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	e := &echoReader{from: io.NopCloser(io.MultiReader(strings.NewReader("event: secret\n\n"),
		iotest.ErrReader(errors.New("later")))), values: func() *finder { return f }}
	buf := make([]byte, 100)
	if n, err := e.Read(buf); string(buf[:n]) != "event: secret\n\n" || err != nil {
		t.Errorf("kept back: got %q, %v", buf[:n], err)
	}
}

// TestEchoSizes: bodies of every size and kind are rewritten, with a right length.
func TestEchoSizes(t *testing.T) {
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		text := strings.Repeat("x", len(r.URL.Query().Get("size"))*maxSized) + value
		if r.URL.Query().Get("length") != "" {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		}
		io.WriteString(w, text)
	})
	client := f.client(false)
	for _, query := range []string{"type=text/plain", "type=application/json&length=1",
		"type=text/html%3Bcharset=x&size=1", "type=application/vnd.api%2Bjson&size=11&length=1", "type="} {
		r, _ := http.NewRequest("GET", "https://example.com/?"+query, nil)
		r.Header.Set("Authorization", "Bearer "+sentinel)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || !bytes.HasSuffix(text, []byte(sentinel)) || bytes.Contains(text, []byte(value)) ||
			answer.ContentLength >= 0 && answer.ContentLength != int64(len(text)) {
			t.Errorf("%s: %d bytes of %d, %v", query, len(text), answer.ContentLength, err)
		}
	}
}

// TestHidden: whatever a host does with a request that has the value, the client does not see it, and honest answers
// arrive as they were sent.
func TestHidden(t *testing.T) {
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.String()
	}
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if got == "" {
			got = value
		}
		h := w.Header()
		switch r.URL.Path {
		case "/binary":
			h.Set("Content-Type", "application/octet-stream")
			h.Set("Content-Length", fmt.Sprint(len(got)))
		case "/multipart":
			h.Set("Content-Type", "multipart/byteranges; boundary=x")
		case "/trailer":
			h.Set("Trailer", "Grpc-Message")
			defer h.Set("Grpc-Message", got)
			defer h.Set(http.TrailerPrefix+"Late", got)
		case "/early":
			h.Set("Link", got)
			w.WriteHeader(http.StatusEarlyHints)
			h.Del("Link")
		case "/br":
			h.Set("Content-Encoding", "br")
		case "/gzip":
			h.Set("Content-Encoding", "gzip")
			got = packed(got)
		case "/asked":
			got = r.Header.Get("Accept-Encoding") + r.Header.Get("Range") + r.Header.Get("Upgrade")
		case "/spelt":
			text := got + "+/=x" // as the value of another request
			got = strings.Join([]string{strings.ToLower(url.QueryEscape(text)), base64.RawStdEncoding.EncodeToString([]byte(got)),
				fmt.Sprintf("% x %[1]x", got), base64.URLEncoding.EncodeToString([]byte("a" + got +
					"b")), base64.StdEncoding.EncodeToString([]byte("ab" + got + "cd"))}, " ")
		case "/query":
			got = r.URL.RawQuery
		}
		io.WriteString(w, got)
	})
	for _, c := range []struct {
		method, path, header, text string
		code                       int
		want                       string
	}{
		{"GET", "/text", "", "", 200, sentinel},
		{"GET", "/binary", "", "", 200, sentinel},
		{"GET", "/multipart", "", "", 200, sentinel},
		{"GET", "/trailer", "", "", 200, sentinel},
		{"GET", "/early", "", "", 200, sentinel},
		{"GET", "/br", "", "", 502, "was not asked for"},
		{"GET", "/gzip", "", "", 502, "was not asked for"},
		{"GET", "/gzip", "Accept-Encoding", "br, gzip;q=0.5", 200, sentinel},
		{"GET", "/gzip", "Accept-Encoding", "gzip;q=0.0", 502, "was not asked for"},
		{"GET", "/asked", "Accept-Encoding", "identity", 200, "identity"},
		{"GET", "/asked", "Accept-Encoding", "br, zstd", 200, "identity"},
		{"GET", "/asked", "Range", "bytes=0-3", 200, ""},
		{"GET", "/asked", "Upgrade", "h2c", 200, ""},
		{"GET", "/spelt", "", "", 200, " "},
		{"GET", "/query?a=1;b=%zz", "", "", 200, "a=1;b=%zz"},
		{"GET", "/?token=" + strings.Repeat(sentinel, maxReplaced), "", "", 431, "more than 8"},
		{"TRACE", "/", "", "", 405, "no TRACE"},
		{"track", "/", "", "", 405, "no TRACK"},
	} {
		for _, h2 := range []bool{false, true} {
			if h2 && c.header == "Upgrade" {
				continue
			}
			client := f.client(h2)
			r, _ := http.NewRequest(c.method, "https://example.com"+c.path, nil)
			r.Header.Set("Authorization", "Bearer "+sentinel)
			if c.header != "" {
				r.Header.Set(c.header, c.text)
			}
			if c.header == "Upgrade" {
				r.Header.Set("Connection", "Upgrade")
			}
			early := ""
			trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int,
				h textproto.MIMEHeader) error {
				early = fmt.Sprint(h)
				return nil
			}}
			answer, err := client.Do(r.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
			if err != nil {
				t.Fatal(c, err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			client.CloseIdleConnections()
			all := fmt.Sprint(answer.Header, string(text), answer.Trailer, early)
			if err != nil || answer.StatusCode != c.code || !strings.Contains(string(text), c.want) {
				t.Errorf("%+v, h2 %v: got %s %v", c, h2, all, err)
			}
			if c.path == "/asked" && string(text) != c.want {
				t.Errorf("%+v: the host was asked for %q", c, text)
			}
			if c.path == "/trailer" && strings.Count(fmt.Sprint(answer.Trailer), sentinel) != 2 || c.path == "/early" &&
				!strings.Contains(early, sentinel) {
				t.Errorf("%+v, h2 %v: got %s", c, h2, all)
			}
			for skip := range 3 {
				part := base64.RawStdEncoding.EncodeToString([]byte(value[skip : skip+21]))
				if strings.Contains(all, value) || strings.Contains(all, part) ||
					strings.Contains(strings.ReplaceAll(all, " ", ""), fmt.Sprintf("%x", value)) {
					t.Errorf("%+v, h2 %v: the value is in %s", c, h2, all)
				}
			}
		}
	}
}

// TestEncodedFile: a file that is compressed itself arrives as it was sent, and so does any answer to a request without a
// value, whatever the host says that it is.
func TestEncodedFile(t *testing.T) {
	const archive = "\x1f\x8barchive"
	f := newSecretFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "x-gzip")
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		io.WriteString(w, archive)
	})
	for _, c := range []struct {
		kind, token string
		code        int
	}{
		{"", "none", 200},
		{"application/json", "none", 200},
		{"application/x-tar", sentinel, 200},
		{"application/gzip; x=y", sentinel, 200},
		{"application/octet-stream", sentinel, 200},
		{"application/x-compressed-tar", sentinel, 200},
		{"", sentinel, 502},
		{"text/plain", sentinel, 502},
		{"application/json", sentinel, 502},
		{"application/cbor", sentinel, 502},
	} {
		if _, err := f.secrets.value(t.Context(), &f.secrets.all[0]); err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequest("GET", "https://example.com/archive.tar.gz?type="+url.QueryEscape(c.kind), nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		answer, err := f.client(false).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.code || c.code == http.StatusOK &&
			(string(text) != archive || answer.Header.Get("Content-Encoding") != "x-gzip") {
			t.Errorf("%+v: got %s %q %v", c, answer.Status, text, answer.Header)
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

// TestRotated: a value that was replaced is looked for, too, and in a stream that is older than it.
func TestRotated(t *testing.T) {
	now := ""
	s := &secrets{all: []Secret{{Sentinel: sentinel, Value: func(context.Context) (string, error) { return now, nil }}}}
	in, out := io.Pipe()
	e := &echoReader{from: in, values: s.echoes}
	for _, stage := range []struct{ value, want string }{
		{"first-value", sentinel + ", " + sentinel + "-2 and third-value."},
		{"first-value-2", sentinel + ", " + sentinel + " and third-value."},
		{"third-value", sentinel + ", " + sentinel + " and " + sentinel + "."},
	} {
		now = stage.value
		if _, err := s.value(t.Context(), &s.all[0]); err != nil {
			t.Error(err)
		}
		go func() {
			io.WriteString(out, "first-value, first-va")
			io.WriteString(out, "lue-2 and third-value.")
		}()
		text := make([]byte, len(stage.want)) // the next value must not be known before all of it is read
		if _, err := io.ReadFull(e, text); string(text) != stage.want || err != nil {
			t.Errorf("got %q, want %q, %v", text, stage.want, err)
		}
	}
}

// BenchmarkInject compares requests into which a secret is put with those through a tunnel.
func BenchmarkInject(b *testing.B) {
	data := make([]byte, 100<<20)
	f := newSecretFixture(b, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if r.URL.Path == "/data" {
			w.Write(data)
		}
	})
	tunnel := newSecretFixture(b, nil)
	tunnel.secrets.all = nil
	tunnel.dial, tunnel.rules.Roots = f.dial, f.rules.Roots
	tunnel.roots = f.rules.Roots
	for _, c := range []struct {
		name string
		*secretFixture
	}{{"tunnel", tunnel}, {"inject", f}} {
		do := func(client *http.Client, path string) {
			r, _ := http.NewRequest("GET", "https://example.com"+path, nil)
			r.Header.Set("Authorization", "Bearer "+sentinel)
			answer, err := client.Do(r)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		for _, h2 := range []bool{false, true} {
			proto := map[bool]string{false: "http1", true: "http2"}[h2]
			b.Run(c.name+"/"+proto+"/kept", func(b *testing.B) {
				client := c.client(h2)
				do(client, "/")
				p50(b, func() { do(client, "/") })
			})
			b.Run(c.name+"/"+proto+"/new", func(b *testing.B) {
				p50(b, func() {
					client := c.client(h2)
					do(client, "/")
					client.CloseIdleConnections()
				})
			})
			b.Run(c.name+"/"+proto+"/100MiB", func(b *testing.B) {
				client := c.client(h2)
				b.SetBytes(int64(len(data)))
				p50(b, func() { do(client, "/data") })
			})
		}
	}
}

func p50(b *testing.B, f func()) {
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		f()
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
}

// TestIdleGivesWay: connections that programs keep for later do not hold the slots that others wait for.
func TestIdleGivesWay(t *testing.T) {
	for _, url := range []string{"https://example.com/", "http://example.com/"} {
		f := newSecretFixture(t, func(http.ResponseWriter, *http.Request) {})
		if strings.HasPrefix(url, "http:") { // which leads to a server that knows no TLS
			plain := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(plain.Close)
			f.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, plain.Listener.Addr().String())
			}
		}
		f.conns.mu.Lock()
		f.conns.free = 1
		f.conns.mu.Unlock()
		one, other := f.client(false), f.client(false)
		for range 3 {
			for _, client := range []*http.Client{one, other} {
				answer, err := client.Get(url)
				if err != nil {
					t.Fatal(url, err)
				}
				answer.Body.Close()
			}
		}
	}
}
