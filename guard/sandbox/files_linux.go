package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/proxy"
)

// maxCopies bounds the content of all [Policy].Files, in bytes.
const maxCopies = 16 << 20

// fileCopy is what commands read at the name of a file.
type fileCopy struct {
	path    string
	mode    uint32
	content string
}

// resolveFiles resolves files that exist.
func resolveFiles(files []File) (list []fileCopy, err error) {
	for _, f := range files {
		t, err := locate(f.Path)
		if absent(err) {
			continue
		}
		if err != nil || t.dir {
			return nil, fmt.Errorf("sandbox: %s cannot be replaced: it is not a file (%v)", f.Path, err)
		}
		info, err := os.Stat(t.path)
		if err != nil {
			return nil, fmt.Errorf("sandbox: %s cannot be replaced: %w", f.Path, err)
		}
		list = append(list, fileCopy{t.path, uint32(info.Mode().Perm()) | 0o400, f.Content})
	}
	return list, nil
}

// fileCopies opens copies of files that take the place of others.
func fileCopies(files []fileCopy) ([]attachment, error) {
	if len(files) == 0 {
		return nil, nil
	}
	dir, err := newFileSystem("tmpfs", map[string]string{"mode": "0755", "size": strconv.Itoa(maxCopies)}, attrOpen|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making copies of files: %w", err)
	}
	defer unix.Close(dir)
	var list []attachment
	for i, f := range files {
		name := strconv.Itoa(i)
		if err := writeIn(dir, name, f); err != nil {
			return nil, fmt.Errorf("making %s: %w", f.path, err)
		}
		fd, err := unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err == nil {
			err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attrShut})
		}
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", f.path, err)
		}
		list = append(list, attachment{target{path: f.path}, fd})
	}
	return list, nil
}

// writeIn makes a file.
func writeIn(dir int, name string, c fileCopy) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.WriteString(c.content)
	return errors.Join(err, f.Chmod(os.FileMode(c.mode)), f.Close())
}

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
var errNoBundle = errors.New("this machine has no file of certificates to which that of the sandbox could be added; install the package ca-certificates")

// trustAuthority returns what commands read in the place of the machine's certificates, with that of the proxy, and
// the variables that name it.
func trustAuthority() (files []File, env []string, err error) {
	own, err := proxy.Authority()
	if err != nil {
		return nil, nil, err
	}
	more := ""
	for _, name := range bundleVariables { // what the user trusts in addition
		if path := os.Getenv(name); path != "" && !inBundles(path) {
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
	for _, name := range bundleVariables {
		env = append(env, name+"="+files[0].Path)
	}
	return files, env, nil
}

func inBundles(path string) bool {
	for _, b := range bundles {
		if path == b {
			return true
		}
	}
	return false
}
