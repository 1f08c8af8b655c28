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

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// pseudo lists file systems that have files with side effects, and that the
// sandbox mounts again.
var pseudo = [...]string{"/proc", "/sys", "/dev"}

// plan is a policy resolved against the file system, for process 1, while it is made.
type plan struct{ contract.Plan }

// resolve turns a policy into a plan. A path that cannot be resolved for
// another reason than being absent is an error: what is not understood must not
// be left open.
func resolve(p Policy) (*plan, error) {
	pl := &plan{contract.Plan{Overlay: p.Overlay}}
	pl.Processes = cmp.Or(p.maxProcesses, maxProcesses)
	for _, path := range p.Writable {
		t, err := resolveWritable(path)
		if err != nil {
			return nil, err
		}
		pl.Writable = append(pl.Writable, t)
	}
	var err error
	for _, l := range []struct {
		to    *[]place.Object
		paths []string
	}{{&pl.ReadOnly, p.ReadOnly}, {&pl.Denied, p.Denied}, {&pl.Masked, p.Masked}, {&pl.Shown, p.Shown}, {&pl.Programs,
		p.Programs}} {
		if *l.to, err = resolveAll(l.paths); err != nil {
			return nil, err
		}
	}
	for _, path := range p.Temporary {
		if t, err := place.Locate(path); err == nil {
			pl.Temporary = append(pl.Temporary, t.Path)
		}
	}
	pl.Programs = slices.DeleteFunc(pl.Programs, func(t place.Object) bool {
		return t.Dir || slices.ContainsFunc(pl.Writable, func(w place.Object) bool { return place.Within(t.Path, w.Path) })
	})
	for _, path := range p.Sockets {
		if t, err := place.Locate(path); err == nil {
			pl.Sockets = append(pl.Sockets, t.Path)
		}
	}
	if pl.Denied, err = pl.withLinks(pl.Denied); err != nil {
		return nil, err
	}
	if pl.ReadOnly, err = pl.withLinks(pl.ReadOnly); err != nil {
		return nil, err
	}
	if pl.Private, err = pl.resolvePrivate(p.Private); err != nil {
		return nil, err
	}
	if pl.Files, err = resolveFiles(p.Files); err != nil {
		return nil, err
	}
	pl.Caches = pl.resolveCaches(p)
	pl.pin(p.ReadOnly, p.Pinned)
	pl.normalize()
	return pl, nil
}

// resolvePrivate resolves the private directories, but for what lies in something hidden.
func (pl *plan) resolvePrivate(list []Private) ([]contract.Private, error) {
	hidden := func(path string) bool {
		return slices.ContainsFunc(slices.Concat(pl.Denied, pl.Masked),
			func(t place.Object) bool { return place.Within(path, t.Path) })
	}
	var out []contract.Private
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
		p := contract.Private{Name: d.Name, Dir: dir}
		for _, t := range entriesOf(d.Name, d.Shown) {
			if !hidden(filepath.Dir(t.Path)) {
				p.Entries = append(p.Entries, t)
			}
		}
		pl.dropUnseen(p)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b contract.Private) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// dropUnseen drops what is hidden in entries of the host's directory that are not seen in the private one: their
// names are free, and may be those of the caller's own files.
func (pl *plan) dropUnseen(p contract.Private) {
	seen := make(map[string]bool, len(p.Entries))
	for _, t := range p.Entries {
		seen[t.Path] = true
	}
	unseen := func(t place.Object) bool { return place.Below(t.Path, p.Name) && !coveredBy(t.Path, seen) }
	pl.Denied, pl.Masked = slices.DeleteFunc(pl.Denied, unseen), slices.DeleteFunc(pl.Masked, unseen)
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
		return t, fmt.Errorf("sandbox: writable path %s is the root of the file system; name the directories that are meant",
			path)
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
	for _, w := range pl.Writable {
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
		if pinned && slices.ContainsFunc(pl.Writable, func(w place.Object) bool { return place.Below(t.Path, w.Path) }) {
			pl.Pins = append(pl.Pins, t.Path)
		}
	}
	for _, list := range [][]place.Object{pl.Denied, pl.ReadOnly, pl.Masked} {
		for _, t := range list {
			paths = append(paths, t.Path)
		}
	}
	for _, path := range paths {
		pl.Pins = append(pl.Pins, pl.parents(path)...)
	}
}

// parents returns the existing directories above path that lie strictly inside
// a writable path.
func (pl *plan) parents(path string) []string {
	var list []string
	for _, w := range pl.Writable {
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
	for _, list := range []*[]place.Object{&pl.Writable, &pl.ReadOnly, &pl.Denied, &pl.Masked, &pl.Shown, &pl.Programs} {
		slices.SortFunc(*list, func(a, b place.Object) int { return strings.Compare(a.Path, b.Path) })
		*list = slices.Compact(*list)
	}
	pl.Denied = outermost(pl.Denied)
	slices.Sort(pl.Pins)
	pl.Pins = slices.Compact(pl.Pins)
	pl.Pins = slices.DeleteFunc(pl.Pins, func(p string) bool {
		return slices.ContainsFunc(pl.Denied, func(d place.Object) bool { return place.Within(p, d.Path) })
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
