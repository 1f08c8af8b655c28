package guard

import (
	"bytes"
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// walker walks directories by their descriptors: a stat of each name by its whole path takes two to
// three times as long, and a search may wait for it.
type walker struct {
	names *linkNames
	found func(name string, id realpath.ID)
	buf   [32 << 10]byte
}

// walk calls found for every name of each file that has several.
func (n *linkNames) walk(dir string, found func(name string, id realpath.ID)) {
	w := &walker{names: n, found: found}
	// A directory that cannot be listed cannot be opened through this process either.
	if w.names.left--; w.names.left >= 0 && w.look(unix.AT_FDCWD, dir, "") {
		w.list(unix.AT_FDCWD, dir, pathname.Slashed(dir))
	}
}

// look records the file with this name in the directory at, whose path is prefix, and reports
// whether it is a directory.
func (w *walker) look(at int, name, prefix string) (dir bool) {
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFREG && st.Nlink > 1 {
		w.found(prefix+pathname.Slashed(name), realpath.ID{Device: st.Dev, Inode: st.Ino})
	}
	return kind == unix.S_IFDIR
}

// list walks a directory and everything below it.
func (w *walker) list(at int, name, path string) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	prefix := strings.TrimSuffix(path, "/") + "/"
	var dirs []string
	for w.names.left >= 0 {
		n, err := unix.Getdents(fd, w.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		dirs = w.entries(fd, w.buf[:n], prefix, dirs)
	}
	for _, d := range dirs {
		if w.names.left < 0 {
			return
		}
		w.list(fd, d, prefix+d)
	}
}

// entries parses records of a directory, struct linux_dirent64: inode and offset (8 bytes each),
// record length (2), type (1), name, NUL. It appends the directories among them to dirs.
func (w *walker) entries(fd int, b []byte, prefix string, dirs []string) []string {
	const lenAt, typeAt, nameAt = 16, 18, 19
	for len(b) > nameAt && w.names.left >= 0 {
		size := int(binary.NativeEndian.Uint16(b[lenAt:]))
		raw, _, _ := bytes.Cut(b[nameAt:size], []byte{0})
		kind := b[typeAt]
		b = b[size:]
		name := string(raw)
		if name == "." || name == ".." {
			continue
		}
		if w.names.left--; w.names.left < 0 {
			break
		}
		switch kind {
		case unix.DT_DIR:
			dirs = append(dirs, name)
		case unix.DT_REG, unix.DT_UNKNOWN: // some file systems do not report the type
			if w.look(fd, name, prefix) {
				dirs = append(dirs, name)
			}
		}
	}
	return dirs
}
