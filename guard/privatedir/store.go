package privatedir

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"github.com/toolhost/toolhost/guard/statedir"
)

// shared are the directories of the host that commands have private versions of.
var shared = [...]string{"/run", "/tmp", "/var/tmp"}

// modes are the modes that programs expect.
var modes = map[string]fs.FileMode{"/run": 0o755, "/tmp": 0o777 | fs.ModeSticky, "/var/tmp": 0o777 | fs.ModeSticky}

// An ownDir is a directory that programs expect in a place. Commands have a private one, never the host's.
type ownDir struct {
	top, below string
	mode       fs.FileMode
}

func (d ownDir) name() string { return filepath.Join(d.top, d.below) }

// always are those directories of each place.
var always = map[string][]ownDir{
	"/run": {
		{"lock", "", 0o777 | fs.ModeSticky},
		{"user", "", 0o755},
		{"user", strconv.Itoa(os.Getuid()), 0o700},
	},
}

// A Store keeps the places of all callers of a host. It is safe for concurrent use.
type Store struct {
	parent string
	sweeps sync.WaitGroup

	mu   sync.Mutex
	dir  string         // this host's, "" before the first place is made
	mark *statedir.Mark // of dir
	sets map[string]Set
	over bool
}

// Open returns a store whose files lie below dir, and removes the files of killed hosts there. It creates nothing
// before first use.
func Open(dir string) *Store {
	s := &Store{parent: dir, sets: map[string]Set{}}
	s.sweeps.Go(s.sweep)
	return s
}

// Of returns the places of a caller; none if the system has no sandbox that could mount them.
func (s *Store) Of(principal string) Set {
	if s == nil || runtime.GOOS != "linux" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, ok := s.sets[principal]; ok {
		return set
	}
	sum := sha256.Sum256([]byte(principal))
	var set Set
	for i, name := range shared {
		real, err := filepath.EvalSymlinks(name)
		if info, statErr := os.Lstat(name); err != nil || statErr != nil || !info.IsDir() || real != name {
			continue // a link leads to another one of them, or elsewhere
		}
		p := &Place{name: name}
		p.make = func() error {
			dir, err := s.begin()
			p.dir = filepath.Join(dir, hex.EncodeToString(sum[:8]), strconv.Itoa(i))
			return err
		}
		set = append(set, p)
	}
	s.sets[principal] = set
	return set
}

// begin makes the directory of this host, and locks it for as long as the host lives.
func (s *Store) begin() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return "", errors.New("the host is closing")
	case s.dir != "":
		if _, err := os.Lstat(s.dir); err == nil {
			return s.dir, nil
		}
		_ = s.mark.Close() // its directory was removed
		s.dir = ""
	}
	if err := os.MkdirAll(s.parent, 0o700); err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(s.parent)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, "host-"+rand.Text())
	mark, err := statedir.Own(dir + ".lock") // first: a sweeper looks at marks
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", errors.Join(err, mark.Release(func() error { return nil }))
	}
	s.dir, s.mark = dir, mark
	return dir, nil
}

// sweep removes the directories of hosts that have ended.
func (s *Store) sweep() {
	_, _ = statedir.Owned(s.parent, func(name string) error { // the next host removes the rest
		return statedir.RemoveTree(filepath.Join(s.parent, name))
	})
}

// Close removes everything. Commands in sandboxes must have ended.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	s.sweeps.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.dir == "" {
		return nil
	}
	return s.mark.Release(func() error { return statedir.RemoveTree(s.dir) })
}
