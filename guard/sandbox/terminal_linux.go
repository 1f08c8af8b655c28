package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// Terminal makes a terminal for one command. The caller closes it.
func (s *Sandbox) Terminal() (t *Terminal, err error) {
	n, ok := s.engine.(*insideProcess)
	if !ok || n.backend != Namespaces {
		return nil, fmt.Errorf("sandbox: %s has no terminals", s.report.Backend)
	}
	name := "/proc/" + strconv.Itoa(n.cmd.Process.Pid) + "/root/dev/pts/ptmx"
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	master, err := unix.Open(name, flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox: a terminal: %w", err)
	}
	t = &Terminal{Master: os.NewFile(uintptr(master), "terminal"), stopped: make(chan struct{}, 1),
		failure: make(chan string, 1)}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	locked := 0
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCSPTLCK,
		uintptr(unsafe.Pointer(&locked))); errno != 0 {
		return t, fmt.Errorf("sandbox: a terminal: %w", errno)
	}
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if errno != 0 {
		return t, fmt.Errorf("sandbox: a terminal: %w", errno)
	}
	t.slave = os.NewFile(slave, "terminal")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return t, fmt.Errorf("sandbox: a terminal: %w", err)
	}
	t.host, t.control = os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	return t, nil
}

// files are the descriptors of a command with the terminal, which is in the place of those that are not given.
func (t *Terminal) files(given []*os.File) []*os.File {
	files := make([]*os.File, contract.TerminalFD)
	copy(files, given)
	for i, f := range files {
		if f == nil {
			files[i] = t.slave
		}
	}
	return append(files, t.slave, t.control)
}
