package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopts says that orphans become children of the supervisor, so that a wait
// without children proves that nothing is left.
const adopts = true

// waitAll makes a wait include children that end with a signal other than SIGCHLD.
const waitAll = unix.WALL

// receiveFlags make a received descriptor close-on-exec, so that programs started later do not get it.
const receiveFlags = unix.MSG_CMSG_CLOEXEC

// ownProgram returns a path to this program that stays valid if its file is replaced.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// becomeReaper makes this process the parent of all orphans below it. It also makes it undumpable, so that the
// command can neither trace it nor open its descriptors.
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// leaderAttr makes the shell die with its supervisor.
func leaderAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// processes reads the process table.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, ok := readProcess(name); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// exiting is PF_EXITING of the kernel's <linux/sched.h>.
const exiting = 0x4

// readProcess reads /proc/PID/stat: "PID (NAME) STATE PPID PGRP SESSION …", with
// the flags as field 9, the number of threads as 20 and the start time as 22
// (proc_pid_stat(5)). The name may hold anything, so
// the fields are counted from the last parenthesis.
func readProcess(pid string) (process, bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return process{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, parent, group, session, flags, threads, start = 0, 1, 2, 3, 6, 17, 19
	if len(fields) <= start {
		return process{}, false
	}
	var p process
	p.pid, _ = strconv.Atoi(pid)
	p.parent, _ = strconv.Atoi(fields[parent])
	p.group, _ = strconv.Atoi(fields[group])
	p.session, _ = strconv.Atoi(fields[session])
	p.start, _ = strconv.ParseUint(fields[start], 10, 64)
	// A process that is exiting need not be killed, and does not count as left over. A process whose first thread has
	// ended while others run looks like a zombie too, so the number of threads is checked.
	bits, _ := strconv.ParseUint(fields[flags], 10, 64)
	leaving := fields[state] == "Z" || fields[state] == "X" || bits&exiting != 0
	p.ended = leaving && (fields[threads] == "0" || fields[threads] == "1")
	return p, true
}

// kill kills the process, unless its id belongs to another process by now.
func (p process) kill() bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.3, or filtered
		return unix.Kill(p.pid, unix.SIGKILL) == nil
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if now, ok := readProcess(strconv.Itoa(p.pid)); !ok || now.processID != p.processID {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

const (
	huntRounds = 3                    // rounds in a row that must find nothing
	huntMax    = 500                  // rounds at most
	huntPause  = 2 * time.Millisecond // between two rounds
)

// killDescendants ends what is left of a command whose supervisor was killed: everything in
// the shell's session, and everything that carries the command's identifier.
func killDescendants(leader int, call string) (int, error) {
	killed := map[processID]bool{}
	quiet := 0
	for range huntMax {
		found, err := ofCall(leader, call)
		if err != nil {
			return len(killed), err
		}
		for _, p := range found {
			if p.kill() {
				killed[p.processID] = true
			}
		}
		if quiet++; len(found) > 0 {
			quiet = 0
		}
		if quiet == huntRounds {
			return len(killed), nil
		}
		time.Sleep(huntPause)
	}
	return len(killed), fmt.Errorf("processes of the command could not be ended within %d attempts", huntMax)
}

// environment returns the environment that a process was started with. If its first thread has ended, the environment
// is read from another thread.
func environment(pid int) []byte {
	dir := "/proc/" + strconv.Itoa(pid)
	if env, err := os.ReadFile(dir + "/environ"); err == nil && len(env) > 0 {
		return env
	}
	threads, _ := os.ReadDir(dir + "/task") // fails if the process is gone or not ours
	for _, t := range threads {
		if env, err := os.ReadFile(dir + "/task/" + t.Name() + "/environ"); err == nil && len(env) > 0 {
			return env
		}
	}
	return nil
}

// ofCall returns the live processes of a command whose supervisor is gone.
func ofCall(leader int, call string) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	mark := []byte(CallVariable + "=" + call + "\x00")
	var found []process
	for _, p := range all {
		if p.ended {
			continue
		}
		mine := p.session == leader
		if !mine {
			mine = bytes.Contains(environment(p.pid), mark)
		}
		if mine {
			found = append(found, p)
		}
	}
	return found, nil
}
