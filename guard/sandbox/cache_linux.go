package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// resolveCaches resolves the caches, but for those that are hidden, writable or private as a whole, in which a denied
// file may appear, or in which commands reach a socket of the host: no socket of a lower layer can be connected to.
func (pl *plan) resolveCaches(p Policy) []cacheLayer {
	var list []cacheLayer
	for _, o := range p.Caches {
		var dirs [3]place.Object
		ok := true
		for i, path := range []string{o.Name, o.Upper, o.Work} {
			t, err := place.Locate(path)
			dirs[i], ok = t, ok && err == nil && t.Dir
		}
		name := dirs[0].Path
		expected := slices.ContainsFunc(p.Denied, func(path string) bool {
			_, err := place.Locate(path)
			return err != nil && place.Below(filepath.Clean(path), name)
		})
		reached := slices.ContainsFunc(pl.sockets, func(path string) bool { return place.Below(path, name) })
		whole := slices.ContainsFunc(slices.Concat(pl.denied, pl.masked, pl.writable), func(t place.Object) bool {
			return place.Within(name, t.Path)
		})
		if ok && !expected && !reached && !whole && !pl.replaced(name) {
			list = append(list, cacheLayer{dirs[0], dirs[1], dirs[2]})
		}
	}
	return list
}

// replaced reports whether commands see something else than the host's directory at a path, because a private
// directory takes its place.
func (pl *plan) replaced(path string) bool {
	return slices.ContainsFunc(pl.private, func(p private) bool {
		shown := slices.ContainsFunc(p.entries, func(t place.Object) bool { return place.Within(path, t.Path) })
		return place.Within(path, p.name) && !shown
	})
}

// caches mounts the overlays of caches, at no place yet. The plan keeps those that the kernel grants: other
// directories stay read-only.
func (v *view) caches() []attachment {
	var list []attachment
	v.plan.caches = slices.DeleteFunc(v.plan.caches, func(o cacheLayer) bool {
		fd, err := o.mount()
		if err != nil {
			return true
		}
		list = append(list, attachment{o.lower, fd})
		return false
	})
	return list
}

// mount makes the overlay. The kernel accesses both layers with the rights of this process, which has those of
// commands; mounts below the lower directory make it fail.
//
// Nothing is synchronized: the end of a sandbox would wait for the whole disk.
func (o cacheLayer) mount() (int, error) {
	options := map[string]string{"userxattr": "", "volatile": ""}
	for name, t := range map[string]place.Object{"lowerdir": o.lower, "upperdir": o.upper, "workdir": o.work} {
		fd, err := place.OpenPath(t.Path)
		if err != nil {
			return -1, fmt.Errorf("opening %s: %w", t.Path, err)
		}
		defer unix.Close(fd)
		if err := sameObject(fd, t); err != nil {
			return -1, err
		}
		options[name] = "/proc/self/fd/" + strconv.Itoa(fd) // a path would need escapes
	}
	return newFileSystem("overlay", options, attrOpen)
}

// cached returns the caches with an overlay.
func (pl *plan) cached() []string {
	var names []string
	for _, o := range pl.caches {
		names = append(names, o.lower.Path)
	}
	return names
}
