package builtin

import (
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// maxLinkSearch bounds the paths that are examined to find the other names of files.
const maxLinkSearch = 200_000

// otherNames returns the other names below the roots of the files at paths, by path. They are searched for only if a
// file has more names than the paths tell. What is in a directory .git is not searched.
func otherNames(roots, paths []string) map[string][]string {
	names, ids := map[walk.ID][]string{}, map[string]walk.ID{}
	var left uint64 // names that are not known
	for _, path := range paths {
		id, info, ok := walk.FileID(path)
		if !ok || slices.Contains(names[id], path) {
			continue
		}
		if names[id] == nil {
			left += info.Links
		}
		left--
		names[id], ids[path] = append(names[id], path), id
	}
	seen := 0
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if seen++; left == 0 || seen > maxLinkSearch {
				return fs.SkipAll
			}
			switch {
			case err != nil:
				return nil // no name can be told there
			case d.IsDir() && d.Name() == ".git":
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			info, err := walk.Lstat(path)
			id := walk.ID{Device: info.Device, Inode: info.Inode}
			if all := names[id]; err == nil && all != nil && !slices.Contains(all, path) {
				names[id] = append(all, path)
				left--
			}
			return nil
		})
	}
	others := map[string][]string{}
	for path, id := range ids {
		others[path] = slices.DeleteFunc(slices.Clone(names[id]), func(name string) bool { return name == path })
	}
	return others
}

// nameSteps tells the steps which other names their files have now, so that an undo of the steps gives these back.
func nameSteps(env *Env, steps []journal.Step) {
	var paths []string
	for _, f := range steps {
		paths = append(append(paths, f.Path), f.Links...)
	}
	names := otherNames(outermost(env.Policy.Roots()), paths)
	for i := range steps {
		steps[i].Names = names[steps[i].Path]
	}
}
