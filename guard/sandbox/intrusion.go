package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"toolhost/guard/sandbox/internal/mend"
)

// guarded is a protected path that mounts cannot hold: it was absent at the
// start, or is a symbolic link.
type guarded struct {
	path string // as in the policy
	root string // the writable directory it lies in
	rel  string // below root
	link string // what the symbolic link said; "" if the path was absent
}

// unheld finds the protected paths that mounts cannot hold. A path outside of
// the writable ones needs no watching.
func unheld(p Policy) []guarded {
	var list []guarded
	for _, path := range p.ReadOnly {
		path = filepath.Clean(path)
		link := ""
		st, err := os.Lstat(path)
		switch {
		case err == nil && st.Mode()&fs.ModeSymlink != 0:
			if link, err = os.Readlink(path); err != nil {
				continue
			}
		case err == nil || !missing(err):
			continue
		}
		for _, root := range p.Writable {
			if rel, err := filepath.Rel(filepath.Clean(root), path); err == nil && filepath.IsLocal(rel) && rel != "." {
				list = append(list, guarded{path, root, rel, link})
				break
			}
		}
	}
	return list
}

// missing reports whether an error says that nothing has that name, be it because
// a file is in the place of a directory.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// An Intrusion is a protected path that has appeared, or a protected symbolic
// link that was changed, since the start.
type Intrusion struct {
	Path  string
	Moved string // where it was moved to, out of effect; "" if that failed
}

// quarantined and a number are added to the name of what is moved away.
const quarantined = ".quarantined-"

// maxQuarantine bounds the search for a free number.
const maxQuarantine = 100

// Expel looks for protected paths that did not exist at the start, which no
// mount can hold, and renames what it finds, with ".quarantined-1" and so on
// added: nothing is lost, but no program loads it by its name any more. Call it
// after every command, once Process.Kill has returned. An error means that
// something is still in effect.
func (s *Sandbox) Expel() ([]Intrusion, error) {
	var found []Intrusion
	var errs []error
	for _, g := range s.guarded {
		moved, err := g.expel()
		if err != nil {
			errs = append(errs, fmt.Errorf("sandbox: %s is protected and was created or changed by a command; it could not be moved away: %w", g.path, err))
		}
		if err != nil || moved != "" {
			found = append(found, Intrusion{Path: g.path, Moved: moved})
		}
	}
	return found, errors.Join(errs...)
}

// expel moves an intrusion away and returns its new name, or "" if there is
// none.
func (g guarded) expel() (moved string, err error) {
	if _, err := os.Lstat(g.path); missing(err) && g.link == "" {
		return "", nil // wherever links may lead: nobody who uses the name finds anything
	}
	root, err := os.OpenRoot(g.root) // no link in the path can lead us out of it
	if err != nil {
		return "", err
	}
	defer root.Close()
	st, err := root.Lstat(g.rel)
	if errors.Is(err, fs.ErrNotExist) && g.link == "" {
		return "", nil
	}
	if err == nil && st.Mode()&fs.ModeSymlink != 0 && g.link != "" {
		if link, err := root.Readlink(g.rel); err == nil && link == g.link {
			return "", nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", root.Symlink(g.link, g.rel) // removed: put it back
	}
	if err != nil {
		return "", err
	}
	name := freeName(root, g.rel)
	if err := mend.Writing(root, filepath.Dir(g.rel), func() error { return root.Rename(g.rel, name) }); err != nil {
		return "", err
	}
	if g.link != "" {
		err = root.Symlink(g.link, g.rel)
	}
	return filepath.Join(g.root, name), err
}

// freeName returns a name beside rel that is not taken: the next number, or if
// somebody has taken so many, one that nobody can have taken.
func freeName(root *os.Root, rel string) string {
	for i := 1; i <= maxQuarantine; i++ {
		name := rel + quarantined + strconv.Itoa(i)
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
	return rel + quarantined + rand.Text()
}
