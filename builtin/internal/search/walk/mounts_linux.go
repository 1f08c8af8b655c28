package walk

import (
	"bytes"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Mounts reports whether a mount on, above or below a directory has changed. No event announces that.
type Mounts struct {
	fd   int
	root string
	seen []byte
}

// OpenMounts observes a directory, by its real path.
func OpenMounts(root string) (*Mounts, error) {
	// Not as an os.File: the kernel reports a change once, and the runtime's poller
	// would consume it.
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	m := &Mounts{fd: fd, root: root}
	if m.seen, err = m.read(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return m, nil
}

// Close releases the descriptor.
func (m *Mounts) Close() error { return unix.Close(m.fd) }

// Changed reports whether something has changed since the last call.
func (m *Mounts) Changed() bool {
	fds := []unix.PollFd{{Fd: int32(m.fd), Events: unix.POLLPRI}}
	if n, err := unix.Poll(fds, 0); err == nil && n == 0 {
		return false
	}
	now, err := m.read()
	if err != nil {
		return true
	}
	same := bytes.Equal(now, m.seen)
	m.seen = now
	return !same
}

// read returns the lines that matter. The mount point is the fifth field of a
// line, with blanks written in octal (proc_pid_mountinfo(5)).
func (m *Mounts) read() ([]byte, error) {
	if _, err := unix.Seek(m.fd, 0, io.SeekStart); err != nil {
		return nil, err
	}
	all, err := io.ReadAll(reader(m.fd))
	if err != nil {
		return nil, err
	}
	var out []byte
	for line := range bytes.Lines(all) {
		fields := bytes.Fields(line)
		if len(fields) > 4 && related(octal(string(fields[4])), m.root) {
			out = append(out, line...)
		}
	}
	return out, nil
}

var octals = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func octal(s string) string { return octals.Replace(s) }

// related reports whether one path lies in the other.
func related(a, b string) bool {
	a, b = strings.TrimSuffix(a, "/")+"/", strings.TrimSuffix(b, "/")+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// reader reads from a descriptor.
type reader int

func (r reader) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(r), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
