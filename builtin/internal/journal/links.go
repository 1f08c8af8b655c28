package journal

import (
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// withNames returns the changes of a file under all its names.
func withNames(p PathChange, others []string) []PathChange {
	all := []PathChange{p}
	for _, name := range others {
		other := p
		other.Path = filepath.Clean(name)
		all = append(all, other)
	}
	for i := range all {
		for _, other := range all {
			if other.Path != all[i].Path {
				all[i].Links = append(all[i].Links, other.Path)
			}
		}
	}
	return all
}

// linkedNow returns a function for the other names of a file now, among those that the steps tell.
func linkedNow(files []Step) func(path string) []string {
	names, ids := map[walk.ID][]string{}, map[string]walk.ID{}
	add := func(path string) {
		if id, _, ok := walk.FileID(path); ok && ids[path] != id {
			names[id], ids[path] = append(names[id], path), id
		}
	}
	for _, f := range files {
		add(f.Path)
		for _, name := range slices.Concat(f.Links, f.Names) {
			add(name)
		}
	}
	return func(path string) []string {
		return slices.DeleteFunc(slices.Clone(names[ids[path]]), func(name string) bool { return name == path })
	}
}

// part gives modes to the steps that would write in place what is one file now and was several: those with a mode make
// new files. Else each of them would change what the others expect there.
func part(files []Step) {
	names := map[walk.ID][]*Step{}
	for i, f := range files {
		if id, _, ok := walk.FileID(f.Path); ok && !f.Restore.IsAbsent() {
			names[id] = append(names[id], &files[i])
		}
	}
	for _, same := range names {
		if !slices.ContainsFunc(same, func(f *Step) bool { return f.Restore.Blob != same[0].Restore.Blob }) {
			continue
		}
		for _, f := range same {
			if f.Restore.IsFile() && f.Restore.Mode == 0 {
				f.Restore.Mode = f.Expect.Mode &^ setID(f.Expect.Mode)
			}
		}
	}
}
