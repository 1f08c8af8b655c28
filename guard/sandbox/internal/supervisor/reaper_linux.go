package supervisor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sweepLimit bounds the time a sweep runs after processes that start
	// others faster than they can be killed.
	sweepLimit = time.Second
	// sweepPatience bounds the time it waits for processes that were killed and
	// have not ended: on a machine that is busy a large one takes seconds.
	sweepPatience = 20 * time.Second
	// sweepPause is what killed processes get to end before the next look.
	sweepPause = 500 * time.Microsecond
	// cleanLooks is how many looks in a row must find nothing: in one, a process
	// may hide by starting another whose number was passed already, and ending
	// itself.
	cleanLooks = 2
)

// sweep kills all processes of a command until none is found any more, and returns how many there were. If new ones
// are still found at the limit, process 1 ends, and with it everything in the sandbox.
func sweep(limit time.Duration, members func(pid int) bool) (ended int, err error) {
	s := &reaper{members: members, seen: make(map[int]bool), limit: limit, begun: time.Now()}
	s.fresh = s.begun
	if err := s.count(); err != nil {
		return 0, err
	}
	for clean := 0; clean < cleanLooks; {
		found, err := s.look()
		if err != nil {
			return len(s.seen), err
		}
		if found == 0 {
			clean++
			continue
		}
		clean = 0
		time.Sleep(sweepPause)
	}
	return len(s.seen), nil
}

// sweepDescendants is sweep for all descendants of this process, which do not end with it. This process inherits
// orphans: if it has no child it has no descendant, and need not look through the processes of the whole machine.
func sweepDescendants() (ended int, err error) {
	err = unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if errors.Is(err, unix.ECHILD) {
		return 0, nil
	}
	return sweep(sweepPatience, descends)
}

// reaper ends the processes of one command.
type reaper struct {
	members func(pid int) bool
	seen    map[int]bool
	limit   time.Duration // for which new ones may be found
	begun   time.Time
	fresh   time.Time // before which all that is still found was killed
}

// count records all processes before the first is killed: a process that dies with the group of
// another is often gone before it would be seen.
func (s *reaper) count() error {
	pids, err := processes()
	for _, pid := range pids {
		if s.members(pid) {
			s.seen[pid] = true
		}
	}
	return err
}

// look goes once through all processes, and returns how many processes of the command it found and killed.
func (s *reaper) look() (found int, err error) {
	pids, err := processes()
	if err != nil {
		return 0, err
	}
	begun, all := time.Now(), len(s.seen)
	for _, pid := range pids {
		if time.Since(s.fresh) > s.limit || time.Since(s.begun) > sweepPatience {
			fmt.Fprintln(os.Stderr, "a command started processes faster than they could be ended; the sandbox was ended instead")
			unix.Exit(exitInit)
		}
		if s.kill(pid) {
			found++
			s.seen[pid] = true
		}
	}
	if len(s.seen) == all {
		s.fresh = begun // the rest was killed and needs time to end
	}
	return found, nil
}

// processes lists all processes that can be seen but our own.
func processes() ([]int, error) {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	defer unix.Close(fd)
	var pids []int
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			return nil, fmt.Errorf("looking for processes: %w", err)
		}
		if n <= 0 {
			return pids, nil
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
}

// kill kills pid, with its process group, if it is a process of the command, and reports whether it is. A group is
// killed at one stroke, so forking is no escape. A group belongs to one command, because groups do not cross sessions
// and every command starts in a session of its own.
func (s *reaper) kill(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0) // so that the number cannot change hands
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !s.members(pid) {
		return false
	}
	group, err := unix.Getpgid(pid)
	if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false // it has ended, and another process may have its number
	}
	if err == nil && group > 1 {
		unix.Kill(-group, unix.SIGKILL)
	}
	return true
}
