package sandbox

import (
	"path/filepath"
	"slices"

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
