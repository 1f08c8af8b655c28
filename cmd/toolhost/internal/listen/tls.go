package listen

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// reloadInterval is how long the certificate's files are not examined again, so that many handshakes do not cause as
// many system calls.
const reloadInterval = time.Second

// A certReloader holds the certificate in use. It examines the files when a client connects, and needs no goroutine.
type certReloader struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	checked time.Time
	tried   [2]fs.FileInfo // the files when they were last read, nil for a missing one
}

// unchanged reports whether a file is the same as before.
func unchanged(was, now fs.FileInfo) bool {
	if was == nil || now == nil {
		return was == now
	}
	return os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}

// withTLS returns a listener that serves TLS 1.2 or later on the connections of l. It does not offer HTTP/2, because
// the limits for a client are limits on a connection that serves one request at a time.
func withTLS(l net.Listener, certFile, keyFile string, log *slog.Logger) (net.Listener, error) {
	k, err := newCertReloader(certFile, keyFile, log)
	if err != nil {
		return l, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", certFile, keyFile, err)
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.certificate}), nil
}

func newCertReloader(certFile, keyFile string, log *slog.Logger) (*certReloader, error) {
	k := &certReloader{certFile: certFile, keyFile: keyFile, log: log, checked: time.Now()}
	k.tried = k.stat()
	pair, err := k.load()
	if err != nil {
		return nil, err
	}
	k.current = &pair
	if err := validNow(pair.Leaf); err != nil {
		log.Warn("clients refuse the certificate", "cert", certFile, "error", err)
	}
	return k, nil
}

func (k *certReloader) stat() (now [2]fs.FileInfo) {
	for i, name := range []string{k.certFile, k.keyFile} {
		if info, err := os.Stat(name); err == nil {
			now[i] = info
		}
	}
	return now
}

// maxPEM limits the size of a PEM file, in bytes. Chains have about 10 KB.
const maxPEM = 1 << 20

// load reads the certificate and the key. It does not wait if a command has replaced a file by a pipe: the files may
// be in a root, and clients would have to wait.
func (k *certReloader) load() (pair tls.Certificate, err error) {
	var pem [2][]byte
	for i, name := range []string{k.certFile, k.keyFile} {
		if pem[i], err = privatefile.Read(name, maxPEM); err != nil {
			return pair, err
		}
	}
	return tls.X509KeyPair(pem[0], pem[1])
}

// validNow returns an error if a certificate is not valid now.
func validNow(c *x509.Certificate) error {
	if now := time.Now(); now.Before(c.NotBefore) || now.After(c.NotAfter) {
		return fmt.Errorf("it is valid from %s to %s", c.NotBefore.Format(time.DateTime),
			c.NotAfter.Format(time.DateTime))
	}
	return nil
}

// replaces returns an error if a certificate must not replace the one in use, because all clients would refuse it.
func replaces(used, found *x509.Certificate) error {
	names := func(c *x509.Certificate) (all []string) {
		for _, ip := range c.IPAddresses {
			all = append(all, ip.String())
		}
		return append(all, c.DNSNames...)
	}
	covers := func(c *x509.Certificate, all []string) bool {
		return slices.ContainsFunc(all, func(name string) bool { return c.VerifyHostname(name) == nil })
	}
	if err := validNow(found); err != nil {
		return err
	}
	if validNow(used) == nil && len(names(used)) > 0 && !covers(found, names(used)) && !covers(used, names(found)) {
		return fmt.Errorf("it is for %q, the one in use for %q: restart the server to change the name", names(found),
			names(used))
	}
	return nil
}

// certificate returns the certificate in the files if clients would accept it, and otherwise the last one that they
// would have accepted. While the two files are being replaced they do not match; they are read again when they change
// again.
func (k *certReloader) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.checked) < reloadInterval {
		return k.current, nil
	}
	k.checked = time.Now()
	now := k.stat()
	if unchanged(k.tried[0], now[0]) && unchanged(k.tried[1], now[1]) {
		return k.current, nil
	}
	k.tried = now
	pair, err := k.load()
	if err == nil {
		err = replaces(k.current.Leaf, pair.Leaf)
	}
	if err != nil {
		k.log.Error("the new certificate cannot be used, the old one is kept", "cert", k.certFile, "key", k.keyFile,
			"error", err)
		return k.current, nil
	}
	k.current = &pair
	k.log.Info("a new certificate is in use", "cert", k.certFile)
	return k.current, nil
}
