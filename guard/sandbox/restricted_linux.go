package sandbox

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/landlock"
)

// StartRestricted starts a process of the host that reads no more than p lets commands read, and writes only what is
// writable under p. It is for programs of the host that read what commands write: a link that a command plants leads
// them nowhere else. It is no sandbox: the process keeps the host's network and its other rights. Where the kernel
// has no Landlock of Linux 5.19, the process is started without restrictions.
func (p Policy) StartRestricted(cmd *exec.Cmd) error {
	if landlock.Version() < landlock.Minimum {
		return cmd.Start()
	}
	pl, err := resolve(p)
	if err != nil {
		return err
	}
	rules, err := landlock.Access(&pl.Plan, false)
	if err != nil {
		return err
	}
	defer rules.Close()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the restricted thread ends with the goroutine
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err != nil {
			err = fmt.Errorf("refusing new privileges: %w", err)
		} else if err = rules.Restrict(); err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}
