package settle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
// person, whose changes must not get lost. The file is the one at a name of dir.
func heldOpenOutside(dir *os.Root, name string, file fs.FileInfo) bool {
	inode := ""
	if f, err := dir.OpenFile(name, unix.O_PATH|privatefile.NoFollow, 0); err == nil {
		defer f.Close()
		text, _ := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
		inode = field(string(text), "ino") // stat tells another number in some overlays
	}
	all, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range all {
		process := strings.Split(path, "/")[2]
		text, err := os.ReadFile("/proc/" + process + "/fdinfo/" + filepath.Base(path))
		if err != nil || !mayWrite(string(text), inode) {
			continue
		}
		if info, err := os.Stat(path); err == nil && os.SameFile(file, info) && !ofHost(process) {
			return true
		}
	}
	return false
}

// mayWrite reports whether a descriptor is open for writing and may be of the file with an inode number; "" is any. It
// reads what proc(5) tells about the descriptor: the file system of another file may never answer.
func mayWrite(fdinfo, inode string) bool {
	mode, err := strconv.ParseInt(field(fdinfo, "flags"), 8, 32)
	shown := field(fdinfo, "ino") // since Linux 5.14
	return err == nil && mode&unix.O_ACCMODE != unix.O_RDONLY && (inode == "" || shown == "" || shown == inode)
}

// field returns a value of a text of lines "NAME: VALUE", or "".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ofHost reports whether a host has started a process, or may have: this host, or another one, which runs the same
// program.
func ofHost(process string) bool {
	host := programOf("self")
	for {
		if program := programOf(process); program != "" && program == host {
			return true
		}
		text, _ := os.ReadFile("/proc/" + process + "/status")
		switch process = field(string(text), "PPid"); process {
		case "": // it has ended
			return true
		case "0":
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
