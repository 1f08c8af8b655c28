package settle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// leases reports why openForWriting does not work for files in a directory, or nil.
func leases(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		defer unix.Close(fd)
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); errors.Is(err, unix.EAGAIN) {
			return nil // this descriptor is open for writing
		}
	}
	switch { // file systems that have no such files, like those of networks, grant no leases either
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("the file system of %s does not tell which files are open: %w", dir, err)
	}
	return nil
}

// openForWriting reports whether somebody may have a file open for writing, or mapped: the kernel grants no read lease
// of it then. It counts descriptors that are on their way through a socket too.
func openForWriting(dir *os.Root, name string) bool {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|privatefile.NoFollow|privatefile.NoWait, 0)
	if errors.Is(err, unix.EACCES) {
		return false // the file belongs to another user, or not even its owner may read it
	}
	if err != nil {
		return true
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		// The kernel grants no lease of another user's file. No server can have a file open for writing that this
		// process may not write.
		own := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
		return !errors.Is(err, unix.EACCES) || unix.Access(own, unix.W_OK) == nil
	}
	_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return false
}

// heldOpenOutside reports whether a process that no host has started has a file open for writing: a program of a
// person, whose changes must not get lost.
func heldOpenOutside(file fs.FileInfo) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range all {
		process := strings.Split(path, "/")[2]
		text, err := os.ReadFile("/proc/" + process + "/fdinfo/" + filepath.Base(path))
		if err != nil || !mayWrite(string(text), file) {
			continue
		}
		if info, err := os.Stat(path); err == nil && os.SameFile(file, info) && !ofHost(process) {
			return true
		}
	}
	return false
}

// mayWrite reports whether fdinfo, the text of proc(5) about a descriptor, is of one that is open for writing and may be
// of this file. The caller asks the file system of the descriptor only then: the server of another one may not answer.
func mayWrite(fdinfo string, file fs.FileInfo) bool {
	var mode int64
	for line := range strings.Lines(fdinfo) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "flags":
			mode, _ = strconv.ParseInt(value, 8, 32)
		case "ino": // since Linux 5.14
			if st, ok := file.Sys().(*syscall.Stat_t); ok && value != strconv.FormatUint(st.Ino, 10) {
				return false
			}
		}
	}
	return mode&unix.O_ACCMODE != unix.O_RDONLY
}

// ofHost reports whether a host has started a process, or may have: this host, or another one, which runs the same
// program.
func ofHost(process string) bool {
	host := programOf("self")
	for {
		if program := programOf(process); program != "" && program == host {
			return true
		}
		text, err := os.ReadFile("/proc/" + process + "/stat")
		if err != nil {
			return true
		}
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return true
		}
		if process = fields[1]; process == "0" {
			return false
		}
	}
}

// programOf returns the name of the program that a process runs; "" if it cannot be read.
func programOf(process string) string {
	path, err := os.Readlink("/proc/" + process + "/exe")
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSuffix(path, " (deleted)")) // a newer version may have replaced the program
}
