package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// resolveCaches resolves the caches, but for those that are hidden, writable or private as a whole, in which a denied
// file may appear, or in which commands reach a socket of the host: no socket of a lower layer can be connected to.
func (pl *plan) resolveCaches(p Policy) []contract.Cache {
	var list []contract.Cache
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
		reached := slices.ContainsFunc(pl.Sockets, func(path string) bool { return place.Below(path, name) })
		whole := slices.ContainsFunc(slices.Concat(pl.Denied, pl.Masked, pl.Writable), func(t place.Object) bool {
			return place.Within(name, t.Path)
		})
		if ok && !expected && !reached && !whole && !pl.replaced(name) {
			list = append(list, contract.Cache{Lower: dirs[0], Upper: dirs[1], Work: dirs[2]})
		}
	}
	return list
}

// replaced reports whether commands see something else than the host's directory at a path, because a private
// directory takes its place.
func (pl *plan) replaced(path string) bool {
	return slices.ContainsFunc(pl.Private, func(p contract.Private) bool {
		shown := slices.ContainsFunc(p.Entries, func(t place.Object) bool { return place.Within(path, t.Path) })
		return place.Within(path, p.Name) && !shown
	})
}

// caches mounts the overlays of caches, at no place yet. The plan keeps those that the kernel grants: other
// directories stay read-only.
func (v *view) caches() []attachment {
	var list []attachment
	v.plan.Caches = slices.DeleteFunc(v.plan.Caches, func(o contract.Cache) bool {
		fd, err := mountCache(o)
		if err != nil {
			return true
		}
		list = append(list, attachment{o.Lower, fd})
		return false
	})
	return list
}

// mountCache makes the overlay. The kernel accesses both layers with the rights of this process, which has those of
// commands; mounts below the lower directory make it fail.
//
// Nothing is synchronized: the end of a sandbox would wait for the whole disk.
func mountCache(o contract.Cache) (int, error) {
	options := map[string]string{"userxattr": "", "volatile": ""}
	for name, t := range map[string]place.Object{"lowerdir": o.Lower, "upperdir": o.Upper, "workdir": o.Work} {
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
