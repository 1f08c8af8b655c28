package history

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	ownersName = "owners"
	lockName   = "lock"

	ownerDir  fs.FileMode = 0o700
	ownerFile fs.FileMode = 0o600
)

// An owner is a process, or rather one Store of it, that may leave changes open. It lives as long as its lock is held.
type owner struct {
	name string
	lock *flock.Flock
}

// shortID returns 60 random bits in letters and digits that are easily typed.
func shortID() string { return strings.ToLower(rand.Text()[:12]) }

// locked runs do while no one else holds the lock at path, be it another process or, by mu, another goroutine.
func locked(mu *sync.Mutex, path string, do func() error) error {
	mu.Lock()
	defer mu.Unlock()
	return privatefile.Locked(path, do)
}

func (s *Store) locked(do func() error) error {
	return locked(&s.registering, filepath.Join(s.cfg.Dir, lockName), do)
}

func (s *Store) ownerPath(name string) string { return filepath.Join(s.cfg.Dir, ownersName, name) }

// register makes this Store an owner. Without the lock, another process could take a fresh owner, whose lock is not held yet, for dead.
func (s *Store) register() (*owner, error) {
	o := &owner{name: shortID()}
	o.lock = privatefile.NewLock(s.ownerPath(o.name))
	return o, s.locked(func() error {
		free, err := o.lock.TryLock()
		if err == nil && !free {
			err = fmt.Errorf("%s is locked by somebody else", o.lock.Path())
		}
		return err
	})
}

// leave takes this Store from the owners. One that has left changes open stays, dead, until they are settled.
func (s *Store) leave(settled bool) error {
	return s.locked(func() error {
		err := s.owner.lock.Unlock() // first: Windows removes no open file
		if settled {
			err = errors.Join(err, os.Remove(s.ownerPath(s.owner.name)))
		}
		return err
	})
}

// alive reports whether an owner may still end its changes. One that cannot be asked counts as alive.
func (s *Store) alive(name string) bool {
	if name == s.owner.name {
		return true
	}
	lock := flock.New(s.ownerPath(name), flock.SetFlag(os.O_RDWR)) // not to be created
	free, err := lock.TryLock()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	if free {
		_ = lock.Unlock() // closes the file, which is all that matters
	}
	return !free
}

// recover settles what dead owners left open. What cannot be settled now stays for the next time.
func (s *Store) recover() {
	err := s.locked(func() error {
		entries, err := os.ReadDir(filepath.Join(s.cfg.Dir, ownersName))
		if err != nil {
			return err
		}
		var dead []string
		for _, e := range entries {
			if idNames.MatchString(e.Name()) && !s.alive(e.Name()) {
				dead = append(dead, e.Name())
			}
		}
		if len(dead) == 0 {
			return nil
		}
		if err := s.tidyAll(); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range dead {
			if !s.unended[name] {
				err = errors.Join(err, os.Remove(s.ownerPath(name)))
			}
		}
		return err
	})
	if err != nil {
		s.cfg.Log.Warn("changes that a killed host left open could not be settled", "error", err)
	}
}
