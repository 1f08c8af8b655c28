package baseline

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// statOf returns the stamp of what is at path itself, without following a link.
func statOf(path string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return stamp{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular
	}
	return stamp{
		Dev: st.Dev, Ino: st.Ino, Mode: mode, Size: st.Size, User: st.Uid, Group: st.Gid,
		Changed: st.Ctim.Nano(), Modified: st.Mtim.Nano(),
	}, nil
}
