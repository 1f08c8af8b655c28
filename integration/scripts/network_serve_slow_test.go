//go:build slow && linux

package scripts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

// certify writes a certificate for localhost with this number, and its key.
func certify(t *testing.T, cert, key string, number int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	host.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	host.Must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	host.Must(t, err)
	host.Must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	host.Must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
}

func TestNetworkTLS(t *testing.T) {
	g := host.NewGround(t)
	g.Put("a.txt", "content\n")
	dir := host.TempDir(t)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, cert, key, 1)
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	s := g.Serve(web, nil, "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.URL, "https://") {
		t.Errorf("it announces %s", s.URL)
	}
	if r := s.MustCall("Read", host.Args{"file_path": "a.txt"}, nil); !strings.Contains(r.Result.Text(), "content") {
		t.Errorf("%+v", r)
	}
	number := func() string {
		conn, err := tls.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.URL, "https://"), "/mcp"),
			web.Transport.(*http.Transport).TLSClientConfig)
		host.Must(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	certify(t, cert, key, 2)
	host.Eventually(t, func() string {
		if n := number(); n != "2" {
			return "certificate " + n + " is in use"
		}
		return ""
	})
	host.Must(t, os.WriteFile(cert, []byte("no certificate"), 0o600))
	host.Eventually(t, func() string {
		if n := number(); n != "2" {
			t.Fatalf("certificate %s is in use", n)
		}
		if !strings.Contains(s.Stderr.String(), "the old one is kept") {
			return "nothing is said of the broken certificate"
		}
		return ""
	})
	if r := s.MustCall("Read", host.Args{"file_path": key}, nil); !r.Result.IsError {
		t.Errorf("a tool reads the key: %s", r.Result.Text())
	}
	s.End()
}

// What a client holds is good after a restart: its token, its handle, and what it has read in an exact scope.
func TestNetworkRestart(t *testing.T) {
	g := host.NewGround(t)
	path := g.Put("a.txt", "before\n")
	s := g.Serve(nil, nil, "--listen", "127.0.0.1:0")
	r := s.MustCall("Read", host.Args{"file_path": "a.txt"}, map[string]any{"toolhost/session": "new"})
	var handed struct{ Session string }
	host.Must(t, json.Unmarshal(r.Result.Structured, &handed))
	s.MustCall("Read", host.Args{"file_path": "a.txt"}, nil)
	token := s.Token
	s.End()

	s = g.Serve(nil, nil, "--listen", "127.0.0.1:0")
	if s.Token != token {
		t.Error("the token has changed")
	}
	edit := host.Args{"file_path": "a.txt", "old_string": "before", "new_string": "after"}
	if r := s.MustCall("Edit", edit, nil); !r.Result.IsError || !strings.Contains(r.Result.Text(), "read") {
		t.Errorf("in the scope of all: %s", r.Result.Text())
	}
	if r := s.MustCall("Edit", edit, map[string]any{"toolhost/session": handed.Session}); r.Result.IsError ||
		host.Get(t, path) != "after\n" {
		t.Errorf("with the handle %q: %s", handed.Session, r.Result.Text())
	}
	s.End()
}
