package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// job is a command as its init process knows it. In namespaces, every process that
// descends from it is in its UTS namespace, which none can leave: session,
// process group and parent can all be changed. Without, the init process has one
// command only, and all its descendants are that command's.
type job struct {
	id      uint64
	pid     int
	mark    uint64         // number of the namespace, or 0
	ns      int            // descriptor that keeps the namespace, and thus its number, from being reused; or -1
	members func(int) bool // whether a process is one of the command's
	exited  bool
}

// jobs is the table of commands.
type jobs struct {
	mu      sync.Mutex
	byID    map[uint64]*job
	byPID   map[int]*job
	started chan struct{} // has an element if a process was started
}

func newJobs() *jobs {
	return &jobs{byID: make(map[uint64]*job), byPID: make(map[int]*job), started: make(chan struct{}, 1)}
}

// add starts a command by calling start. The lock is held meanwhile, or reap
// could see the end of a process it does not know yet.
func (js *jobs) add(id uint64, start func() (forked, error)) (forked, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	p, err := start()
	if err != nil {
		return p, err
	}
	j := &job{id: id, pid: p.pid, mark: p.mark, ns: p.ns, members: descends}
	if p.ns >= 0 {
		marker, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(p.ns))
		if err != nil {
			unix.Kill(p.pid, unix.SIGKILL)
			contract.CloseAll([]int{p.ns, p.pidfd})
			return p, fmt.Errorf("identifying the command: %w", err)
		}
		j.members = func(pid int) bool { return hasMarker(pid, marker) }
	}
	js.byID[id], js.byPID[p.pid] = j, j
	select {
	case js.started <- struct{}{}:
	default:
	}
	return p, nil
}

// reap collects ended processes for ever: the commands, which it reports, and
// the orphans, which process 1 inherits. gone says that no process of a command is
// left, and that the table has dropped it, so that the host need not ask.
func (js *jobs) reap(exited func(j *job, status syscall.WaitStatus, gone bool)) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.ECHILD) {
			<-js.started
			continue
		}
		if err != nil {
			continue // EINTR
		}
		if j := js.ended(pid); j != nil {
			exited(j, status, js.leave(j))
		}
	}
}

// ended notes that a process has ended, and returns its command if it was one.
func (js *jobs) ended(pid int) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	j := js.byPID[pid]
	if j != nil {
		j.exited = true
		delete(js.byPID, pid)
	}
	return j
}

// leave forgets a command that has ended if no process of it is left, and reports whether that is
// so. Without namespaces it would have to search the processes of the whole machine.
func (js *jobs) leave(j *job) bool {
	if j.ns < 0 || !noOrphans() && !js.nothingOf(j) {
		return false
	}
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.byID[j.id] != j {
		return false // is being killed
	}
	delete(js.byID, j.id)
	unix.Close(j.ns)
	return true
}

// noOrphans reports whether no process is left of any command that has ended: the
// topmost of them would be a child of the main thread of process 1 by now.
// Commands are children of the spawner thread, and the system call filter keeps other
// processes from becoming that (CLONE_PARENT). The kernel reads the beginning of the list
// under a lock. Not all kernels have it (CONFIG_PROC_CHILDREN).
func noOrphans() bool {
	self := os.Getpid()
	fd, err := proc.OpenChildren(self, self)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return proc.Childless(fd)
}

// nothingOf reports whether no process of a command is found.
func (js *jobs) nothingOf(j *job) bool {
	for range cleanLooks {
		pids, err := processes()
		if err != nil || slices.ContainsFunc(pids, func(pid int) bool { return !js.others(j, pid) && j.members(pid) }) {
			return false
		}
	}
	return true
}

// others reports whether pid is the first process of another command.
func (js *jobs) others(j *job, pid int) bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	owner := js.byPID[pid]
	return owner != nil && owner != j
}

// signal sends sig to the process group of a command that has not ended.
func (js *jobs) signal(id uint64, sig syscall.Signal) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.byID[id]; j != nil && !j.exited {
		unix.Kill(-j.pid, sig)
	}
}

// kill ends every process of a command and forgets it.
func (js *jobs) kill(id uint64) (ended int, err error) {
	js.mu.Lock()
	j := js.byID[id]
	delete(js.byID, id)
	js.mu.Unlock()
	if j == nil {
		return 0, nil
	}
	if j.ns < 0 {
		return sweepDescendants()
	}
	defer unix.Close(j.ns)
	return sweep(sweepLimit, func(pid int) bool { return !js.others(j, pid) && j.members(pid) })
}

// descends reports whether pid is alive and a descendant of this process, which
// inherits orphans, so that no descendant is lost when its parent ends.
func descends(pid int) bool {
	for self, first := os.Getpid(), true; pid > 1; first = false {
		alive, parent, err := processStat(pid)
		if err != nil || first && !alive {
			return false
		}
		if parent == self {
			return true
		}
		pid = parent
	}
	return false
}

// processStat reports whether a process is alive, and returns its parent. One whose main
// thread has ended has the state of a dead process, but further threads.
func processStat(pid int) (alive bool, parent int, err error) {
	s, err := proc.StatOf(pid)
	return s.State != "Z" && s.State != "X" || s.Threads > 1, s.Parent, err
}

// hasMarker reports whether pid has a thread in the namespace that reads as
// marker. The main thread alone would not do: it may have ended while others
// run.
func hasMarker(pid int, marker string) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	link, err := os.Readlink(dir + "/ns/uts")
	if err == nil {
		return link == marker
	}
	if errors.Is(err, unix.EACCES) {
		return mayHaveMarker(pid, marker)
	}
	threads, err := os.ReadDir(dir + "/task")
	if err != nil {
		return false
	}
	for _, t := range threads {
		link, err := os.Readlink(dir + "/task/" + t.Name() + "/ns/uts")
		if err == nil && link == marker || errors.Is(err, unix.EACCES) && mayHaveMarker(pid, marker) {
			return true
		}
	}
	return false
}

// mayHaveMarker is hasMarker for a process whose namespace cannot be read: it executes a program that its user may
// not read, and belongs to a user or group outside of our user namespace. Such a process counts as one of its
// parent's command. If the parent has ended, it counts as one of every command, so that no command ends while a
// process is left that may be its own.
func mayHaveMarker(pid int, marker string) bool {
	_, parent, err := processStat(pid)
	return err == nil && (parent <= 1 || hasMarker(parent, marker))
}
