package privatedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

const (
	// maxShown bounds how many entries of one directory of the host commands see: each is a mount. Entries that the
	// caller's own directories lie in come first, then the newest.
	maxShown = 256
	// maxLooked bounds how many entries of one directory of the host are examined.
	maxLooked = 4096
	// grain is the shortest time between a change of a directory and a listing that tells their order.
	grain = 20 * time.Millisecond
)

// A Place is a directory of the host that a caller's commands see a private version of. It is safe for concurrent use.
type Place struct {
	name string // the host's directory, without symbolic links
	dir  string // where the caller's own files lie
	make func() error

	mu       sync.Mutex
	made     bool
	listed   time.Time              // when the host's directory was listed last
	changed  time.Time              // its time of change then
	shown    map[string]fs.FileInfo // entries of the host that have a mount point
	links    map[string]string      // copies of symbolic links of the host, and where they lead
	withheld map[string]time.Time   // directories that held nothing but sockets and pipes, and when they changed last
	version  uint64                 // counts changes of shown and links
}

// Name returns the host's directory, under whose name the caller knows the place.
func (p *Place) Name() string { return p.name }

// Dir returns where the caller's own files lie, after the first Sync.
func (p *Place) Dir() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dir
}

// Shown returns the names of the host's entries that commands see.
func (p *Place) Shown() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, 0, len(p.shown))
	for name := range p.shown {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ensure creates the directory. The caller holds the lock.
func (p *Place) ensure() error {
	if p.made {
		if _, err := os.Lstat(p.dir); err != nil { // the state directory was emptied or replaced
			p.made, p.shown, p.links, p.withheld, p.listed = false, nil, nil, nil, time.Time{}
			p.version++
			return fmt.Errorf("it is gone: %w", err)
		}
		return nil
	}
	if err := p.make(); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(p.dir, modes[p.name]); err != nil { // as programs expect it; no other user reaches it
		return err
	}
	for _, d := range always[p.name] {
		path := filepath.Join(p.dir, d.name())
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(path, d.mode); err != nil {
			return err
		}
	}
	p.made = true
	return nil
}

// Clear empties the place: its next user finds nothing that the caller has made. No sandbox may have it mounted. remove
// deletes the old content, which may take a while.
func (p *Place) Clear() (remove func() error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made {
		return func() error { return nil }, nil
	}
	old, err := os.MkdirTemp(filepath.Dir(p.dir), "cleared-")
	if err == nil {
		err = os.Rename(p.dir, filepath.Join(old, "d"))
	}
	if err != nil {
		return nil, err
	}
	p.made, p.shown, p.links, p.withheld, p.listed = false, nil, nil, nil, time.Time{}
	p.version++
	return func() error { return statedir.RemoveTree(old) }, nil
}

// own reports whether the entry with that path below the place is the caller's, or would be if it were created, and
// returns the directory that it lies in.
func (p *Place) own(rest string) (dir string, own bool) {
	entry, below, _ := strings.Cut(rest, "/")
	inner, _, _ := strings.Cut(below, "/")
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown[entry] != nil || p.ensure() != nil {
		return "", false
	}
	if _, err := os.Lstat(filepath.Join(p.dir, entry)); err == nil || p.alwaysOwn(entry) {
		return p.dir, true
	}
	path := filepath.Join(p.name, entry)
	info, err := os.Lstat(path)
	return p.dir, err != nil || !showable(path, info, inner)
}

func (p *Place) alwaysOwn(entry string) bool {
	return slices.ContainsFunc(always[p.name], func(d ownDir) bool { return d.top == entry })
}

// showable reports whether commands see an entry of the host: a file, a link, or a directory that contains more than
// sockets and named pipes. Commands may use the name of any other entry, such as that of tmux's directory. A directory
// is not listed if the entry of the name inner tells: the paths of a call lie in the same directory.
func showable(path string, info fs.FileInfo, inner string) bool {
	const others = fs.ModeType &^ (fs.ModeDir | fs.ModeSymlink)
	if info.Mode()&others != 0 {
		return false
	}
	if !info.IsDir() {
		return true
	}
	dir, err := os.Open(path)
	if err != nil {
		return false // to a command too
	}
	defer dir.Close()
	if inner != "" {
		if info, err := os.Lstat(filepath.Join(path, inner)); err == nil && info.Mode()&others == 0 {
			return true
		}
	}
	for n := 0; n < maxLooked; {
		entries, err := dir.ReadDir(64)
		if len(entries) == 0 {
			return n == 0 || err != nil && !errors.Is(err, errEnd)
		}
		for _, e := range entries {
			if e.Type()&others == 0 {
				return true
			}
		}
		n += len(entries)
	}
	return false
}

// A Set is the places of one caller. The nil Set has none.
type Set []*Place

// Without returns the places that do not lie in one of dirs: commands see the host's version of directories that the
// rules open to them.
func (s Set) Without(dirs []string) Set {
	return slices.DeleteFunc(slices.Clone(s), func(p *Place) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return within(p.name, dir) })
	})
}

// Is reports whether a clean absolute name is that of a place.
func (s Set) Is(name string) bool {
	return slices.ContainsFunc(s, func(p *Place) bool { return name == p.name })
}

// Holds reports whether a clean absolute name is that of a place or lies in one.
func (s Set) Holds(name string) bool {
	return slices.ContainsFunc(s, func(p *Place) bool { return within(name, p.name) })
}

// Locate returns the path that a clean absolute name leads to for a caller's commands, and whether that is one of the
// caller's own files. For a file that does not exist it is where it would be created.
func (s Set) Locate(name string) (at string, own bool) {
	for _, p := range s {
		switch rest, ok := strings.CutPrefix(name, p.name); {
		case !ok, rest != "" && rest[0] != '/':
		case rest == "":
			p.mu.Lock()
			defer p.mu.Unlock()
			if err := p.ensure(); err != nil {
				return name, false
			}
			return p.dir, true
		default:
			if dir, ok := p.own(rest[1:]); ok {
				return dir + rest, true
			}
		}
	}
	return name, false
}

// Named returns the name by which a caller's commands know their own file at a path; "" if they do not see it: if the
// host has that name too, the host's file is mounted over it.
func (s Set) Named(at string) string {
	for _, p := range s {
		if name, ok := p.named(at); ok {
			return name
		}
	}
	return at
}

func (p *Place) named(at string) (name string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made || !within(at, p.dir) {
		return "", false
	}
	rest := at[len(p.dir):]
	entry, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	if p.shown[entry] != nil {
		return "", true
	}
	return p.name + rest, true
}

// within reports whether path is dir or lies in it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
