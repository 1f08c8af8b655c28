package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

const openFlags = 0

// openInTheWay says whether a file must be closed before it is renamed over. Windows can rename over an open file by
// now, but not on FAT, exFAT and many network drives.
const openInTheWay = true

// attrs are the attributes that are carried over: the read-only flag, and the number of hard links, from which a
// rename would separate the file.
type attrs struct {
	mode  fs.FileMode
	links uint64
}

func readAttrs(f *os.File) (attrs, error) {
	info, err := f.Stat()
	if err != nil {
		return attrs{}, err
	}
	var data windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &data); err != nil {
		return attrs{}, err
	}
	return attrs{mode: info.Mode(), links: uint64(data.NumberOfLinks)}, nil
}

func (a attrs) apply(f *os.File) error {
	if err := f.Chmod(a.mode); err != nil {
		return &keepError{"mode (" + a.mode.String() + ")", unwrapPath(err)}
	}
	return nil
}

// identity returns zeros: files are distinguished by their content.
func identity(fs.FileInfo) (dev, ino uint64) { return 0, 0 }

// ownedByOther returns false: the access control list of the journal's directory, which is in the profile of the
// user, keeps others out.
func ownedByOther(fs.FileInfo) bool { return false }

func checkWritable(dir *os.File, base string) error {
	info, err := os.Lstat(filepath.Join(dir.Name(), base))
	if err == nil && info.Mode().Perm()&0o200 == 0 {
		return fs.ErrPermission
	}
	return err
}

// syncDir does nothing: directories cannot be synced.
func syncDir(*os.File) error { return nil }

// A file that another process has open, often a virus scanner that just saw it
// change, cannot be renamed over for a moment.
const (
	renameTries = 20
	renamePause = 10 * time.Millisecond
)

func renameIn(dir *os.Root, from, to string) error {
	for try := 1; ; try++ {
		err := dir.Rename(from, to)
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || try == renameTries {
			return err
		}
		time.Sleep(renamePause)
	}
}
