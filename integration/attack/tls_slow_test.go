//go:build slow && unix

package attack

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// certificate writes a self-signed certificate for a name or an address, and its key.
func certificate(t *testing.T, certFile, keyFile, name string, end time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	host.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	host.Must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	host.Must(t, err)
	host.MustWrite(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	host.MustWrite(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}

// TestAttackTLS attacks the TLS of a host: old versions, a file that is replaced by what no client accepts, handshakes that never end.
func TestAttackTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cert, key := filepath.Join(w.root, "cert.pem"), filepath.Join(w.root, "key.pem")
	later := time.Now().Add(time.Hour)
	certificate(t, cert, key, "127.0.0.1", later)
	first, err := os.ReadFile(cert)
	host.Must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first)
	cmd := exec.Command(host.Binary, "http", "--listen", "127.0.0.1:0", "--root", w.ws, "--tls-cert", cert,
		"--tls-key", key)
	cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
	stderr, err := cmd.StderrPipe()
	host.Must(t, err)
	host.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var log host.LockedBuffer
	url, _, err := client.Announced(io.TeeReader(stderr, &log)) // which reads on
	host.Must(t, err)
	address := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/mcp")
	dial := func(cfg *tls.Config) error {
		cfg.RootCAs = roots
		conn, err := tls.Dial("tcp", address, cfg)
		if err != nil {
			return err
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
		answer, err := io.ReadAll(conn)
		if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
			err = fmt.Errorf("it answers %q", answer)
		}
		return err
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if dial(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version}) == nil {
			t.Errorf("it speaks %s", tls.VersionName(version))
		}
	}
	works := func(when string) {
		t.Helper()
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if err := dial(&tls.Config{MaxVersion: version}); err != nil {
				t.Errorf("%s: %s: %v", when, tls.VersionName(version), err)
			}
		}
	}
	works("at first")
	if resp, err := http.Get("http://" + address + "/healthz"); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %v, %v", resp, err)
	}
	for range 500 {
		conn, err := net.Dial("tcp", address)
		host.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		_, _ = conn.Write([]byte("\x16\x03\x01\x02\x00\x01")) // the beginning of a handshake
	}
	works("with handshakes that never end")
	for name, replace := range map[string]func(){
		"another name": func() { certificate(t, cert, key, "evil.example", later) },
		"expired":      func() { certificate(t, cert, key, "127.0.0.1", time.Now().Add(-time.Hour)) },
		"no key":       func() { certificate(t, cert, filepath.Join(w.root, "other.pem"), "127.0.0.1", later) },
		"not PEM":      func() { host.MustWrite(t, cert, "x") },
	} {
		before := len(log.String())
		replace()
		host.Eventually(t, func() string {
			works(name)
			if !strings.Contains(log.String()[before:], "the old one is kept") {
				return name + ": the log does not say that the certificate is kept: " + log.String()[before:]
			}
			return ""
		})
	}
}

// TestAttackServerTLS has servers that a host must not talk to: what their entries hold is never sent.
func TestAttackServerTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	later := time.Now().Add(time.Hour)
	pair := func(name, of string, end time.Time) (tls.Certificate, string) {
		cert, key := filepath.Join(w.root, name+".pem"), filepath.Join(w.root, name+".key")
		certificate(t, cert, key, of, end)
		p, err := tls.LoadX509KeyPair(cert, key)
		host.Must(t, err)
		return p, cert
	}
	good, trusted := pair("good", "127.0.0.1", later)
	other, otherFile := pair("other", "evil.example", later)
	expired, expiredFile := pair("expired", "127.0.0.1", time.Now().Add(-time.Hour))
	unknown, _ := pair("unknown", "127.0.0.1", later)
	var all []byte // that the host trusts
	for _, file := range []string{trusted, otherFile, expiredFile} {
		raw, err := os.ReadFile(file)
		host.Must(t, err)
		all = append(all, raw...)
	}
	host.Must(t, os.WriteFile(trusted, all, 0o600))
	wire, entries := map[string]*host.LockedBuffer{}, []string{}
	for name, cfg := range map[string]*tls.Config{
		"good": {Certificates: []tls.Certificate{good}}, "othername": {Certificates: []tls.Certificate{other}},
		"expired": {Certificates: []tls.Certificate{expired}}, "unknown": {Certificates: []tls.Certificate{unknown}},
		"old":  {Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"mtls": {Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert},
	} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
		host.Must(t, err)
		got := &host.LockedBuffer{}
		wire[name] = got
		web := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(got, r.Header)
		})}
		go func() { _ = web.Serve(l) }()
		t.Cleanup(func() { web.Close() })
		entries = append(entries, fmt.Sprintf(`%q:{"type":"http","url":"https://%s/mcp","headers":{"Authorization":"Bearer CANARY-%s"}}`, name, l.Addr(), name))
	}
	host.MustWrite(t, filepath.Join(w.home, "config", "toolhost", "toolhost.json"), `{"mcpServers":{`+
		strings.Join(entries, ",")+"}}")
	cmd := exec.Command(host.Binary, "mcp", "list", "--root", w.ws)
	cmd.Dir, cmd.Env = w.ws, append(host.CleanEnv(w.home), "SSL_CERT_FILE="+trusted)
	out, _ := cmd.CombinedOutput() // no server answers as one
	for name, got := range wire {
		if sent := strings.Contains(got.String(), "CANARY-"+name); sent != (name == "good") {
			t.Errorf("%s: the token was sent: %v\n%s", name, sent, out)
		}
	}
}
