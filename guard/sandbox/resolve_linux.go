package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// pseudo lists file systems that have files with side effects, and that the
// sandbox mounts again.
var pseudo = [...]string{"/proc", "/sys", "/dev"}

// resolve turns a policy into a plan. A path that cannot be resolved for
// another reason than being absent is an error: what is not understood must not
// be left open.
func resolve(p Policy) (*plan, error) {
	pl := &plan{network: p.Network.Unrestricted, overlay: p.Overlay}
	pl.processes = cmp.Or(p.MaxProcesses, defaultMaxProcesses)
	for _, path := range p.Writable {
		t, err := resolveWritable(path)
		if err != nil {
			return nil, err
		}
		pl.writable = append(pl.writable, t)
	}
	var err error
	for _, l := range []struct {
		to    *[]target
		paths []string
	}{{&pl.readOnly, p.ReadOnly}, {&pl.denied, p.Denied}, {&pl.masked, p.Masked}, {&pl.shown, p.Shown}, {&pl.programs,
		p.Programs}} {
		if *l.to, err = resolveAll(l.paths); err != nil {
			return nil, err
		}
	}
	for _, path := range p.Temporary {
		if t, err := locate(path); err == nil {
			pl.temporary = append(pl.temporary, t.path)
		}
	}
	pl.programs = slices.DeleteFunc(pl.programs, func(t target) bool {
		return t.dir || slices.ContainsFunc(pl.writable, func(w target) bool { return within(t.path, w.path) })
	})
	for _, path := range p.Sockets {
		if t, err := locate(path); err == nil {
			pl.sockets = append(pl.sockets, t.path)
		}
	}
	if pl.denied, err = pl.withLinks(pl.denied); err != nil {
		return nil, err
	}
	if pl.readOnly, err = pl.withLinks(pl.readOnly); err != nil {
		return nil, err
	}
	if pl.private, err = pl.resolvePrivate(p.Private); err != nil {
		return nil, err
	}
	if pl.files, err = resolveFiles(p.Files); err != nil {
		return nil, err
	}
	pl.caches = pl.resolveCaches(p)
	pl.pin(p.ReadOnly, p.Pinned)
	pl.normalize()
	return pl, nil
}

// resolvePrivate resolves the private directories, but for what lies in something hidden.
func (pl *plan) resolvePrivate(list []Private) ([]private, error) {
	hidden := func(path string) bool {
		return slices.ContainsFunc(slices.Concat(pl.denied, pl.masked),
			func(t target) bool { return within(path, t.path) })
	}
	var out []private
	for _, d := range list {
		if hidden(d.Name) {
			continue
		}
		host, err := identify(d.Name)
		if err != nil || !host.dir {
			return nil, fmt.Errorf("sandbox: private path %s is not a directory", d.Name)
		}
		dir, err := locate(d.Dir)
		if err != nil {
			return nil, fmt.Errorf("sandbox: private path %s: %w", d.Name, err)
		}
		p := private{name: d.Name, dir: dir}
		for _, t := range entriesOf(d.Name, d.Shown) {
			if !hidden(filepath.Dir(t.path)) {
				p.entries = append(p.entries, t)
			}
		}
		pl.dropUnseen(p)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b private) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// dropUnseen drops what is hidden in entries of the host's directory that are not seen in the private one: their
// names are free, and may be those of the caller's own files.
func (pl *plan) dropUnseen(p private) {
	seen := make(map[string]bool, len(p.entries))
	for _, t := range p.entries {
		seen[t.path] = true
	}
	unseen := func(t target) bool { return below(t.path, p.name) && !coveredBy(t.path, seen) }
	pl.denied, pl.masked = slices.DeleteFunc(pl.denied, unseen), slices.DeleteFunc(pl.masked, unseen)
}

// entriesOf describes entries of a directory, without those that are gone.
func entriesOf(dir string, names []string) []target {
	var list []target
	for _, name := range names {
		if t, err := identify(filepath.Join(dir, name)); err == nil {
			list = append(list, t)
		}
	}
	return list
}

func resolveWritable(path string) (target, error) {
	t, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("sandbox: writable path %s does not exist; create it before the sandbox starts", path)
	}
	if err != nil {
		return t, fmt.Errorf("sandbox: writable path %s: %w", path, err)
	}
	if t.path == "/" {
		return t, fmt.Errorf("sandbox: writable path %s is the root of the file system; name the directories that are meant", path)
	}
	for _, d := range pseudo {
		if within(t.path, d) {
			return t, fmt.Errorf("sandbox: writable path %s lies in %s, which every sandbox has of its own", path, d)
		}
	}
	return t, nil
}

// resolveAll locates the paths that exist.
func resolveAll(paths []string) ([]target, error) {
	var list []target
	for _, path := range paths {
		t, err := locate(path)
		switch {
		case absent(err):
		case err != nil:
			return nil, fmt.Errorf("sandbox: cannot tell what %s is: %w", path, err)
		case t.path == "/":
			return nil, fmt.Errorf("sandbox: %s leads to the root of the file system", path)
		default:
			list = append(list, t)
		}
	}
	return list, nil
}

