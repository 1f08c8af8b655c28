package namespaces

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// devLinks are the symbolic links programs expect in /dev.
var devLinks = [...][2]string{
	{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"},
}

// sharedMemory is the size of /dev/shm, whose files stay until the sandbox ends:
// browsers need some hundred MiB, and the default is half of the machine's
// memory.
const sharedMemory = "512m"

// mountDev mounts a /dev without disks, memory or kvm, but with harmless devices, terminals and shared memory of
// the sandbox's own.
func mountDev(nodes []attachment) error {
	dev, err := newFileSystem("tmpfs", map[string]string{"mode": "0755", "size": "64k"},
		unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("mounting a new /dev: %w", err)
	}
	defer unix.Close(dev)
	if err := populateDev(dev, nodes); err != nil {
		return err
	}
	if err := moveMountAt(dev, "/dev"); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := attach(n); err != nil {
			return err
		}
	}
	for _, fs := range []struct {
		path, kind string
		options    map[string]string
	}{
		{"/dev/pts", "devpts", map[string]string{"newinstance": "", "mode": "0620", "ptmxmode": "0666"}},
		{"/dev/shm", "tmpfs", map[string]string{"mode": "1777", "size": sharedMemory}},
	} {
		fd, err := newFileSystem(fs.kind, fs.options, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		if err != nil {
			return fmt.Errorf("mounting %s: %w", fs.path, err)
		}
		err = moveMountAt(fd, fs.path)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	// The directory itself is read-only: files in it would fill memory.
	return unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

func populateDev(dev int, nodes []attachment) error {
	for _, dir := range []string{"pts", "shm"} {
		if err := unix.Mkdirat(dev, dir, 0o755); err != nil {
			return fmt.Errorf("creating /dev/%s: %w", dir, err)
		}
	}
	for _, n := range nodes {
		if err := createFile(dev, filepath.Base(n.Path), 0o666); err != nil {
			return fmt.Errorf("creating %s: %w", n.Path, err)
		}
	}
	for _, l := range devLinks {
		if err := unix.Symlinkat(l[1], dev, l[0]); err != nil {
			return fmt.Errorf("creating /dev/%s: %w", l[0], err)
		}
	}
	return nil
}

// copyDevices opens copies of the host's device nodes; process 1 cannot make
// new ones, and nodes on other mounts are dead (nodev).
func copyDevices() ([]attachment, error) {
	var list []attachment
	for _, name := range contract.Devices {
		path := "/dev/" + name
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("copying %s: %w", path, err)
		}
		list = append(list, attachment{place.Object{Path: path}, fd})
	}
	return list, nil
}
