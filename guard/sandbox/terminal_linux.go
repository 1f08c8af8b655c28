package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Terminal makes a terminal for one command. The caller closes it.
func (s *Sandbox) Terminal() (t *Terminal, err error) {
	n, ok := s.engine.(*namespaces)
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
	files := make([]*os.File, terminalSlave)
	copy(files, given)
	for i, f := range files {
		if f == nil {
			files[i] = t.slave
		}
	}
	return append(files, t.slave, t.control)
}

// Descriptors of the process that runs a command as a job in a terminal: after the command's own.
const (
	terminalSlave   = 3
	terminalControl = 4
)

// runJob runs a program as a job in the terminal whose session this process leads. Without it no process of the
// session would be the job's parent, and the kernel does not suspend such jobs.
func runJob(args []string) error {
	if len(args) < 2 {
		return errMalformed
	}
	unix.CloseOnExec(terminalSlave)
	unix.CloseOnExec(terminalControl) // a client that has it could report that it failed
	if err := unix.SetNonblock(terminalControl, true); err != nil {
		return err
	}
	control := os.NewFile(terminalControl, "control")
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGTSTP, unix.SIGUSR1,
		unix.SIGUSR2)
	pid, err := syscall.ForkExec(args[0], args[1:], &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: terminalSlave},
	})
	if err != nil {
		_, err = control.Write(append([]byte{failed}, (&os.PathError{Op: "exec", Path: args[0], Err: err}).Error()...))
		return err
	}
	states := make(chan syscall.WaitStatus)
	go followJob(pid, states)
	go func() {
		for buf := make([]byte, 1); ; {
			if n, err := control.Read(buf); n == 0 || err != nil {
				return
			}
			unix.Kill(-pid, unix.SIGCONT)
		}
	}()
	for {
		select {
		case sig := <-signals:
			unix.Kill(-pid, sig.(syscall.Signal))
		case state := <-states:
			if !state.Stopped() {
				unix.Exit(statusOf(state).ExitCode)
			}
			if _, err := control.Write([]byte{suspended}); err != nil {
				return err
			}
		}
	}
}

// followJob reports when a child is suspended, and its end.
func followJob(pid int, states chan<- syscall.WaitStatus) {
	for {
		var state syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &state, syscall.WUNTRACED, nil); errors.Is(err, unix.EINTR) {
			continue
		}
		states <- state
	}
}
