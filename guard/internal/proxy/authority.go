package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	// authorityLife and leafLife are how long certificates are valid. A host process may run for months.
	authorityLife, leafLife = 10 * 365 * 24 * time.Hour, 30 * 24 * time.Hour
	// maxLeaves bounds the certificates that are kept: commands choose the names below a wildcard.
	maxLeaves = 1024
	// clockSkew is how far a clock may be behind.
	clockSkew = time.Hour
)

// An authority signs certificates for hosts that commands reach through the proxy. Its key is in memory only.
type authority struct {
	certificate *x509.Certificate
	key, leaf   *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // by host
}

// ourAuthority is that of this process.
var ourAuthority = sync.OnceValues(newAuthority)

// Authority returns the certificate of the authority that signs for hosts with secrets, in PEM.
func Authority() ([]byte, error) {
	a, err := ourAuthority()
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}), nil
}

func newAuthority() (*authority, error) {
	a := &authority{leaves: map[string]*tls.Certificate{}}
	for _, key := range []**ecdsa.PrivateKey{&a.key, &a.leaf} {
		var err error
		if *key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, fmt.Errorf("certificate authority: %w", err)
		}
	}
	der, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "toolhost sandbox"}, IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true,
		KeyUsage:       x509.KeyUsageCertSign,
	}, authorityLife, &a.key.PublicKey)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return a, nil
}

// sign signs a certificate; the authority's own if it has none.
func (a *authority) sign(c *x509.Certificate, life time.Duration, key *ecdsa.PublicKey) (der []byte, err error) {
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-clockSkew), time.Now().Add(life)
	parent := a.certificate
	if parent == nil {
		parent = c
	}
	return x509.CreateCertificate(rand.Reader, c, parent, key, a.key)
}

// certificateFor returns a certificate for a host.
func (a *authority) certificateFor(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil && time.Until(c.Leaf.NotAfter) > leafLife/2 {
		return c, nil
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "a host reached from a toolhost sandbox"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := a.sign(template, leafLife, &a.leaf.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", host, err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: a.leaf}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", host, err)
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	a.leaves[host] = c
	return c, nil
}
