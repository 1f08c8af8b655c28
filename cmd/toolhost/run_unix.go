//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// A runStdio has the standard descriptors of a client in a cell: those of this process, except a terminal. In place
// of a terminal the client gets one of its own; this process copies input and output between the two.
type runStdio struct {
	files    []*os.File
	terminal *os.File // of this process; nil if it has none
	was      *term.State
}

func openStdio() (*runStdio, error) {
	s := &runStdio{files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}
	for i, f := range s.files {
		if term.IsTerminal(int(f.Fd())) {
			s.files[i] = nil
			if s.terminal == nil {
				s.terminal = f
			}
		}
	}
	return s, nil
}

// forwarded are the signals that the client gets in place of this process.
var forwarded = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

const (
	// hangupGrace is how long a client may take to end after its terminal has vanished.
	hangupGrace = 2 * time.Second
	// suspendTime is the longest time until this process is suspended. A process that no shell can resume is not
	// suspended.
	suspendTime = 500 * time.Millisecond
)

// attend waits for the end of the client. Meanwhile it passes on signals and the terminal, whose mode it restores.
func (s *runStdio) attend(cell *builtin.Cell) (sandbox.Status, error) {
	signal.Reset(unix.SIGINT, unix.SIGTERM) // otherwise main would end this process at the second signal
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	if s.terminal == nil {
		for {
			select {
			case sig := <-signals:
				_ = cell.Signal(sig)
			case <-cell.Done():
				return cell.Wait()
			}
		}
	}
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT) // Go cannot give SIGTSTP its default action back
	s.raw()
	defer s.restore()
	s.resize(cell)
	shown, display := make(chan struct{}), &screen{terminal: s.terminal}
	go func() {
		defer close(shown)
		_, _ = io.Copy(display, cell.Terminal.Master)
	}()
	gone, keys := make(chan struct{}), &keyboard{client: cell.Terminal.Master}
	go func() { // runs until this process ends
		_, _ = io.Copy(keys, s.terminal)
		close(gone)
	}()
	var late <-chan time.Time
	stopped := cell.Terminal.Stopped()
	for {
		select {
		case sig := <-signals:
			switch sig {
			case unix.SIGWINCH:
				s.resize(cell)
			case unix.SIGCONT:
				s.raw()
				s.resize(cell)
			default:
				_ = cell.Signal(sig)
			}
		case _, open := <-stopped:
			if !open {
				stopped = nil
				continue
			}
			keys.leave(display)
			s.suspend(signals)
			keys.enter(display)
			s.resize(cell)
			cell.Terminal.Resume()
		case <-gone:
			gone, late = nil, time.After(hangupGrace)
			_ = cell.Signal(unix.SIGHUP)
		case <-late:
			_, _ = cell.Kill()
		case <-cell.Done():
			_, _ = cell.Kill() // the remaining processes have the terminal open
			<-shown
			keys.leave(display)
			return cell.Wait()
		}
	}
}

// suspend suspends the process group, as a shell expects of a job. It returns when the job is resumed, or at once if
// no shell could resume it.
func (s *runStdio) suspend(signals chan os.Signal) {
	s.restore()
	_ = unix.Kill(0, unix.SIGTSTP)
	over := time.After(suspendTime)
	for resumed := false; !resumed; {
		select {
		case sig := <-signals:
			resumed = sig == unix.SIGCONT
		case <-over:
			resumed = true
		}
	}
	s.raw()
}

// raw puts the terminal into raw mode, in which every key is passed on.
func (s *runStdio) raw() {
	was, err := term.MakeRaw(int(s.terminal.Fd()))
	if err == nil && s.was == nil {
		s.was = was
	}
}

// restore restores the mode of the terminal.
func (s *runStdio) restore() {
	if s.was != nil {
		_ = term.Restore(int(s.terminal.Fd()), s.was)
	}
}

// resize sets the size of the client's terminal to that of ours.
func (s *runStdio) resize(cell *builtin.Cell) {
	size, err := unix.IoctlGetWinsize(int(s.terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return
	}
	raw, err := cell.Terminal.Master.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) })
	}
}
