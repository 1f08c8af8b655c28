package journal

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
)

const (
	ownersName = "owners"
	openName   = "running" // the files of entries that have not ended

	ownerDir  fs.FileMode = 0o700
	ownerFile fs.FileMode = 0o600
)

// An owner is a Journal that uses a directory, usually one in each process. It has a mark there, and each entry that it
// has begun and not ended has a file OWNER.ID.
type owner struct {
	dir  string // of the journal
	name string // of this one
	mark *statedir.Mark

	mu     sync.Mutex
	closed bool
	torn   map[string]bool // entries of dead owners whose end cannot be told yet
}

// shortID returns 60 random bits in letters and digits that are easily typed.
func shortID() string { return strings.ToLower(rand.Text()[:12]) }

// register makes an owner.
func register(dir string) (o *owner, err error) {
	for _, name := range []string{"", ownersName, openName} {
		if err := privatefile.MakeDir(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	o = &owner{dir: dir, name: shortID(), torn: make(map[string]bool)}
	o.mark, err = statedir.Own(o.path(o.name))
	return o, err
}

func (o *owner) path(name string) string { return filepath.Join(o.dir, ownersName, name) }

// openFile is the file of an open entry of this owner.
func (o *owner) openFile(id string) string { return filepath.Join(o.dir, openName, o.name+"."+id) }

// close refuses further entries, and reports whether it was the first call.
func (o *owner) close() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !o.closed
	o.closed = true
	return first
}

// leave gives up the mark. The files of open entries stay until those are settled.
func (o *owner) leave() error { return o.mark.Release(func() error { return nil }) }

// begin records that an entry has begun, before its line is in an index. Of a command about says what runs.
func (o *owner) begin(id string, about []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errClosed
	}
	file := o.openFile(id)
	err := os.WriteFile(file, about, ownerFile)
	if errors.Is(err, fs.ErrNotExist) { // the directory was removed
		err = errors.Join(os.MkdirAll(filepath.Dir(file), ownerDir), os.WriteFile(file, about, ownerFile))
	}
	if err != nil {
		_ = os.Remove(file)
	}
	return err
}

// end records that an entry has ended, or was not begun.
func (o *owner) end(id string) error {
	err := os.Remove(o.openFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// open returns the IDs of the entries that have begun and not ended, in this process and others, with their owners.
func (o *owner) open() map[string]string {
	ids := map[string]string{}
	files, _ := os.ReadDir(filepath.Join(o.dir, openName))
	for _, f := range files {
		if name, id, ok := strings.Cut(f.Name(), "."); ok && idNames.MatchString(name) && idNames.MatchString(id) {
			ids[id] = name
		}
	}
	return ids
}

// alive reports whether an owner may still end its entries. It is true if that cannot be determined.
func (o *owner) alive(name string) bool {
	if name == o.name {
		return true
	}
	lock := flock.New(o.path(name), flock.SetFlag(os.O_RDWR)) // not to be created
	free, err := lock.TryLock()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	if free {
		_ = lock.Unlock() // closes the file, which is all that matters
	}
	return !free
}

// setTorn records that an entry of a dead owner is left for the next start.
func (o *owner) setTorn(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.torn[id] = true
}

// settle removes the marks of dead owners and the files of their open entries, after do has settled those. Entries of
// commands, whose files say what ran, are settled elsewhere. What cannot be settled now stays for the next time.
func (o *owner) settle(do func() error) error {
	left := map[string]string{} // the files of dead owners, each with its entry
	files, _ := filepath.Glob(filepath.Join(o.dir, openName, "*.*"))
	for _, file := range files {
		name, id, _ := strings.Cut(filepath.Base(file), ".")
		if info, err := os.Lstat(file); err == nil && info.Size() == 0 && idNames.MatchString(name) && !o.alive(name) {
			left[file] = id
		}
	}
	marks, _ := os.ReadDir(filepath.Join(o.dir, ownersName))
	for _, m := range marks {
		if idNames.MatchString(m.Name()) && !o.alive(m.Name()) {
			left[o.path(m.Name())] = ""
		}
	}
	if len(left) == 0 {
		return nil
	}
	err := do()
	o.mu.Lock()
	defer o.mu.Unlock()
	for file, id := range left {
		if err == nil && !o.torn[id] {
			_ = os.Remove(file) // else the next start does
		}
	}
	return err
}
