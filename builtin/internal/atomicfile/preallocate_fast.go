package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// A spare is a file without a name. It is created after a change, for the next change in the same directory, which
// gives it a name. Creating a file can take ten times as long as naming one: ext4 without a journal examines each
// file that was removed in the last minute, and every change removes one. No other process sees a spare, and the
// kernel removes it when it is closed.

const (
	// maxSpares bounds the number of directories with a spare, and spareAge the age of a spare: while it is open, its
	// file system cannot be unmounted.
	maxSpares = 4
	spareAge  = 10 * time.Second
	// spareDelay is the time between a change and the creation of the next spare: a goroutine during the change would
	// wake a thread.
	spareDelay = 3 * time.Millisecond
)

// wantsSpare reports whether a spare should be made for a directory.
func (t *Temps) wantsSpare(key string) bool {
	if t == nil || key == "" || !canSpare {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed && t.spares[key] == nil && len(t.spares) < maxSpares
}

// addSpare creates a spare in a directory, if that is possible.
func (t *Temps) addSpare(handle *os.File, key string) {
	if !t.wantsSpare(key) {
		return // another call was faster
	}
	f, err := openNameless(handle)
	if err != nil {
		return // the file system does not support it, or is full
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.spares[key] != nil {
		f.Close()
		return
	}
	if t.spares == nil {
		t.spares = map[string]*os.File{}
		t.stale = time.AfterFunc(spareAge, t.dropSpares)
	}
	t.spares[key] = f
	t.stale.Reset(spareAge)
}

// takeSpare gives the spare of a directory a name in it. It returns nil if there is none, or it cannot be used. An
// error says that the name is taken.
func (t *Temps) takeSpare(key string, handle *os.File, name string) (*os.File, error) {
	if t == nil || key == "" {
		return nil, nil
	}
	t.mu.Lock()
	f := t.spares[key]
	delete(t.spares, key)
	t.mu.Unlock()
	if f == nil {
		return nil, nil
	}
	if info, err := f.Stat(); err != nil || info.Size() > 0 || linksOf(info) > 0 {
		f.Close()
		return nil, nil // another process got hold of it
	}
	if err := giveName(f, handle, name); err != nil {
		f.Close()
		if errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return nil, nil
	}
	return f, nil
}

// dropSpares closes all spares.
func (t *Temps) dropSpares() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, f := range t.spares {
		f.Close()
		delete(t.spares, key)
	}
}

// A sparing is a directory in which a spare will be made.
type sparing struct {
	handle *os.File
	key    string
}

// spareLater makes a spare in a moment, and closes the handle of the directory.
func (t *Temps) spareLater(handle *os.File, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sparing) >= maxSpares {
		handle.Close()
		return
	}
	if t.sparing = append(t.sparing, sparing{handle, key}); len(t.sparing) == 1 {
		time.AfterFunc(spareDelay, t.makeSpares)
	}
}

// makeSpares creates the spares that are due.
func (t *Temps) makeSpares() {
	t.mu.Lock()
	all := t.sparing
	t.sparing = nil
	t.mu.Unlock()
	for _, s := range all {
		t.addSpare(s.handle, s.key)
		s.handle.Close()
	}
}
