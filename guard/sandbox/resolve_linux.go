package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
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
		to    *[]place.Object
		paths []string
	}{{&pl.readOnly, p.ReadOnly}, {&pl.denied, p.Denied}, {&pl.masked, p.Masked}, {&pl.shown, p.Shown}, {&pl.programs,
		p.Programs}} {
		if *l.to, err = resolveAll(l.paths); err != nil {
			return nil, err
		}
	}
	for _, path := range p.Temporary {
		if t, err := place.Locate(path); err == nil {
			pl.temporary = append(pl.temporary, t.Path)
		}
	}
	pl.programs = slices.DeleteFunc(pl.programs, func(t place.Object) bool {
		return t.Dir || slices.ContainsFunc(pl.writable, func(w place.Object) bool { return place.Within(t.Path, w.Path) })
	})
	for _, path := range p.Sockets {
		if t, err := place.Locate(path); err == nil {
			pl.sockets = append(pl.sockets, t.Path)
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
			func(t place.Object) bool { return place.Within(path, t.Path) })
	}
	var out []private
	for _, d := range list {
		if hidden(d.Name) {
			continue
		}
		host, err := place.Identify(d.Name)
		if err != nil || !host.Dir {
			return nil, fmt.Errorf("sandbox: private path %s is not a directory", d.Name)
		}
		dir, err := place.Locate(d.Dir)
		if err != nil {
			return nil, fmt.Errorf("sandbox: private path %s: %w", d.Name, err)
		}
		p := private{name: d.Name, dir: dir}
		for _, t := range entriesOf(d.Name, d.Shown) {
			if !hidden(filepath.Dir(t.Path)) {
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
		seen[t.Path] = true
	}
	unseen := func(t place.Object) bool { return place.Below(t.Path, p.name) && !coveredBy(t.Path, seen) }
	pl.denied, pl.masked = slices.DeleteFunc(pl.denied, unseen), slices.DeleteFunc(pl.masked, unseen)
}

// entriesOf describes entries of a directory, without those that are gone.
func entriesOf(dir string, names []string) []place.Object {
	var list []place.Object
	for _, name := range names {
		if t, err := place.Identify(filepath.Join(dir, name)); err == nil {
			list = append(list, t)
		}
	}
	return list
}

func resolveWritable(path string) (place.Object, error) {
	t, err := place.Locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("sandbox: writable path %s does not exist; create it before the sandbox starts", path)
	}
	if err != nil {
		return t, fmt.Errorf("sandbox: writable path %s: %w", path, err)
	}
	if t.Path == "/" {
		return t, fmt.Errorf("sandbox: writable path %s is the root of the file system; name the directories that are meant", path)
	}
	for _, d := range pseudo {
		if place.Within(t.Path, d) {
			return t, fmt.Errorf("sandbox: writable path %s lies in %s, which every sandbox has of its own", path, d)
		}
	}
	return t, nil
}

// resolveAll locates the paths that exist.
func resolveAll(paths []string) ([]place.Object, error) {
	var list []place.Object
	for _, path := range paths {
		t, err := place.Locate(path)
		switch {
		case place.Absent(err):
		case err != nil:
			return nil, fmt.Errorf("sandbox: cannot tell what %s is: %w", path, err)
		case t.Path == "/":
			return nil, fmt.Errorf("sandbox: %s leads to the root of the file system", path)
		default:
			list = append(list, t)
		}
	}
	return list, nil
}

// withLinks adds to list every other name, inside the writable paths, of the
// files in it. Below a directory in list, files with several names count too.
func (pl *plan) withLinks(list []place.Object) ([]place.Object, error) {
	linked := make(map[place.Inode]bool)
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
		covered[t.Path] = true
	}
	for _, w := range pl.writable {
		err := walkLinked(w, func(name string, id place.Inode) error {
			if linked[id] && !coveredBy(name, covered) {
				list = append(list, place.Object{Path: name, Inode: id})
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
func collectLinked(t place.Object, to map[place.Inode]bool) error {
	return walkLinked(t, func(_ string, id place.Inode) error {
		to[id] = true
		return nil
	})
}

// walkLinked calls f for every file at or below t that is not a directory and
// has more than one name.
func walkLinked(t place.Object, f func(path string, id place.Inode) error) error {
	return filepath.WalkDir(t.Path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case place.Absent(err):
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
		return f(path, place.Inode{Dev: st.Dev, Ino: st.Ino})
	})
}

// pin collects the directories between the writable paths and what is guarded
// inside them: renamed, they would carry it to a name no rule knows. protected
// paths are pinned even where they do not exist yet, and so are links among them
// and the ways to them.
func (pl *plan) pin(protected, ways []string) {
	paths := slices.Concat(protected, ways)
	for _, path := range paths {
		t, err := place.Identify(filepath.Clean(path))
		pinned := err == nil && (t.Link || t.Dir && slices.Contains(ways, path))
		if pinned && slices.ContainsFunc(pl.writable, func(w place.Object) bool { return place.Below(t.Path, w.Path) }) {
			pl.pins = append(pl.pins, t.Path)
		}
	}
	for _, list := range [][]place.Object{pl.denied, pl.readOnly, pl.masked} {
		for _, t := range list {
			paths = append(paths, t.Path)
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
		for dir := filepath.Dir(filepath.Clean(path)); place.Below(dir, w.Path); dir = filepath.Dir(dir) {
			if t, err := place.Identify(dir); err == nil && t.Dir {
				list = append(list, dir)
			}
		}
	}
	return list
}

// normalize sorts parents before children and removes duplicates and what lies
// inside something denied already.
func (pl *plan) normalize() {
	for _, list := range []*[]place.Object{&pl.writable, &pl.readOnly, &pl.denied, &pl.masked, &pl.shown, &pl.programs} {
		slices.SortFunc(*list, func(a, b place.Object) int { return strings.Compare(a.Path, b.Path) })
		*list = slices.Compact(*list)
	}
	pl.denied = outermost(pl.denied)
	slices.Sort(pl.pins)
	pl.pins = slices.Compact(pl.pins)
	pl.pins = slices.DeleteFunc(pl.pins, func(p string) bool {
		return slices.ContainsFunc(pl.denied, func(d place.Object) bool { return place.Within(p, d.Path) })
	})
}

// outermost drops what lies below another entry.
func outermost(list []place.Object) []place.Object {
	dirs := make(map[string]bool, len(list))
	for _, t := range list {
		if t.Dir {
			dirs[t.Path] = true
		}
	}
	return slices.DeleteFunc(list, func(t place.Object) bool { return coveredBy(filepath.Dir(t.Path), dirs) })
}
