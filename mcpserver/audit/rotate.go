package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// rotatePatience is how long to wait for another host that rotates. A rotation takes less than a millisecond. If the
// other host is suspended meanwhile, the file keeps growing. Tests wait longer, because a host may be delayed that long
// on a loaded machine.
var rotatePatience = 100 * time.Millisecond

// lockRetry is the interval between attempts to take the lock.
const lockRetry = 500 * time.Microsecond

// lock takes the lock of a file, and reports whether it got it in time.
func lock(f *os.File) (got bool, err error) {
	for end := time.Now().Add(rotatePatience); ; time.Sleep(lockRetry) {
		switch got, err := tryLock(f); {
		case err != nil:
			return false, fmt.Errorf("it cannot be locked: %w", err)
		case got:
			return true, nil
		case time.Now().After(end):
			return false, nil
		}
	}
}

// A move is one step of a rotation: a file is renamed, or removed if to is empty.
type move struct{ from, to string }

// moves returns the steps that free the name of the log. Any of them may be the last one done: only the oldest file is
// ever removed, and the next rotation closes a gap that is left.
func moves(path string, keep int, taken func(string) bool) []move {
	name := func(n int) string {
		if n == 0 {
			return path
		}
		return path + "." + strconv.Itoa(n)
	}
	var all []move
	for n := keep + 1; taken(name(n)); n++ { // more files were kept before
		all = append(all, move{from: name(n)})
	}
	free := 1
	for free <= keep && taken(name(free)) {
		free++
	}
	if free > keep {
		all = append(all, move{from: name(keep)})
		free = keep
	}
	for n := free; n > 0; n-- {
		all = append(all, move{name(n - 1), name(n)})
	}
	return all
}

func (m move) do() error {
	if m.to == "" {
		return os.Remove(m.from)
	}
	return renameNew(m.from, m.to)
}

// rotate renames the log file, so that the next host to open the log creates a new file. It reports whether the log
// must be reopened because this host or another has rotated it.
func (l *Log) rotate(room int64) (rotated bool, err error) {
	locked := l.file
	if got, err := lock(locked); !got {
		return false, err
	}
	if l.moved() { // another host has already rotated
		return true, l.close()
	}
	if !l.full(room) {
		unlock(locked)
		return false, nil
	}
	if !movesOpenFiles {
		l.close()
	}
	for _, m := range moves(l.cfg.Path, l.cfg.Keep, exists) {
		if err = m.do(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("audit log %s cannot be rotated and keeps growing: %w", l.cfg.Path, err)
			break
		}
		err = nil
	}
	switch {
	case err == nil:
		return true, l.close()
	case l.file == nil:
		return false, errors.Join(err, l.open())
	}
	unlock(locked)
	return false, err
}

// renameChecked renames a file unless the new name is taken. The check and the rename are not atomic.
func renameChecked(from, to string) error {
	if exists(to) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
