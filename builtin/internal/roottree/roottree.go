// Package roottree lists and walks directories below an [os.Root]. Unlike [os.Root.FS] it takes names that are not
// UTF-8, which Linux allows.
package roottree

import (
	"cmp"
	"io/fs"
	"os"
	"slices"
)

// Walk is [fs.WalkDir] below a root.
func Walk(root *os.Root, name string, f fs.WalkDirFunc) error { return fs.WalkDir(tree{root}, name, f) }

// ReadDir returns the entries of a directory below a root, by name.
func ReadDir(root *os.Root, name string) ([]fs.DirEntry, error) {
	dir, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

// A tree has what [fs.WalkDir] needs.
type tree struct{ root *os.Root }

func (t tree) Open(name string) (fs.File, error) { return t.root.Open(name) }

func (t tree) Stat(name string) (fs.FileInfo, error) { return t.root.Stat(name) }

func (t tree) ReadDir(name string) ([]fs.DirEntry, error) { return ReadDir(t.root, name) }
