package supervise

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopts is false: macOS gives orphans to launchd. The supervisor finds its descendants in the process table as long
// as their parents live, and its process group always.
const adopts = false

const waitAll = 0

const receiveFlags = 0

func ownProgram() (string, error) { return os.Executable() }

func becomeReaper() error { return nil }

func leaderAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// processes returns the user's own processes in the process table.
func processes() ([]process, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Getuid())
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(table))
	for _, k := range table {
		all = append(all, process{
			processID: processID{
				pid:   int(k.Proc.P_pid),
				start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
			},
			parent: int(k.Eproc.Ppid),
			group:  int(k.Eproc.Pgid),
			ended:  k.Proc.P_stat == zombie,
		})
	}
	return all, nil
}

func (p process) kill() bool { return unix.Kill(p.pid, unix.SIGKILL) == nil }

// killDescendants ends the process group of a command whose supervisor was killed. It does not find processes that
// have left the group.
func killDescendants(leader int, _ string) (int, error) {
	err := unix.Kill(-leader, unix.SIGKILL)
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EPERM) {
		return 0, err
	}
	return 0, nil
}
