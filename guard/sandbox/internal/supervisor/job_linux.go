package supervisor

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

// runJob runs a program as a job in the terminal whose session this process leads. Without it no process of the
// session would be the job's parent, and the kernel does not suspend such jobs.
func runJob(args []string) error {
	if len(args) < 2 {
		return contract.ErrMalformed
	}
	unix.CloseOnExec(contract.TerminalFD)
	unix.CloseOnExec(contract.JobControlFD) // a client that has it could report that it failed
	if err := unix.SetNonblock(contract.JobControlFD, true); err != nil {
		return err
	}
	control := os.NewFile(contract.JobControlFD, "control")
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGTSTP, unix.SIGUSR1,
		unix.SIGUSR2)
	pid, err := syscall.ForkExec(args[0], args[1:], &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: contract.TerminalFD},
	})
	if err != nil {
		_,
			err = control.Write(append([]byte{contract.Failed}, (&os.PathError{Op: "exec", Path: args[0], Err: err}).Error()...))
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
				unix.Exit(contract.ExitCode(state))
			}
			if _, err := control.Write([]byte{contract.Suspended}); err != nil {
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
