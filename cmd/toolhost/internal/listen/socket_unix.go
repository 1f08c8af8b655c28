//go:build unix

package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// socketMode lets only the owner connect.
const socketMode = 0o600

// probeTime bounds the check whether a process listens on an existing socket.
const probeTime = time.Second

// lockRetry is how soon a lock is tried again.
const lockRetry = 10 * time.Millisecond

// CheckSocketPath returns an error if no socket can have this path.
func CheckSocketPath(path string) error {
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return Usage("the path has %d bytes, a socket's name has at most %d", len(path), most)
	}
	return nil
}

// openUnix listens on a socket that it creates. A lock next to it shows whether the existing socket belongs to a live
// process, so that two servers that start at the same time cannot both replace it.
func openUnix(path string, log *slog.Logger) (*Listener, error) {
	if path == "" {
		return nil, Usage("--listen %s: it names no socket: give a path such as unix:/run/user/1000/toolhost/mcp.sock",
			unixPrefix)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	fail := func(err error) (*Listener, error) { return nil, fmt.Errorf("--listen %s%s: %w", unixPrefix, path, err) }
	if err := CheckSocketPath(path); err != nil {
		return fail(err)
	}
	if err := ownDirectory(filepath.Dir(path)); err != nil {
		return fail(err)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(socketMode),
		flock.SetFlag(os.O_CREATE|os.O_RDONLY|privatefile.NoWait|privatefile.NoFollow))
	// If a server is killed while it starts a process, this process holds the lock and the socket for a moment longer.
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockRetry); errors.Is(err, context.DeadlineExceeded) {
		return fail(errors.New("another server listens there"))
	} else if err != nil {
		return fail(err)
	}
	l, err := bind(path)
	if err != nil {
		return fail(errors.Join(err, lock.Close()))
	}
	return &Listener{Listener: &peerCredListener{UnixListener: l, log: log}, Socket: path,
		closers: []func() error{lock.Close}}, nil
}

// bind creates the socket. It replaces one on which no process listens. The caller holds the lock.
func bind(path string) (*net.UnixListener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("a file that is not a socket has this name; it is not replaced")
	default:
		conn, err := net.DialTimeout("unix", path, probeTime)
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, errors.New("another server listens there")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil { // before this the directory keeps others out
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// ownDirectory creates the directory, or checks that no other user can enter it.
func ownDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("the directory %s belongs to another user: put the socket into one of your own", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the directory %s can be entered by others: put the socket into one of its own, or chmod 700 it",
			dir)
	}
	return nil
}

// peerCredListener accepts connections of root and of the user that the server runs as.
type peerCredListener struct {
	*net.UnixListener
	log *slog.Logger
}

// Accept waits for the next connection of these users.
func (l *peerCredListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, known := peerUser(conn)
		if !known || uid == 0 || uid == uint32(os.Geteuid()) {
			return conn, nil
		}
		l.log.Warn("a connection of another user is refused", "uid", uid)
		conn.Close()
	}
}
