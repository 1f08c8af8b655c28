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

// judge returns 0 if commands may connect to a file: a command listens on it, or the policy names it. While the
// descriptor node is open, no other file gets the same inode number.
func (k *Connector) judge(c *kernel.Call, node int) unix.Errno {
	var st unix.Stat_t
	if err := unix.Fstat(node, &st); err != nil {
		return behalf.Errno(err)
	}
	link := "/proc/self/fd/" + strconv.Itoa(node)
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		if errors.Is(unix.Access(link, unix.W_OK), unix.EACCES) { // the kernel checks this first
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
	case found && !ofHost: // the table has only half of the inode number, and on btrfs numbers repeat
		return 0
	case ofHost:
		k.Refuse(path, "it was not made in the sandbox, and is not in sandbox.network.allowUnixSockets")
		return unix.EACCES
	}
	return unix.ECONNREFUSED // the error for a file whose program has ended, as this one's may have
}

// listensInside reports whether a command listens on file.
func (k *Connector) listensInside(file kernel.SocketFile) bool {
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

// names reports whether the policy names a socket, whose path in the sandbox is path. A command can give a file in a
// writable directory the name of another file: such a socket must be the file that had this name when the sandbox was
// started.
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
		if t, err := place.Identify(path); err == nil && t.Inode == id { // else on the host the name belongs to another file
			return true
		}
	}
	return false
}

// deviceOf returns the device of the file system that a file is on, in the form of [kernel.SocketFile]. On btrfs, and
// sometimes on overlayfs, stat(2) returns another number.
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

// unreadable says why no connection is made for a program of another user that only this user may read.
const unreadable = "no connection is made for it, because its memory cannot be read; make the program readable"

// failure returns the error that the caller gets when its memory or files could not be read.
func (k *Connector) failure(c *kernel.Call, err error) unix.Errno {
	errno := behalf.Errno(err)
	if errno == unix.EPERM { // the kernel denied us access; connect(2) itself has no such error
		k.Refuse(c.Status()["Name"], unreadable)
		return unix.EACCES
	}
	return errno
}

// Refuse records a refusal.
func (k *Connector) Refuse(socket, why string) { k.refused.Add(proxy.Refusal{Host: socket, Why: why}) }

// Refusals returns the refusals since the last call.
func (k *Connector) Refusals() []proxy.Refusal { return k.refused.Take() }
