package connectgate

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// judge reports 0 if commands may connect to a file: a command listens on it, or the
// policy names it. As long as the descriptor is open no other file gets its number.
func (k *Connector) judge(c *kernel.Call, node int) unix.Errno {
	var st unix.Stat_t
	if err := unix.Fstat(node, &st); err != nil {
		return behalf.Errno(err)
	}
	link := "/proc/self/fd/" + strconv.Itoa(node)
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		if errors.Is(unix.Access(link, unix.W_OK), unix.EACCES) { // this the kernel says first
			return unix.EACCES
		}
		return unix.ECONNREFUSED
	}
	path, err := os.Readlink(link)
	if err != nil {
		return behalf.Errno(err)
	}
	id := place.Inode{Dev: st.Dev, Ino: st.Ino}
	if k.names(path, id, node) {
		return 0
	}
	file := kernel.SocketFileOf(st.Dev, st.Ino)
	found := k.listensInside(file)
	if !found {
		if device, ok := deviceOf(c, node); ok && device != file.Device {
			file.Device = device
			found = k.listensInside(file)
		}
	}
	ofHost, err := k.host.Has(file)
	switch {
	case err != nil:
		return unix.EACCES
	case found && !ofHost: // which has half of the inode number, and on btrfs numbers repeat
		return 0
	case ofHost:
		k.Refuse(path, "it was not made in the sandbox, and is not in sandbox.network.allowUnixSockets")
		return unix.EACCES
	}
	return unix.ECONNREFUSED // as of a file that a program has left, which this may be
}

// listensInside reports whether a command listens on file.
func (k *Connector) listensInside(file kernel.SocketFile) bool {
	if !k.Own { // the tables are the host's
		return false
	}
	k.mu.Lock()
	tables := slices.Collect(maps.Keys(k.inside))
	k.mu.Unlock()
	for _, t := range tables {
		if found, err := t.Has(file); found && err == nil {
			return true
		}
	}
	return false
}

// names reports whether the policy names a socket, which has this path in the sandbox. A
// command can give a file in a writable directory another's name: there the socket has
// to be the one that had the name when the sandbox was started.
func (k *Connector) names(path string, id place.Inode, node int) bool {
	for _, a := range k.allowed {
		if !place.Within(path, a.Path) {
			continue
		}
		if !a.Dir && a.Inode == id {
			return true
		}
		if !a.Dir && !place.OnReadOnly(node) {
			continue
		}
		if t, err := place.Identify(path); err == nil && t.Inode == id { // else the name is another file's on the host
			return true
		}
	}
	return false
}

// deviceOf returns the device of the file system of a file, in the form of
// [kernel.SocketFile]. On btrfs, and sometimes on overlayfs, stat(2) tells another.
func deviceOf(c *kernel.Call, node int) (uint32, bool) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(node))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(info), "mnt_id:")
	id, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.Thread))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != id {
			continue
		}
		major, minor, _ := strings.Cut(fields[2], ":")
		high, err1 := strconv.ParseUint(major, 10, 32)
		low, err2 := strconv.ParseUint(minor, 10, 32)
		return kernel.SocketFileOf(unix.Mkdev(uint32(high), uint32(low)), 0).Device, errors.Join(err1, err2) == nil
	}
	return 0, false
}

// unreadable says why a program that only its owner may read, and that is another user's, gets no connection.
const unreadable = "no connection is made for it, because its memory cannot be read; make the program readable"

// failure is the error of the caller when something of it could not be read.
func (k *Connector) failure(c *kernel.Call, err error) unix.Errno {
	errno := behalf.Errno(err)
	if errno == unix.EPERM { // of the kernel, which connect(2) has no such reason for
		k.Refuse(c.Status()["Name"], unreadable)
		return unix.EACCES
	}
	return errno
}

// Refuse notes a refusal.
func (k *Connector) Refuse(socket, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.refused {
		if k.refused[i].Host == socket {
			k.refused[i].Count++
			return
		}
	}
	if len(k.refused) < maxRefusals {
		k.refused = append(k.refused, proxy.Refusal{Host: socket, Why: why, Count: 1})
	}
}

// Refusals returns the refusals since the last call.
func (k *Connector) Refusals() []proxy.Refusal {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.refused
	k.refused = nil
	return list
}
