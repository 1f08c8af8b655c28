package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toolhost/toolhost/guard/internal/chmodretry"
)

// A Guarded path is protected, but mounts cannot hold it: it was absent at the
// start, or is a symbolic link.
type Guarded struct {
	Path string // as in the policy
	Root string // the writable directory it lies in
	Rel  string // below Root
	Link string // what the symbolic link said; "" if the path was none
	New  string // the topmost part of Rel that was absent; a link that appears there may lead out of Root
	Way  bool   // Path is in Policy.Pinned: only a link there is a planted file, since it leads elsewhere
}

// unheld returns the protected paths that mounts cannot protect, and those on the way to them, which come first. A path
// outside of the writable ones needs no watching.
func unheld(p Policy) []Guarded {
	var list []Guarded
	for i, path := range slices.Concat(p.Pinned, p.ReadOnly) {
		path = filepath.Clean(path)
		link, way := "", i < len(p.Pinned)
		st, err := os.Lstat(path)
		switch {
		case err == nil && st.Mode()&fs.ModeSymlink != 0:
			if link, err = os.Readlink(path); err != nil {
				continue
			}
		case way:
		case err == nil || !missing(err):
			continue
		}
		for _, root := range p.Writable {
			if rel, err := filepath.Rel(filepath.Clean(root), path); err == nil && filepath.IsLocal(rel) && rel != "." {
				list = append(list, Guarded{path, root, rel, link, topmostAbsent(root, rel), way})
				break
			}
		}
	}
	return list
}

// topmostAbsent returns the topmost part of a path below root that is absent, or "".
func topmostAbsent(root, rel string) string {
	for i, c := range rel + string(filepath.Separator) {
		if c == filepath.Separator {
			if _, err := os.Lstat(filepath.Join(root, rel[:i])); missing(err) {
				return rel[:i]
			}
		}
	}
	return ""
}

// missing reports whether an error says that nothing has that name, be it because
// a file is in the place of a directory.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// A planted file is a protected path that has appeared, or a protected symbolic
// link that was changed, since the start.
type planted struct {
	Path  string
	Moved string // where it was moved to, out of effect; "" if that failed
}

// Guarded returns the protected paths that mounts cannot hold.
func (s *Sandbox) Guarded() []Guarded { return slices.Clone(s.guarded) }

// Quarantine looks for guarded paths that have appeared, and renames what it finds, with
// ".quarantined-1" and so on added: nothing is lost, but no program loads it by its
// name any more. A link that was changed is put back. Call it after every command, once
// Process.Kill has returned. An error means that something is still in effect.
func Quarantine(list []Guarded) ([]planted, error) {
	var found []planted
	var errs []error
	for _, g := range list {
		moved, err := g.moveAway()
		if err != nil {
			errs = append(errs, fmt.Errorf("sandbox: %s is protected and was created or changed by a command; it could not be "+
				"moved away: %w", g.Path, err))
		}
		if err != nil || moved != "" {
			found = append(found, planted{Path: g.Path, Moved: moved})
		}
	}
	return found, errors.Join(errs...)
}

// moveAway moves a planted file away and returns its new name, or "" if there is
// none.
func (g Guarded) moveAway() (moved string, err error) {
	if _, err := os.Lstat(g.Path); missing(err) && g.Link == "" {
		return "", nil // wherever links lead: the name leads to nothing
	}
	root, err := os.OpenRoot(g.Root) // so that no link in the path leads out of the root
	if err != nil {
		return "", err
	}
	defer root.Close()
	st, err := root.Lstat(g.Rel)
	if errors.Is(err, fs.ErrNotExist) && g.Link == "" {
		return "", nil
	}
	if err == nil && st.Mode()&fs.ModeSymlink != 0 && g.Link != "" {
		if link, err := root.Readlink(g.Rel); err == nil && link == g.Link {
			return "", nil
		}
	}
	if g.Link != "" && missing(err) {
		return "", root.Symlink(g.Link, g.Rel) // removed: put it back
	}
	if g.Way && g.Link == "" && (missing(err) || err == nil && st.Mode()&fs.ModeSymlink == 0) {
		return "", nil
	}
	rel := g.Rel
	if err != nil { // it is found through a link that leads out of root
		if rel = g.New; rel == "" {
			return "", err
		}
	}
	name, err := chmodretry.Quarantine(root, rel)
	if err != nil {
		return "", err
	}
	if g.Link != "" {
		err = root.Symlink(g.Link, g.Rel)
	}
	return filepath.Join(g.Root, name), err
}
