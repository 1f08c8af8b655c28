package sandbox

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/internal/proxy"
)

// bundles are where programs of different systems look for certificates of authorities.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch, NixOS
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/ssl/cert.pem",                                 // Alpine
}

// bundleVariables name a file of certificates to programs that have their own, or that look in a directory.
var bundleVariables = []string{
	"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE",
	"CARGO_HTTP_CAINFO", "PIP_CERT", "NIX_SSL_CERT_FILE", "DENO_CERT",
}

// errNoBundle says why commands get no secrets put in.
var errNoBundle = errors.New("this machine has no file of certificates to which that of the sandbox could be added; " +
	"install the package ca-certificates")

// trustAuthority returns what commands read in the place of the machine's certificates, with that of the proxy, and
// the variables that name it.
func trustAuthority() (files []File, env []string, err error) {
	own, err := proxy.Authority()
	if err != nil {
		return nil, nil, err
	}
	more := ""
	for _, name := range bundleVariables { // what the user trusts in addition
		if path := os.Getenv(name); path != "" && !slices.Contains(bundles, path) {
			text, _ := os.ReadFile(path) // programs that cannot read it do without
			more += string(text) + "\n"
		}
	}
	seen := map[string]bool{}
	for _, path := range bundles {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] {
			continue
		}
		text, err := os.ReadFile(real)
		if err != nil {
			continue
		}
		seen[real] = true
		files = append(files, File{real, string(text) + "\n" + more + string(own)})
	}
	if len(files) == 0 {
		return nil, nil, errNoBundle
	}
	files = append(files, trustStores(own)...)
	for _, name := range bundleVariables {
		env = append(env, name+"="+files[0].Path)
	}
	return files, env, nil
}

// trustStores returns the files of certificates of the installations of Java that are found, with another certificate.
// It is no error if there are none.
func trustStores(own []byte) (files []File) {
	block, _ := pem.Decode(own)
	homes, _ := filepath.Glob("/usr/lib/jvm/*") // the pattern is good
	homes = append(homes, os.Getenv("JAVA_HOME"))
	if java, err := hostprogram.Find("java"); err == nil {
		if java, err = filepath.EvalSymlinks(java); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(java)))
		}
	}
	seen := map[string]bool{"": true}
	for _, home := range homes {
		for _, part := range []string{"lib", "jre/lib"} {
			real, _ := filepath.EvalSymlinks(filepath.Join(home, part, "security", "cacerts"))
			if seen[real] || !filepath.IsAbs(home) {
				continue
			}
			seen[real] = true
			text, _ := os.ReadFile(real) // programs that cannot read it do without
			if list := certificates(text); len(list) > 0 {
				files = append(files, File{real, keyStore(append(list, block.Bytes))})
			}
		}
	}
	return files
}

// certificates returns those in a file of Java, which has them as they are (JKS, or PKCS #12 without a password).
func certificates(text []byte) (list [][]byte) {
	for at := 0; ; {
		next := bytes.Index(text[at:], []byte{0x30, 0x82}) // a sequence, with a length of two bytes
		if next < 0 || at+next+4 > len(text) {
			return list
		}
		at += next
		end := at + 4 + int(binary.BigEndian.Uint16(text[at+2:]))
		if end <= len(text) {
			var c struct { // and not what crypto/x509 takes: Java trusts older ones, too
				Content   asn1.RawValue
				Algorithm pkix.AlgorithmIdentifier
				Signature asn1.BitString
			}
			if rest, err := asn1.Unmarshal(text[at:end], &c); err == nil && len(rest) == 0 &&
				c.Content.Tag == asn1.TagSequence {
				list = append(list, slices.Clone(text[at:end]))
				at = end
				continue
			}
		}
		at++
	}
}

// keyStore returns certificates as a key store of Java (JKS), which all versions read.
func keyStore(list [][]byte) string {
	const magic, version, trusted, password = 0xfeedfeed, 2, 2, "changeit"
	b := binary.BigEndian.AppendUint32(nil, magic)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	word := func(s string) { b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	for i, certificate := range list {
		b = binary.BigEndian.AppendUint32(b, trusted)
		word(strconv.Itoa(i))
		b = binary.BigEndian.AppendUint64(b, 0) // when it was added
		word("X.509")
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(certificate))), certificate...)
	}
	sum := sha1.New() // of the password, a constant of the format, and the content
	for _, c := range utf16.Encode([]rune(password)) {
		sum.Write(binary.BigEndian.AppendUint16(nil, c))
	}
	sum.Write([]byte("Mighty Aphrodite"))
	sum.Write(b)
	return string(sum.Sum(b))
}
