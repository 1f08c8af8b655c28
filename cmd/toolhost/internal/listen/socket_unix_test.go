//go:build unix

package listen

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
)

func TestSocketIsItsOwnersOnly(t *testing.T) {
	dir := filepath.Join(privateDir(t), "made")
	path := filepath.Join(dir, "s")
	l := open(t, Config{Address: "unix:" + path})
	for name, want := range map[string]fs.FileMode{dir: 0o700, path: 0o600, path + ".lock": 0o600} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	if l.Socket != path || l.URL != "http://localhost" {
		t.Errorf("socket %s, URL %s", l.Socket, l.URL)
	}
	go func() {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
		}
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is left behind")
	}
}

func TestSocketOfTheLivingAndTheDead(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	dir := privateDir(t)
	path := filepath.Join(dir, "s")
	first := open(t, Config{Address: "unix:" + path})
	if _, err := Open(Config{Address: "unix:" + path}); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server beside ours: %v", err)
	}
	first.Close()
	foreign, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Address: "unix:" + path}); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("beside a server of another kind: %v", err)
	}
	foreign.SetUnlinkOnClose(false)
	foreign.Close() // as a process that was killed leaves it
	l, err := Open(Config{Address: "unix:" + path})
	if err != nil {
		t.Fatalf("in place of a dead one: %v", err)
	}
	l.Close()
}

// Who starts a server anew that was killed does not have to wait until the last has let go of its lock.
func TestSocketOfTheDying(t *testing.T) {
	path := filepath.Join(privateDir(t), "s")
	synctest.Test(t, func(t *testing.T) {
		lock := flock.New(path + ".lock")
		if held, err := lock.TryLock(); err != nil || !held {
			t.Fatal(held, err)
		}
		opened := make(chan error)
		go func() {
			l, err := openUnix(path, slog.New(slog.DiscardHandler))
			if err == nil {
				err = l.Close()
			}
			opened <- err
		}()
		synctest.Wait() // it has found the lock held
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
}

func TestSocketRefuses(t *testing.T) {
	dir := privateDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(dir, "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	writePair(t, cert, key, "a.example")
	for _, tt := range []struct {
		name string
		cfg  Config
		says string
	}{
		{"a file", Config{Address: "unix:" + file}, "not a socket"},
		{"a directory for all", Config{Address: "unix:" + filepath.Join(shared, "s")}, "entered by others"},
		{"a long path", Config{Address: "unix:" + filepath.Join(dir, strings.Repeat("x", 200))}, "at most"},
		{"TLS on a socket", Config{Address: "unix:" + filepath.Join(dir, "s"), CertFile: cert, KeyFile: key}, "leave --tls-cert"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Open(tt.cfg)
			if err == nil {
				l.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error does not say %q: %v", tt.says, err)
			}
		})
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "kept" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "s")); err == nil {
		t.Error("a refused socket is left behind")
	}
}

// A server that is shut down closes its listener in two places, maybe at once: the socket goes once, and no one finds it half gone.
func TestClosedTwice(t *testing.T) {
	for range 50 {
		l, err := Open(Config{Address: unixPrefix + filepath.Join(privateDir(t), "s")})
		if err != nil {
			t.Fatal(err)
		}
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(func() { l.Close() })
		}
		closing.Wait()
		if _, err := os.Lstat(l.Socket); err == nil {
			t.Fatal("the socket is still there")
		}
	}
}

// What a command puts in the place of a certificate's file is not waited for: all clients would wait with it.
func TestPipeForCertificate(t *testing.T) {
	dir := privateDir(t)
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	writePair(t, cert, key, "first")
	var log bytes.Buffer
	k, err := newCertReloader(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(cert), syscall.Mkfifo(cert, 0o600)); err != nil {
		t.Fatal(err)
	}
	k.checked = time.Time{} // as if time had passed
	if pair, err := k.certificate(nil); err != nil || pair == nil || pair.Leaf.Subject.CommonName != "first" ||
		!strings.Contains(log.String(), "not a regular file") {
		t.Errorf("with a pipe: %v, %v; log %s", pair, err, &log)
	}
}
