package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	markSuffix   = ".lock" // of the name of a mark
	recordSuffix = ".json" // of the name of the record of an entry
)

// ErrOwned reports that another process owns an entry.
var ErrOwned = errors.New("another process holds its lock")

// A Mark says that this process owns an entry. It is the lock of a file, which ends with the process.
type Mark struct{ lock *flock.Flock }

const (
	// sweepTime bounds how long a sweeper holds the mark of an owner that has just made the file and not locked it yet.
	sweepTime = time.Second
	// sweepsTime bounds how long one sweeper after the other removes it, where many programs start on a busy machine.
	sweepsTime = 30 * time.Second
)

// Own takes the mark at path, in an existing directory. The error matches [ErrOwned] if another process has the mark.
// Any other error means that the owner is not known, as on a file system without locks.
func Own(path string) (*Mark, error) {
	begun := time.Now()
	for {
		m, err := TryOwn(path)
		most := sweepTime
		switch {
		case errors.Is(err, errRemoved):
			most = sweepsTime
		case !errors.Is(err, ErrOwned):
			return m, err
		}
		if time.Since(begun) > most {
			return nil, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

var errRemoved = errors.New("its lock is removed each time that it is made")

// TryOwn is [Own] without waiting. If a sweeper has removed the file, the lock is useless: no other process sees it.
func TryOwn(path string) (*Mark, error) {
	lock := privatefile.NewLock(path)
	free, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", path, err)
	case !free:
		return nil, fmt.Errorf("lock %s: %w", path, ErrOwned)
	}
	locked, err := lock.Stat()
	named, lookErr := os.Lstat(path)
	if err == nil && lookErr == nil && os.SameFile(locked, named) {
		return &Mark{lock}, nil
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, errRemoved), lock.Unlock())
}

// Close releases the mark and leaves its file to the next sweeper.
func (m *Mark) Close() error { return m.lock.Unlock() }

// Release runs forget, which removes what belongs to the entry, and then removes the mark. If forget fails, the mark
// stays, and the next sweeper tries again.
func (m *Mark) Release(forget func() error) error {
	if err := forget(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, m.Close())
	}
	if runtime.GOOS == "windows" { // Windows removes no open file
		err := m.lock.Unlock()
		_ = os.Remove(m.lock.Path()) // fails if another process has opened it
		return err
	}
	err := os.Remove(m.lock.Path())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, m.lock.Unlock())
}

// Running reports whether a running process has the mark at path. Otherwise it releases the mark as [Mark.Release]
// does. After an error the answer is not known, and the mark stays.
func Running(path string, forget func() error) (bool, error) {
	m, err := TryOwn(path)
	switch {
	case errors.Is(err, ErrOwned):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, m.Release(forget)
}

// Owned returns the names of the entries of a directory that running processes own, and releases all others: forget
// removes what belongs to an entry. An entry NAME has a mark NAME.lock or a record NAME.json. The error names the
// entries whose owner is not known.
func Owned(dir string, forget func(name string) error) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, marked := strings.CutSuffix(e.Name(), markSuffix)
		if !marked {
			name, marked = strings.CutSuffix(e.Name(), recordSuffix)
		}
		if !marked || slices.Contains(names, name) {
			continue
		}
		running, lookErr := Running(filepath.Join(dir, name+markSuffix), func() error { return forget(name) })
		if running {
			names = append(names, name)
		}
		err = errors.Join(err, lookErr)
	}
	return names, err
}
