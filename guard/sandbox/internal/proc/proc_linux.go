// Package proc reads what /proc says of a process: its parent, its state, the file that it runs, and the UTS namespace
// by which the command is known that it belongs to.
package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// MaxChain bounds how many ancestors of a process are named.
const MaxChain = 64

// A Stat is what /proc/PID/stat says of a process, see proc_pid_stat(5).
type Stat struct {
	Name, State     string
	Parent, Threads int
	Started         uint64 // in clock ticks since the boot
}

// StatOf reads the state of a process.
func StatOf(pid int) (s Stat, err error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return s, err
	}
	defer unix.Close(fd)
	text := make([]byte, 1024) // a line of 52 numbers and a short name
	n, err := unix.Read(fd, text)
	if err != nil {
		return s, err
	}
	text = text[:n]
	// The name is in parentheses and may contain any character.
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	if begin < 0 || end < begin || len(fields) < 20 {
		return s, errMalformedStat
	}
	s.Name, s.State = string(text[begin+1:end]), fields[0]
	var errs [3]error
	s.Parent, errs[0] = strconv.Atoi(fields[1])
	s.Threads, errs[1] = strconv.Atoi(fields[17])
	s.Started, errs[2] = strconv.ParseUint(fields[19], 10, 64)
	return s, errors.Join(errs[:]...)
}

// ImageOf returns the file that a process runs.
func ImageOf(pid int) (place.Inode, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/exe", &st)
	return place.Inode{Dev: st.Dev, Ino: st.Ino}, err
}

// MarkOf returns the name of a process's namespace. The kernel hides the namespace of a process that runs a program
// which its user may not read: MarkOf then returns that of the nearest ancestor whose namespace it can read, and
// fails if there is none.
func MarkOf(pid int) (name string, err error) {
	for {
		name, err = os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/uts")
		if !errors.Is(err, unix.EACCES) {
			return name, err
		}
		s, statErr := StatOf(pid)
		if statErr != nil || s.Parent <= 1 {
			return "", err
		}
		pid = s.Parent
	}
}

// MarkName returns the name of a namespace as [MarkOf] does. number is that of its inode.
func MarkName(number uint64) string { return "uts:[" + strconv.FormatUint(number, 10) + "]" }

// OpenChildren opens the list of a thread's children. Each read returns the current ones.
func OpenChildren(pid, thread int) (fd int, err error) {
	return unix.Open("/proc/"+strconv.Itoa(pid)+"/task/"+strconv.Itoa(thread)+"/children",
		unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// Childless reports whether a list of children is empty, as it is if the process has
// ended.
func Childless(fd int) bool {
	n, err := unix.Pread(fd, make([]byte, 16), 0)
	return n == 0 && err == nil
}

var errMalformedStat = errors.New("malformed stat in /proc")
