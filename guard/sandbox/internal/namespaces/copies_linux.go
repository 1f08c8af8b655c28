package namespaces

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// maxCopies bounds the content of all the files of a plan, in bytes.
const maxCopies = 16 << 20

// fileCopies opens copies of files that take the place of others.
func fileCopies(files []contract.Copy) ([]attachment, error) {
	if len(files) == 0 {
		return nil, nil
	}
	dir, err := newFileSystem("tmpfs", map[string]string{"mode": "0755", "size": strconv.Itoa(maxCopies)},
		attrOpen|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making copies of files: %w", err)
	}
	defer unix.Close(dir)
	var list []attachment
	for i, f := range files {
		name := strconv.Itoa(i)
		if err := writeIn(dir, name, f); err != nil {
			return nil, fmt.Errorf("making %s: %w", f.Path, err)
		}
		fd, err := unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err == nil {
			err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attrShut})
		}
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", f.Path, err)
		}
		list = append(list, attachment{place.Object{Path: f.Path}, fd})
	}
	return list, nil
}

// writeIn makes a file.
func writeIn(dir int, name string, c contract.Copy) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.WriteString(c.Content)
	return errors.Join(err, f.Chmod(os.FileMode(c.Mode)), f.Close())
}
