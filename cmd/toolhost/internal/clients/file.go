package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	// maxFile is the largest file that is edited, in bytes. Files of Claude Code, the largest ones, have been seen with
	// tens of megabytes.
	maxFile = 64 << 20
	// lockPatience is how long to wait for another toolhost that edits the same file.
	lockPatience = 10 * time.Second
	// newFileMode is the mode of a new file. Only its owner can read it, because tokens may be added to it.
	newFileMode, newDirMode = 0o600, 0o700
	// newProjectMode is the mode of a new file in a project, for everyone who works on it.
	newProjectMode, newProjectDirMode = 0o644, 0o755
)

// ErrChanged is returned when another program changed a file during its edit.
var ErrChanged = errors.New("the file was changed by another program in the meantime; nothing was written: try " +
	"again, if need be with the client closed")

// A target is a file to edit, and its content when it was read.
type target struct {
	// path is the file that all symbolic links lead to.
	path string
	// exists says whether there is a file. raw is its content and info describes it.
	exists bool
	raw    []byte
	info   fs.FileInfo
}

// readTarget reads a file. It is not an error if there is none.
func readTarget(path string) (target, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return target{path: behindLinks(path)}, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return target{}, fmt.Errorf("%s is a symbolic link to a file that does not exist", path)
	}
	if err != nil {
		return target{}, fmt.Errorf("%s: %w", path, err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return target{}, err
	case !info.Mode().IsRegular():
		return target{}, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxFile:
		return target{}, fmt.Errorf("%s has %d bytes, more than the %d that are edited", path, info.Size(), maxFile)
	}
	raw, err := os.ReadFile(real)
	if err != nil {
		return target{}, err
	}
	return target{path: real, exists: true, raw: raw, info: info}, nil
}

// behindLinks returns the name that a file will have once it exists: with the symbolic links of its directory
// resolved, as far as the directory exists. Backups are stored under this name.
func behindLinks(path string) string {
	dir := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(real, filepath.Base(path))
	}
	if dir == path {
		return path
	}
	return filepath.Join(behindLinks(dir), filepath.Base(path))
}

// writable returns an error if the file must not be replaced.
func (t target) writable() error {
	if !t.exists {
		return nil
	}
	if t.info.Mode().Perm()&0o200 == 0 {
		return fmt.Errorf("%s is read-only: make it writable first", t.path)
	}
	if n := links(t.info); n > 1 {
		return fmt.Errorf("%s has %d hard links, which replacing it would part: make it a file of its own first",
			t.path, n)
	}
	return nil
}

// replace replaces the file by content atomically. Mode and owner stay. It returns an error, and writes nothing, if
// the file has changed since it was read.
func (t target) replace(content []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(t.path)
	pattern := "." + filepath.Base(t.path) + ".*.tmp"
	removeStale(dir, pattern)
	temp, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", t.path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(temp.Close()), os.Remove(temp.Name()))
		}
	}()
	if t.exists {
		mode = t.info.Mode().Perm()
		if err := keepOwner(temp, t.info); err != nil {
			return fmt.Errorf("%s belongs to another user: %w", t.path, err)
		}
	} else if info, err := os.Stat(dir); err == nil && os.Geteuid() == 0 {
		_ = keepOwner(temp, info) // under sudo the file belongs to the owner of the directory
	}
	if err := writeAll(temp, content, mode); err != nil {
		return err
	}
	if err := t.unchanged(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), t.path); err != nil {
		return fmt.Errorf("%w (if the client holds the file open, close it and try again)", err)
	}
	return privatefile.SyncDir(dir)
}

// staleAfter is the age from which a temporary file must be left from a killed process: it is renamed immediately
// after it was written.
const staleAfter = time.Minute

// removeStale removes the temporary files of killed processes.
func removeStale(dir, pattern string) {
	entries, _ := os.ReadDir(dir) // what cannot be listed stays
	for _, e := range entries {
		info, err := e.Info()
		before, after, _ := strings.Cut(pattern, "*")
		if strings.HasPrefix(e.Name(), before) && strings.HasSuffix(e.Name(), after) && err == nil &&
			info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func writeAll(f *os.File, content []byte, mode fs.FileMode) error {
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil && runtime.GOOS != "windows" {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

// unchanged returns an error if the file is no longer what was read.
func (t target) unchanged() error {
	now, err := os.ReadFile(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !t.exists:
		return nil
	case errors.Is(err, fs.ErrNotExist) || err == nil && (!t.exists || !bytes.Equal(now, t.raw)):
		return ErrChanged
	}
	return err
}

// remove removes the file.
func (t target) remove() error {
	if err := t.unchanged(); err != nil {
		return err
	}
	if err := os.Remove(t.path); err != nil {
		return err
	}
	return privatefile.SyncDir(filepath.Dir(t.path))
}

// locked calls do while no other toolhost edits the file. The lock is a file next to it, which is removed afterwards.
// Something else in its place, perhaps from a repository, is refused: through a link a file would be created
// elsewhere, and opening a pipe would block.
func locked(ctx context.Context, path string, do func() error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".toolhost-lock")
	for {
		if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s, the lock for edits of %s, is not a file: remove it", name, path)
		}
		lock := privatefile.NewLock(name)
		switch ok, err := lock.TryLockContext(ctx, 20*time.Millisecond); {
		case !ok && ctx.Err() != nil:
			return fmt.Errorf("another toolhost seems to edit %s (%s is locked): %w", path, name, err)
		case !ok:
			return fmt.Errorf("no lock for the edit of %s can be made: %w", path, err)
		}
		if held, err := lock.Stat(); err == nil {
			if now, err := os.Stat(name); err == nil && os.SameFile(held, now) {
				defer func() { err = errors.Join(err, unlock(lock, name)) }()
				return do()
			}
		}
		// The last holder has removed the file while we waited for the lock.
		if err := lock.Unlock(); err != nil {
			return err
		}
	}
}

// unlock removes the lock file before it releases the lock: after that, another process may hold a lock on a new
// file. Windows cannot remove an open file; there a lock file that another process has opened stays.
func unlock(lock *flock.Flock, name string) error {
	if runtime.GOOS == "windows" {
		err := lock.Unlock()
		_ = os.Remove(name)
		return err
	}
	return errors.Join(os.Remove(name), lock.Unlock())
}