// absent reports whether err means that a command, which has no more rights than we have, will find nothing either.
// That includes links that form a loop.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, unix.ELOOP)
}

// locate follows symbolic links to the object that reading path would reach.
func locate(path string) (target, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		if _, kernel := os.Stat(path); errors.Is(kernel, unix.ELOOP) { // which EvalSymlinks says in words of its own
			err = kernel
		}
		return target{}, err
	}
	return identify(resolved)
}

// identify describes the object at path itself.
func identify(path string) (target, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return target{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return target{
		path:  path,
		inode: inode{dev: st.Dev, ino: st.Ino},
		dir:   st.Mode&unix.S_IFMT == unix.S_IFDIR,
		link:  st.Mode&unix.S_IFMT == unix.S_IFLNK,
	}, nil
}

// withLinks adds to list every other name, inside the writable paths, of the
// files in it. Below a directory in list, files with several names count too.
func (pl *plan) withLinks(list []target) ([]target, error) {
	linked := make(map[inode]bool)
	for _, t := range list {
		if err := collectLinked(t, linked); err != nil {
			return nil, err
		}
	}
	if len(linked) == 0 {
		return list, nil
	}
	covered := make(map[string]bool, len(list))
	for _, t := range list {
		covered[t.path] = true
	}
	for _, w := range pl.writable {
		err := walkLinked(w, func(name string, id inode) error {
			if linked[id] && !coveredBy(name, covered) {
				list = append(list, target{path: name, inode: id})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// coveredBy reports whether name or a parent of it is in set.
func coveredBy(name string, set map[string]bool) bool {
	for ; name != "/"; name = filepath.Dir(name) {
		if set[name] {
			return true
		}
	}
	return false
}

// collectLinked adds the files at or below t that have more than one name.
func collectLinked(t target, to map[inode]bool) error {
	return walkLinked(t, func(_ string, id inode) error {
		to[id] = true
		return nil
	})
}

// walkLinked calls f for every file at or below t that is not a directory and
// has more than one name.
func walkLinked(t target, f func(path string, id inode) error) error {
	return filepath.WalkDir(t.path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case absent(err):
			return nil
		case err != nil:
			return fmt.Errorf("sandbox: looking for hard links: %w", err)
		case d.IsDir():
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Nlink < 2 {
			return nil // gone again, or the only name
		}
		return f(path, inode{dev: st.Dev, ino: st.Ino})
	})
}

// pin collects the directories between the writable paths and what is guarded
// inside them: renamed, they would carry it to a name no rule knows. protected
// paths are pinned even where they do not exist yet, and so are links among them
// and the ways to them.
func (pl *plan) pin(protected, ways []string) {
	paths := slices.Concat(protected, ways)
	for _, path := range paths {
		t, err := identify(filepath.Clean(path))
		pinned := err == nil && (t.link || t.dir && slices.Contains(ways, path))
		if pinned && slices.ContainsFunc(pl.writable, func(w target) bool { return below(t.path, w.path) }) {
			pl.pins = append(pl.pins, t.path)
		}
	}
	for _, list := range [][]target{pl.denied, pl.readOnly, pl.masked} {
		for _, t := range list {
			paths = append(paths, t.path)
		}
	}
	for _, path := range paths {
		pl.pins = append(pl.pins, pl.parents(path)...)
	}
}

// parents returns the existing directories above path that lie strictly inside
// a writable path.
func (pl *plan) parents(path string) []string {
	var list []string
	for _, w := range pl.writable {
		for dir := filepath.Dir(filepath.Clean(path)); below(dir, w.path); dir = filepath.Dir(dir) {
			if t, err := identify(dir); err == nil && t.dir {
				list = append(list, dir)
			}
		}
	}
	return list
}

// normalize sorts parents before children and removes duplicates and what lies
// inside something denied already.
func (pl *plan) normalize() {
	for _, list := range []*[]target{&pl.writable, &pl.readOnly, &pl.denied, &pl.masked, &pl.shown, &pl.programs} {
		slices.SortFunc(*list, func(a, b target) int { return strings.Compare(a.path, b.path) })
		*list = slices.Compact(*list)
	}
	pl.denied = outermost(pl.denied)
	slices.Sort(pl.pins)
	pl.pins = slices.Compact(pl.pins)
	pl.pins = slices.DeleteFunc(pl.pins, func(p string) bool {
		return slices.ContainsFunc(pl.denied, func(d target) bool { return within(p, d.path) })
	})
}

// outermost drops what lies below another entry.
func outermost(list []target) []target {
	dirs := make(map[string]bool, len(list))
	for _, t := range list {
		if t.dir {
			dirs[t.path] = true
		}
	}
	return slices.DeleteFunc(list, func(t target) bool { return coveredBy(filepath.Dir(t.path), dirs) })
}

// within reports whether path is dir or lies below it, element by element.
func within(path, dir string) bool {
	return path == dir || below(path, dir)
}

func withinAny(path string, dirs []string) bool {
	for _, d := range dirs {
		if within(path, d) {
			return true
		}
	}
	return false
}
