package privatedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var errEnd = io.EOF

// A View says which entries of the host commands see.
type View struct {
	// Needed are paths that commands work with: the entries that they lie in come first.
	Needed []string
	// Guarded are paths that the sandbox hides: the entries that they lie in are shown from the start, so that these are
	// hidden in them from the start.
	Guarded []string
	// Hidden reports what they must not see.
	Hidden func(path string, dir bool) bool
}

// Sync makes a mount point for each entry of the host that commands see, and removes those of entries that are gone,
// which ends what is mounted there. It returns the entries to mount, and reports whether anything has changed.
func (p *Place) Sync(v View) (fresh []string, changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ensure(); err != nil {
		return nil, false, err
	}
	info, err := os.Stat(p.name)
	if err != nil {
		return nil, false, err
	}
	if p.listed.Sub(info.ModTime()) > grain && info.ModTime().Equal(p.changed) && p.stillWithheld() {
		return nil, false, nil
	}
	p.listed, p.changed = time.Now(), info.ModTime()
	files, links, err := p.wanted(v)
	if err != nil {
		return nil, false, err
	}
	before := p.version
	p.drop(files, links)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if p.shown[name] == nil {
			if err := p.place(name, files[name], p.holds(name, v.Needed)); err != nil {
				return nil, false, err
			}
			if p.shown[name] != nil {
				fresh = append(fresh, name)
			}
		}
	}
	for name, to := range links {
		if _, have := p.links[name]; !have && os.Symlink(to, filepath.Join(p.dir, name)) == nil {
			p.links = put(p.links, name, to)
			p.version++
		}
	}
	return fresh, p.version != before, nil
}

func put[V any](m map[string]V, name string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

// stillWithheld reports whether the directories in which commands were to see nothing are unchanged.
func (p *Place) stillWithheld() bool {
	for name, at := range p.withheld {
		info, err := os.Lstat(filepath.Join(p.name, name))
		if err == nil && !info.ModTime().Equal(at) {
			return false
		}
	}
	return true
}

// wanted returns the entries of the host that commands are to see: files and directories, and links with where they
// lead.
func (p *Place) wanted(v View) (files map[string]fs.FileInfo, links map[string]string, err error) {
	dir, err := os.Open(p.name)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxLooked)
	if err != nil && !errors.Is(err, errEnd) {
		return nil, nil, err
	}
	for _, path := range slices.Concat(v.Needed, v.Guarded) { // whatever the bound has cut off
		if rest, ok := strings.CutPrefix(path, p.name+"/"); ok {
			entry, _, _ := strings.Cut(rest, "/")
			names = append(names, entry)
		}
	}
	found := map[string]fs.FileInfo{}
	links, p.withheld = map[string]string{}, nil
	for _, name := range names {
		path := filepath.Join(p.name, name)
		info, err := os.Lstat(path)
		switch {
		case err != nil, p.alwaysOwn(name), found[name] != nil, !p.holds(name, v.Needed) &&
			v.Hidden(path, info.IsDir()):
		case info.Mode()&fs.ModeSymlink != 0:
			if to, err := os.Readlink(path); err == nil {
				links[name] = to
			}
		case p.holds(name, v.Needed) || showable(path, info, ""):
			found[name] = info
		case info.IsDir():
			p.withheld = put(p.withheld, name, info.ModTime())
		}
	}
	return p.newest(v, found), links, nil
}

// holds reports whether one of paths lies in an entry.
func (p *Place) holds(entry string, paths []string) bool {
	dir := filepath.Join(p.name, entry)
	return slices.ContainsFunc(paths, func(path string) bool { return within(path, dir) })
}

// newest leaves out the oldest entries beyond maxShown.
func (p *Place) newest(v View, found map[string]fs.FileInfo) map[string]fs.FileInfo {
	if len(found) <= maxShown {
		return found
	}
	names := slices.Collect(maps.Keys(found))
	first := func(entry string) bool { return p.holds(entry, v.Needed) || p.holds(entry, v.Guarded) }
	slices.SortFunc(names, func(a, b string) int {
		if x, y := first(a), first(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return found[b].ModTime().Compare(found[a].ModTime())
	})
	for _, name := range names[maxShown:] {
		delete(found, name)
	}
	return found
}

// drop removes the mount points of what is no longer to be seen, or has been replaced. What a command has put in the
// place of one stays, and is the caller's.
func (p *Place) drop(files map[string]fs.FileInfo, links map[string]string) {
	for name, was := range p.shown {
		if is := files[name]; is != nil && os.SameFile(was, is) {
			continue
		}
		os.Remove(filepath.Join(p.dir, name))
		delete(p.shown, name)
		p.version++
	}
	for name, was := range p.links {
		if links[name] == was {
			continue
		}
		path := filepath.Join(p.dir, name)
		if to, err := os.Readlink(path); err == nil && to == was {
			os.Remove(path)
		}
		delete(p.links, name)
		p.version++
	}
}

// place makes the mount point of an entry, unless the caller has something of that name.
func (p *Place) place(name string, info fs.FileInfo, needed bool) error {
	path := filepath.Join(p.dir, name)
	var err error
	if info.IsDir() {
		err = os.Mkdir(path, 0o700)
	} else {
		err = p.makeFile(path)
	}
	switch there, _ := os.Lstat(path); {
	case err == nil:
	case errors.Is(err, fs.ErrExist) && !needed:
		return nil
	case errors.Is(err, fs.ErrExist) && there != nil && there.IsDir() && info.IsDir():
	default:
		return fmt.Errorf("%s: a mount point for the files of the host: %w", filepath.Join(p.name, name), err)
	}
	p.shown = put(p.shown, name, info)
	p.version++
	return nil
}

// makeFile makes the mount point of a file. All are links to one empty file, which nothing but mounts reaches: some
// file systems take a hundred times longer to make a file.
func (p *Place) makeFile(path string) error {
	point := p.dir + ".point"
	if err := os.Link(point, path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = os.Link(path, point) // without hard links each is a file of its own
	return f.Close()
}
