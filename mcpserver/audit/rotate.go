package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// How long to wait for another host's lock.
const (
	// lockPatience passes only when another host is stopped in the middle of a rotation, which takes less than a millisecond.
	lockPatience = 2 * time.Second
	// rotatePatience is short: when the others write all the time, the next call rotates.
	rotatePatience = 100 * time.Millisecond
	lockRetry      = 500 * time.Microsecond
)

// errBusy says that a lock could not be had in time.
var errBusy = errors.New("another process holds the log locked; is a host stopped there?")

type lockMode uint8

const (
	shared lockMode = iota
	alone
)

// lock takes the lock of a file, in place of the one that this Log holds on it.
func lock(f *os.File, mode lockMode, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(lockRetry) {
		switch got, err := tryLock(f, mode); {
		case err != nil:
			return fmt.Errorf("it cannot be locked: %w", err)
		case got:
			return nil
		case time.Now().After(end):
			return errBusy
		}
	}
}

// A move is one step of a rotation: a file gets another name, or is removed when the name is empty.
type move struct{ from, to string }

// moves are the steps that free the name of the log, in an order in which any of them may be the last one done:
// nothing but the oldest file is ever removed, and a gap that is left is used up by the next rotation.
func moves(path string, keep int, taken func(string) bool) []move {
	name := func(n int) string {
		if n == 0 {
			return path
		}
		return path + "." + strconv.Itoa(n)
	}
	var all []move
	for n := keep + 1; taken(name(n)); n++ { // more were kept before
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

// rotate gives the log's file another name, so that the next one who opens the log makes a new file. It reports
// whether the log must be opened anew: it was rotated, by this host or by another. Else the shared lock is held
// as before.
func (l *Log) rotate(room int64) (rotated bool, err error) {
	if err := lock(l.file, alone, rotatePatience); err != nil {
		return false, errors.Join(ignoreBusy(err), lock(l.file, shared, lockPatience))
	}
	if l.moved() { // another host was faster
		return true, l.close()
	}
	if !l.full(room) {
		return false, lock(l.file, shared, lockPatience)
	}
	if !movesOpenFiles {
		l.close()
	}
	for _, m := range moves(l.cfg.Path, l.cfg.Keep, exists) {
		if err = m.do(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("audit log %s cannot be rotated and grows on: %w", l.cfg.Path, err)
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
	return false, errors.Join(err, lock(l.file, shared, lockPatience))
}

// ignoreBusy drops the error that the next call will do away with.
func ignoreBusy(err error) error {
	if errors.Is(err, errBusy) {
		return nil
	}
	return err
}

// renameChecked renames a file unless the new name was taken a moment before.
func renameChecked(from, to string) error {
	if exists(to) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
