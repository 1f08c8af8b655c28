package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/lease"
)

// racyWindow is how close to its reading a file's time stamp may lie before
// equal stamps stop proving equal content. FAT keeps two seconds.
const racyWindow = 2 * time.Second

// fileVersion distinguishes states of a file without reading it.
type fileVersion struct {
	info os.FileInfo // nil when there is none
	err  string
	at   time.Time // when it was taken
}

func statVersion(file string, now time.Time) (fileVersion, error) {
	info, err := os.Stat(file)
	s := fileVersion{info: info, at: now}
	switch {
	case absent(err):
		s = absentVersion(now)
	case err != nil:
		s.info, s.err = nil, err.Error()
	}
	return s, err
}

// absentVersion is the version of a file that does not exist. Most files do not, and they are checked before every
// call, so it formats no error.
func absentVersion(now time.Time) fileVersion { return fileVersion{err: "absent", at: now} }

// A directory contains sources. If it does not exist, neither do they, and one check is enough for all of them.
type directory struct {
	path   string
	absent bool
	looked uint64 // the reading in which the absence was seen
}

// directory returns the one entry of a directory.
func (s *reloader) directory(path string) *directory {
	d := s.dirs[path]
	if d == nil {
		d = &directory{path: path}
		s.dirs[path] = d
	}
	return d
}

// look checks once in a reading whether the directory is absent.
func (d *directory) look(reading uint64) {
	if d.looked != reading {
		d.absent, d.looked = absent(exists(d.path)), reading
	}
}

// stillAbsent reports whether a directory that was absent is still absent in this reading. For a directory that
// existed it returns false without a check.
func (d *directory) stillAbsent(reading uint64) bool {
	if d.absent {
		d.look(reading)
	}
	return d.absent
}

// proves reports whether a file with version now must have the content that it had with version s.
func (s fileVersion) proves(now fileVersion) bool {
	if s.at.IsZero() || s.err != now.err || (s.info == nil) != (now.info == nil) {
		return false
	}
	if s.info == nil {
		return true
	}
	return os.SameFile(s.info, now.info) && s.info.Size() == now.info.Size() && s.info.Mode() == now.info.Mode() &&
		s.info.ModTime().Equal(now.info.ModTime()) && changedAt(s.info).Equal(changedAt(now.info)) &&
		s.at.Sub(changedAt(s.info)) > racyWindow
}

// changedAt returns the latest time at which a file changed that the system reports: cp -p and tar set
// the modification time to an earlier one.
func changedAt(info os.FileInfo) time.Time {
	if t, ok := realpath.Of(info); ok {
		return t
	}
	return info.ModTime()
}

// absent reports whether err says that there is no such file.
func absent(err error) bool {
	if errno, ok := err.(syscall.Errno); ok { // returned by the check before every call
		return errno == syscall.ENOENT || errno == syscall.ENOTDIR
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// brokenLink returns an error for a dangling link. A link shows that settings were intended, unlike a missing
// file.
func brokenLink(paths ...string) error {
	for _, path := range paths {
		if target, err := os.Readlink(path); err == nil && absent(exists(path)) {
			return fmt.Errorf("%s is a link to %s, which does not exist", path, target)
		}
	}
	return nil
}

// isShortage reports whether err means that this process, or the machine, has too
// many open files: the file itself has no fault.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// readRegular reads a whole file of at most maxFileSize bytes. It never
// blocks: a pipe or a device is an error.
func readRegular(name string) ([]byte, os.FileInfo, error) {
	f, err := lease.Open(name, func() (*os.File, error) { return os.OpenFile(name, os.O_RDONLY|openNonblock, 0) })
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	}
	realpath.DoNotWait(f, info)
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil, fmt.Errorf("%s does not end: it is a file of the kernel that waits for what is still to come, or a "+
			"link to one", name)
	}
	if err == nil && len(text) > maxFileSize {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFileSize)
	}
	return text, info, err
}
