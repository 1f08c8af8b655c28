package supervise

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CloseInherited marks the descriptors from 3 on, so that they are closed in every program started from now on.
// Otherwise the descriptors of a launcher would reach the commands. It must be the first call in main.
func CloseInherited() error {
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		if err := closeOnExecAll(); err != nil {
			return fmt.Errorf("inherited descriptors could not be kept from commands: %w", err)
		}
	}
	return nil
}

// Harden makes the process undumpable: its /proc entries belong to root, so that
// an ordinary user's command cannot write protocol messages to /proc/PPID/fd/1,
// read the server's environment and memory, or trace it. Root's commands still
// can; only the sandbox keeps those out.
//
// The cost: no core dumps and no debugger for an ordinary user; and a process
// that is not dumpable cannot start a child in a new user namespace, because it
// may not write the child's uid_map. So it is for hosts whose commands run
// without one.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("the server could not be made undumpable: %w", err)
	}
	return nil
}

// closeOnExecAll does what CLOSE_RANGE_CLOEXEC does where that is missing
// (before Linux 5.11, or filtered).
func closeOnExecAll() error {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
