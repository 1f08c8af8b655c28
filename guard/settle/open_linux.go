package settle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// openForWriting reports whether somebody may have a file open for writing, or mapped: the kernel grants no read lease
// of it then. It counts descriptors that are on their way through a socket too.
func openForWriting(dir *os.Root, name string) bool {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|privatefile.NoFollow|privatefile.NoWait, 0)
	if errors.Is(err, unix.EACCES) {
		return false // of another user, or closed to its owner as well
	}
	if err != nil {
		return true
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return true
	}
	_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return false
}

// heldOpenOutside reports whether a process that this host has not started has a file open for writing: a program of
// a person, whose changes must not get lost.
func heldOpenOutside(file fs.FileInfo) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range all {
		info, err := os.Stat(path)
		if err != nil || !os.SameFile(file, info) {
			continue
		}
		process := strings.Split(path, "/")[2]
		text, err := os.ReadFile("/proc/" + process + "/fdinfo/" + filepath.Base(path))
		_, flags, _ := strings.Cut(string(text), "flags:")
		mode, _ := strconv.ParseInt(strings.TrimSpace(strings.SplitN(flags, "\n", 2)[0]), 8, 32)
		if err == nil && mode&unix.O_ACCMODE != unix.O_RDONLY && !isDescendant(process) {
			return true
		}
	}
	return false
}

// isDescendant reports whether this process has started another one, or may have.
func isDescendant(process string) bool {
	for process != strconv.Itoa(os.Getpid()) {
		text, err := os.ReadFile("/proc/" + process + "/stat")
		if err != nil {
			return true
		}
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return true
		}
		if process = fields[1]; process == "0" || process == "1" {
			return false
		}
	}
	return true
}
