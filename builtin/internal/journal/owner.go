package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	ownersName = "owners"
	lockName   = "lock"
	// slotSize is the size in bytes of an entry that has not ended in the file of its owner. The first slot stays free:
	// Windows lets no process read a byte that is locked.
	slotSize = 16

	ownerDir  fs.FileMode = 0o700
	ownerFile fs.FileMode = 0o600
)

// owners are the Stores that use a directory, usually one in each process. Each has a file there, and holds its lock
// as long as it is open.
type owners struct {
	dir  string // of the history
	name string // of this one
	lock *flock.Flock
	file *os.File // the same file, for writing

	registering sync.Mutex // taken before the lock of the directory, whose waiters in other processes can only poll

	mu     sync.Mutex
	slots  []string        // the IDs of the entries that have not ended, "" where there is none
	torn   map[string]bool // dead owners of entries whose end cannot be told yet
	closed bool
}

// shortID returns 60 random bits in letters and digits that are easily typed.
func shortID() string { return strings.ToLower(rand.Text()[:12]) }

// register makes an owner. Without the lock, another process could treat a new owner, whose lock is not held yet, as
// dead.
func register(dir string) (*owners, error) {
	for _, d := range []string{dir, filepath.Join(dir, ownersName)} {
		if err := privatefile.MakeDir(d); err != nil {
			return nil, err
		}
	}
	o := &owners{dir: dir, name: shortID(), torn: make(map[string]bool)}
	o.lock = privatefile.NewLock(o.path(o.name))
	return o, o.locked(func() (err error) {
		free, err := o.lock.TryLock()
		if err == nil && !free {
			err = fmt.Errorf("%s is locked by another process", o.lock.Path())
		}
		if err == nil {
			o.file, err = os.OpenFile(o.path(o.name), os.O_WRONLY, ownerFile)
		}
		return err
	})
}

func (o *owners) path(name string) string { return filepath.Join(o.dir, ownersName, name) }

// locked runs do while no other goroutine or process registers, leaves, or settles what dead owners left.
func (o *owners) locked(do func() error) error {
	o.registering.Lock()
	defer o.registering.Unlock()
	return privatefile.Locked(filepath.Join(o.dir, lockName), do)
}

// close refuses further entries, and reports whether it was the first call.
func (o *owners) close() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !o.closed
	o.closed = true
	return first
}

// leave removes this owner from the directory. The file of one with open entries stays until they are settled.
func (o *owners) leave() error {
	return o.locked(func() error {
		err := errors.Join(o.file.Close(), o.lock.Unlock()) // first: Windows removes no open file
		if len(o.open(o.name)) == 0 {
			err = errors.Join(err, os.Remove(o.path(o.name)))
		}
		return err
	})
}

// begin records that an entry has begun, before its line is in an index.
func (o *owners) begin(id string, sync bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errClosed
	}
	i := slices.Index(o.slots, "")
	if i < 0 {
		i = len(o.slots)
	}
	if err := o.write(i, id); err != nil {
		return err
	}
	o.slots = append(o.slots[:i], append([]string{id}, o.slots[min(i+1, len(o.slots)):]...)...)
	if !sync {
		return nil
	}
	return o.file.Sync()
}

// end records that an entry has ended, or was not begun.
func (o *owners) end(id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.slots, id)
	if i < 0 {
		return nil
	}
	o.slots[i] = ""
	return o.write(i, "")
}

func (o *owners) write(slot int, id string) error {
	_, err := o.file.WriteAt(fmt.Appendf(nil, "%-*s\n", slotSize-1, id), int64(slot+1)*slotSize)
	return err
}

// open returns the entries that an owner has not ended, none if its file does not exist.
func (o *owners) open(name string) []string {
	if name == o.name {
		o.mu.Lock()
		defer o.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(o.slots), func(id string) bool { return id == "" })
	}
	if !idNames.MatchString(name) {
		return nil
	}
	f, err := os.OpenFile(o.path(name), os.O_RDONLY|privatefile.NoWait|privatefile.NoFollow, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.NewSectionReader(f, slotSize, maxOpen*slotSize))
	return strings.Fields(string(raw))
}

// maxOpen bounds how many entries of another owner are examined: far more than calls run at once.
const maxOpen = 1 << 16

// alive reports whether an owner may still end its entries. It is true if that cannot be determined.
func (o *owners) alive(name string) bool {
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
func (o *owners) setTorn(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.torn[name] = true
}

// settle removes the dead owners after do has settled their open entries. Those that cannot be settled now stay for
// the next time.
func (o *owners) settle(do func() error) error {
	return o.locked(func() error {
		entries, err := os.ReadDir(filepath.Join(o.dir, ownersName))
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !idNames.MatchString(e.Name()) || o.alive(e.Name()) })
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := do(); err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, e := range entries {
			if !o.torn[e.Name()] {
				err = errors.Join(err, os.Remove(o.path(e.Name())))
			}
		}
		return err
	})
}
